//! What a worker says of an attempt that was handed over to it, or that it was asked about.

use super::{Answer, Refused, owner};
use crate::Cx;
use crate::error::EngineError;
use crate::liveness::gate;
use crate::log;
use fencepost_core::id::{JobId, Token};
use fencepost_core::lifecycle::{AttemptEvent, TiEvent, TiRecord, attempt_next, step};
use fencepost_core::state::AttemptState;
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, Claimer, Reclaim};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::task_instance::{self, Ti, TiChange};
use fencepost_store::query::{installation, job};

/// What it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The shim lives and is its own now.
    Running { level: String },
    /// Proved under the lock not to have run: it may start it, under the same token.
    NeverRan,
}

/// What a worker says of an attempt in its hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub token: Token,
    /// The number of its call.
    pub call: i64,
    pub found: Found,
}

/// Records the answer. `NeverRan` takes an accepted start back, so that a new start id is accepted
/// for the same token; no new attempt is made. While an epoch is reconciled, `Running` records a claim
/// and a start again that the store has forgotten.
pub async fn take_over(cx: &Cx, job_id: JobId, said: &Said) -> Result<Answer, EngineError> {
    let token = said.token;
    let Some(acting) = owner::begin(cx, "take_over", job_id).await? else {
        return Ok(Answer::Refused(Refused::Fenced, "the worker's lease is over".into()));
    };
    let tx = acting.tx;
    let ti = task_instance::of_attempts(&tx, &[token]).await?.into_iter().next();
    let Some(own) = attempt::get(&tx, &[token]).await?.into_iter().next() else {
        return Ok(Answer::Refused(Refused::NotRunning, "no such attempt".into()));
    };
    let is_forgotten = may_be_forgotten(&tx, &own, job_id).await?;
    if (own.job_id != Some(job_id) && !is_forgotten) || own.state == AttemptState::Ended {
        return Ok(Answer::Refused(Refused::Superseded, format!("it is {}", own.state)));
    }
    let Some(ti) = ti.filter(|ti| ti.token == Some(token)) else {
        return Ok(Answer::Refused(Refused::Superseded, "a newer attempt exists".into()));
    };
    let line = match &said.found {
        Found::Running { level } if is_forgotten => {
            let Some(line) = record_again(&tx, job_id, said, (&own, &ti)).await? else {
                return Ok(Answer::Refused(Refused::NotRunning, format!("it is {}", own.state)));
            };
            set_level(&tx, token, level).await?;
            line
        }
        Found::Running { level } => {
            set_level(&tx, token, level).await?;
            line(&ti, "reattached")
        }
        Found::NeverRan if own.state == AttemptState::Running => {
            attempt::unstart(&tx, token, job_id).await?;
            line(&ti, "start_taken_back")
        }
        Found::NeverRan => line(&ti, "claim_kept"),
    };
    attempt::answered(&tx, token, job_id, said.call).await?;
    event::append(&tx, vec![line]).await?;
    tx.commit().await?;
    Ok(Answer::Accepted)
}

/// A level that is not known yet changes nothing.
async fn set_level(tx: &Tx, token: Token, level: &str) -> Result<(), EngineError> {
    if level.is_empty() {
        return Ok(());
    }
    Ok(attempt::set_level(tx, token, level).await?)
}

fn line(ti: &Ti, kind: &'static str) -> Event {
    let mut line = log::ti_state(ti, ti.state, "worker");
    line.kind = kind;
    line.to = None;
    line
}

/// Whether the store shows an attempt as waiting, or as claimed and not started, and may have lost what
/// made it more.
async fn may_be_forgotten(tx: &Tx, own: &Attempt, job_id: JobId) -> Result<bool, EngineError> {
    let is_early = match own.state {
        AttemptState::Queued => true,
        AttemptState::Claimed => own.job_id == Some(job_id),
        AttemptState::Running
        | AttemptState::Stopping
        | AttemptState::LostOpen
        | AttemptState::Ended => false,
    };
    let standing = if is_early { installation::standing(tx).await? } else { None };
    Ok(standing.is_some_and(|standing| !gate::is_reconciled(&standing)))
}

/// The claim and the start of an attempt that runs; nothing if the tables do not allow it.
async fn record_again(
    tx: &Tx,
    job_id: JobId,
    said: &Said,
    (own, ti): (&Attempt, &Ti),
) -> Result<Option<Event>, EngineError> {
    let Some(job) = job::get(tx, job_id).await? else { return Ok(None) };
    let claimed = if own.state == AttemptState::Queued {
        attempt_next(own.state, AttemptEvent::Claim)
    } else {
        Ok(own.state)
    };
    let started = claimed.and_then(|state| attempt_next(state, AttemptEvent::Start));
    let record = TiRecord { state: ti.state, token: ti.token };
    let (Ok(_), Ok(to)) = (started, step(&record, TiEvent::Start, Some(own.token))) else {
        return Ok(None);
    };
    let start_id = format!("{job_id}:again");
    let by = Claimer { job_id, worker: &job.name, host: &job.host, call: said.call };
    let (token, boot_id) = (own.token, job.boot_id.as_str());
    let again = Reclaim { token, by, start_id: &start_id, boot_id };
    let mut change = TiChange::of(ti);
    change.to.state = to;
    change.to.started_at = Some(tx.now());
    change.to.ended_at = None;
    change.to.reason = None;
    let changed = task_instance::change(tx, std::slice::from_ref(&change)).await?;
    if changed.contains(&false) || !attempt::reclaim(tx, &again).await? {
        return Ok(None);
    }
    let mut line = log::ti_state(&change.to, ti.state, "worker");
    line.kind = "claim_recorded_again";
    line.evidence =
        Some(serde_json::json!({ "job": job_id.to_string(), "was": own.state.as_str() }));
    Ok(Some(line))
}
