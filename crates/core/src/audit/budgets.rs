//! Budgets (I8): what was executed and charged against what is allowed, and the counters against
//! the rows that they count.

use super::{AuditAttempt, AuditTask, AuditTi, Violation, violation};
use crate::state::{CountedAs, Outcome};

pub(super) fn check(
    ti: &AuditTi,
    own: &[&AuditAttempt],
    task: Option<&AuditTask>,
    found: &mut Vec<Violation>,
) {
    let mut wrong = |what: String| found.push(violation("I8", &ti.name, what));
    let count = |of: CountedAs| own.iter().filter(|a| a.counted_as == Some(of)).count();
    let (user, infra) = (count(CountedAs::User), count(CountedAs::Infra));
    if own.len() != ti.attempts as usize {
        wrong(format!("counts {} attempts, {} exist", ti.attempts, own.len()));
    }
    if infra != ti.infra_losses as usize {
        wrong(format!("counts {} losses, {infra} were charged", ti.infra_losses));
    }
    if user > ti.max_tries as usize {
        wrong(format!("{user} failures were charged, it has {} tries", ti.max_tries));
    }
    if ti.try_number > ti.max_tries {
        wrong(format!("is at try {} of {}", ti.try_number, ti.max_tries));
    }
    let Some(task) = task else { return };
    // Each clear may find the budget spent and lose one more.
    let losses = u64::from(task.infra_retries) + 1 + u64::from(ti.clears);
    if u64::from(ti.infra_losses) > losses {
        wrong(format!("was lost {} times, at most {losses} are allowed", ti.infra_losses));
    }
    // `max_tries` holds a try for each clear.
    let allowed = u64::from(ti.max_tries) + u64::from(task.infra_retries);
    let executed = executions(own);
    if executed as u64 > allowed {
        wrong(format!("{executed} attempts were executed, at most {allowed} are allowed"));
    }
}

/// Attempts that started, less those proved not to have and the accepted deferrals.
fn executions(own: &[&AuditAttempt]) -> usize {
    let free = |outcome| matches!(outcome, Some(Outcome::NeverRan | Outcome::Deferred));
    own.iter().filter(|attempt| attempt.started && !free(attempt.outcome)).count()
}
