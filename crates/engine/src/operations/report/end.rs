//! What the end of an attempt writes: into its instance, into its own row.

use super::EndReport;
use fencepost_core::dag::{Action, Task};
use fencepost_core::id::TaskId;
use fencepost_core::lifecycle::TiEvent;
use fencepost_core::state::{CountedAs, Outcome, StopReason, TiState};
use fencepost_core::time::Timestamp;
use fencepost_core::verdict::{Death, Ending, Verdict};
use fencepost_store::query::attempt::{Attempt, AttemptEnd};
use fencepost_store::query::task_instance::Ti;
use serde_json::{Value, json};

/// What a verdict writes into the task instance besides its state.
pub(crate) fn follow(ti: &mut Ti, report: &EndReport, verdict: &Verdict, now: Timestamp) {
    let asks = verdict.event == TiEvent::Hold && verdict.outcome == Outcome::Failed;
    ti.reason = Some(if asks { "awaiting_person".into() } else { verdict.reason.clone() });
    ti.retry_at = None;
    if verdict.stays_open {
        // What it comes to is decided when its death is confirmed, or by a person.
        ti.requeues = 0;
    } else if verdict.outcome == Outcome::NeverRan {
        ti.requeues += 1;
    } else {
        ti.requeues = 0;
        ti.prev_outcome = prev_outcome(verdict.outcome).into();
    }
    if verdict.counted_as == CountedAs::Infra {
        ti.infra_losses += 1;
        let alone = [Ending::Gone(Death::Single), Ending::Expired(Death::Single)];
        ti.single_deaths += u32::from(alone.contains(&report.ending));
    }
    if ti.state.is_finished() {
        ti.ended_at = Some(now);
        ti.forward_due = true;
        return;
    }
    match ti.state {
        TiState::UpForRetry => {
            ti.retry_at = Some(now.plus(verdict.delay.unwrap_or_default()));
            ti.try_number += 1;
            ti.next_why = "retry".into();
            ti.ended_at = Some(now);
        }
        TiState::Scheduled => {
            ti.next_why = "replaces".into();
            ti.scheduled_at = Some(now);
        }
        TiState::None => {
            ti.next_why = "cleared".into();
            ti.started_at = None;
            ti.ended_at = None;
        }
        TiState::Queued
        | TiState::Running
        | TiState::Deferred
        | TiState::Restarting
        | TiState::Held
        | TiState::Success
        | TiState::Failed
        | TiState::Skipped
        | TiState::UpstreamFailed
        | TiState::Removed => {}
    }
}

fn prev_outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed | Outcome::Fenced => "failed",
        Outcome::Lost | Outcome::Released => "lost",
        Outcome::Deferred => "deferred",
        Outcome::Success
        | Outcome::Skipped
        | Outcome::Cancelled
        | Outcome::Cleared
        | Outcome::NeverRan => "cleared",
    }
}

/// A worker that drains has seen the end of what it ended.
const DRAIN: &str = "drain";

pub(super) fn evidence(report: &EndReport, attempt: &Attempt, now: Timestamp) -> Option<Value> {
    report.evidence.as_ref().map(|kind| {
        json!({
            "kind": if kind == DRAIN { "exit_status" } else { kind },
            "at": now.to_string(),
            "job": attempt.job_id.map(|job| job.to_string()),
        })
    })
}

pub(super) fn ended(
    attempt: &Attempt,
    report: &EndReport,
    verdict: &Verdict,
    evidence: Option<Value>,
) -> AttemptEnd {
    let by_worker = report.evidence.as_deref().filter(|kind| ["self_fence", DRAIN].contains(kind));
    let is_lost =
        verdict.outcome == Outcome::Lost && attempt.stop_reason != Some(StopReason::Cancel);
    let by_worker = by_worker.filter(|_| is_lost);
    AttemptEnd {
        token: attempt.token,
        from: attempt.state,
        outcome: verdict.outcome,
        reason: by_worker.map_or_else(|| verdict.reason.clone(), Into::into),
        message: report.message.clone(),
        exit_code: report.exit_code,
        signal: report.signal,
        counted_as: verdict.counted_as,
        evidence: evidence.map(|json| json.to_string()),
        report_digest: Some(report.digest.clone()),
        containment: report.level.clone(),
    }
}

/// Where a mark leads.
pub(super) fn mark_event(attempt: &Attempt) -> Option<TiEvent> {
    match attempt.stop_mark.as_deref() {
        Some("success") => Some(TiEvent::MarkSuccess),
        Some("skipped") => Some(TiEvent::MarkSkipped),
        Some("failed") => Some(TiEvent::MarkFailed),
        _ => None,
    }
}

/// A claim that ends without a start costs nothing and is replaced at once, a bounded number of
/// times.
pub(crate) fn unstarted(ti: &Ti, requeue_limit: u32) -> Verdict {
    let event = if ti.requeues >= requeue_limit { TiEvent::GiveUp } else { TiEvent::Requeue };
    Verdict {
        outcome: Outcome::NeverRan,
        event,
        reason: "never_ran".into(),
        counted_as: CountedAs::None,
        delay: None,
        stays_open: false,
    }
}

/// What is assumed of a task whose version cannot be read: the defaults; its tries are in its row.
pub(super) fn task_of_unknown_version() -> Option<Task> {
    let task_id = TaskId::new("unknown").ok()?;
    Task::with_defaults(task_id, Action::Noop).ok()
}
