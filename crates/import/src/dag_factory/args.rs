//! Arguments that every operator takes, at a task and in `default_args`.

use super::values;
use crate::report::Notes;
use crate::yaml::{Field, Fields};
use fencepost_core::trigger_rule::TriggerRule;
use serde_json::{Map, Value, json};

/// How an argument is read.
enum As {
    Whole(i64),
    Span,
    Flag,
    Name,
}

/// Airflow's arguments, and our keys.
const KEYS: [(&[&str], &str, As); 16] = [
    (&["retries"], "retries", As::Whole(0)),
    (&["retry_delay", "retry_delay_sec"], "retry_delay", As::Span),
    (&["retry_exponential_backoff"], "retry_exponential_backoff", As::Flag),
    (&["max_retry_delay"], "max_retry_delay", As::Span),
    (&["execution_timeout", "execution_timeout_secs"], "execution_timeout", As::Span),
    (&["depends_on_past"], "depends_on_past", As::Flag),
    (&["wait_for_downstream"], "wait_for_downstream", As::Flag),
    (&["pool"], "pool", As::Name),
    (&["pool_slots"], "pool_slots", As::Whole(1)),
    (&["queue"], "queue", As::Name),
    (&["priority_weight"], "priority_weight", As::Whole(-1_000_000)),
    (&["weight_rule"], "weight_rule", As::Name),
    (&["trigger_rule"], "trigger_rule", As::Name),
    (&["max_active_tis_per_dag", "task_concurrency"], "max_active_tis_per_dag", As::Whole(1)),
    (&["max_active_tis_per_dagrun"], "max_active_tis_per_dagrun", As::Whole(1)),
    (&["run_as_user"], "run_as_user", As::Name),
];

/// Takes them; what each becomes is put into `out`.
pub(super) fn read(fields: &mut Fields<'_>, out: &mut Map<String, Value>, notes: &mut Notes) {
    for (names, to, kind) in &KEYS {
        let Some(field) = fields.take(names) else { continue };
        let value = match kind {
            As::Whole(least) => values::whole(&field, to, *least, notes).map(Value::from),
            // No time at all is no limit.
            As::Span => values::duration(&field, notes)
                .filter(|span| span != "0s" || *to == "retry_delay")
                .map(Value::from),
            As::Flag => Some(json!(field.is_true())),
            As::Name => word(&field, to, notes).map(Value::from),
        };
        if let Some(value) = value {
            out.insert((*to).to_owned(), value);
        }
    }
}

fn word(field: &Field<'_>, to: &str, notes: &mut Notes) -> Option<String> {
    let text = field.value.text().unwrap_or_default();
    let text = match text {
        // Names that Airflow had before.
        "dummy" => "always",
        "none_failed_or_skipped" => "none_failed_min_one_success",
        other => other,
    };
    let is_known = match to {
        "trigger_rule" => TriggerRule::parse(text).is_some(),
        "weight_rule" => ["downstream", "upstream", "absolute"].contains(&text),
        _ => crate::names::clean(text).as_deref() == Some(text),
    };
    if !is_known {
        notes.needs(
            field.line,
            field.shown(),
            format!("no `{to}` has that name"),
            format!("write a `{to}`"),
        );
    }
    is_known.then(|| text.to_owned())
}

/// Whether a key names a function that Airflow calls.
pub(super) fn is_callback(key: &str) -> bool {
    key.contains("_callback")
}

/// Notes what is left of a task's arguments or of `default_args`.
pub(super) fn rest(fields: Fields<'_>, notes: &mut Notes) {
    for field in fields.rest() {
        let (line, what) = (field.line, field.shown());
        match field.key {
            "email" | "email_on_failure" | "email_on_retry"
                if field.key == "email" || field.is_true() =>
            {
                notes.needs(line, what, "mails are callbacks here", "write a callback that mails");
            }
            "email_on_failure" | "email_on_retry" | "do_xcom_push" | "provide_context"
            | "task_display_name" | "doc" | "doc_md" | "owner" | "ui_color" | "ui_fgcolor"
            | "email_on_success" => {
                notes.ignored(line, what, "it changes nothing here");
            }
            "sla" | "sla_secs" => notes.needs(
                line,
                what,
                "there are no SLAs of tasks",
                "watch the run's end by an alert",
            ),
            key if is_callback(key) => {
                notes.needs(
                    line,
                    what,
                    "callbacks in Python are not called",
                    "write a callback of ours, or a task with a trigger_rule",
                );
            }
            _ => notes.needs(
                line,
                what,
                "no key of a task is like it",
                "look whether the task depends on it",
            ),
        }
    }
}
