//! Warnings about habits that hurt when a machine dies.

use crate::diagnostic::Findings;
use crate::read::Draft;
use fencepost_core::dag::{Action, OnLost};

/// Words of tasks that reach somebody or move money: doing them twice is noticed.
const NOT_TWICE: [&str; 16] = [
    "bill", "billing", "charge", "email", "invoice", "mail", "mailx", "pay", "payment", "payout",
    "refund", "send", "sendmail", "sms", "transfer", "tweet",
];
/// What shows that somebody thought of it.
const GUARDS: [&str; 5] =
    ["idempotency", "fencing_token", "fencepost once", "fencepost fence", "fencepost publish"];

/// A lost attempt may have done its work; its replacement would do it again.
pub(super) fn lost_retry(draft: &Draft<'_>, findings: &mut Findings) {
    let task = &draft.task;
    if task.on_lost != OnLost::Retry || task.infra_retries == 0 || draft.is_refused {
        return;
    }
    let text = match &task.action {
        Action::Run(script) => script.clone(),
        Action::Command(words) => words.join(" "),
        Action::Python(path) => path.clone(),
        // A request carries the idempotency key by itself.
        Action::Http(_) | Action::TriggerDag(_) | Action::Wait(_) | Action::Noop => return,
    };
    let env = task.env.iter().map(|(name, value)| format!("{name} {value}"));
    let all = format!("{text} {}", env.collect::<Vec<_>>().join(" ")).to_ascii_lowercase();
    let is_guarded = GUARDS.iter().any(|guard| all.contains(guard));
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
        parts.map(str::to_ascii_lowercase).collect()
    };
    let is_doubtful = text.split_whitespace().any(|word| word == "POST")
        || words(task.task_id.as_str())
            .iter()
            .chain(&words(&text))
            .any(|word| NOT_TWICE.contains(&word.as_str()));
    if is_guarded || !is_doubtful {
        return;
    }
    let message = format!("`{}` may run twice", task.task_id);
    let hint = "pass {{ ti.idempotency_key }}, or set on_lost: hold";
    findings.warn(draft.action_place(), "lost-retry", message, hint);
}
