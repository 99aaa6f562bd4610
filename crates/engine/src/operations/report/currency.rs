//! Whether a report is about the current attempt of its instance, and comes from whom it should.

use super::EndReport;
use crate::operations::Refused;
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::id::JobId;
use fencepost_core::state::{AttemptState, Outcome};
use fencepost_core::verdict::Ending;
use fencepost_store::query::attempt::Attempt;
use fencepost_store::query::task_instance::Ti;

pub(super) enum Currency {
    Current,
    Again,
    /// The instance is over; what is left of the attempt is closed.
    Afterwards,
    Refused(Refused, String),
}

pub(super) fn current(
    attempt: &Attempt,
    ti: &Ti,
    (job_id, is_kin): (JobId, bool),
    report: &EndReport,
    guards: Guards,
) -> Currency {
    let checks = guards.on(Guard::FinishToken);
    if attempt.state == AttemptState::Ended {
        if attempt.report_digest.as_deref() == Some(report.digest.as_str()) {
            return Currency::Again;
        }
        if !checks {
            return Currency::Current;
        }
        let why = match attempt.outcome {
            Some(Outcome::Cancelled | Outcome::Cleared) => Refused::Cancelled,
            _ if ti.token != Some(attempt.token) => Refused::Superseded,
            _ => Refused::NotRunning,
        };
        let outcome = attempt.outcome.map_or("ended", Outcome::as_str);
        return Currency::Refused(why, format!("the attempt has ended: {outcome}"));
    }
    if ti.token != Some(attempt.token) && checks {
        return Currency::Refused(Refused::Superseded, "a newer attempt exists".into());
    }
    if attempt.job_id != Some(job_id) && !is_kin {
        return Currency::Refused(Refused::RunningElsewhere, "another worker has it".into());
    }
    let unstarted = matches!(attempt.state, AttemptState::Queued | AttemptState::Claimed);
    if unstarted && report.ending != Ending::NeverRan {
        let text = format!("the attempt is {}: it was never started", attempt.state);
        return Currency::Refused(Refused::NotRunning, text);
    }
    if attempt.state == AttemptState::LostOpen && ti.state.is_finished() {
        return Currency::Afterwards;
    }
    Currency::Current
}
