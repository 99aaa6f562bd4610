//! What a worker says of an attempt that was handed over to it, or that it was asked about.

use super::{Answer, Refused, owner};
use crate::Cx;
use crate::error::EngineError;
use crate::log;
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_store::query::attempt;
use fencepost_store::query::event;
use fencepost_store::query::task_instance;

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
/// for the same token; no new attempt is made.
pub async fn take_over(cx: &Cx, job_id: JobId, said: &Said) -> Result<Answer, EngineError> {
    let token = said.token;
    let Some(tx) = owner::begin(cx, "take_over", job_id).await? else {
        return Ok(Answer::Refused(Refused::Fenced, "the worker's lease is over".into()));
    };
    let ti = task_instance::of_attempts(&tx, &[token]).await?.into_iter().next();
    let Some(own) = attempt::get(&tx, &[token]).await?.into_iter().next() else {
        return Ok(Answer::Refused(Refused::NotRunning, "no such attempt".into()));
    };
    if own.job_id != Some(job_id) || own.state == AttemptState::Ended {
        return Ok(Answer::Refused(Refused::Superseded, format!("it is {}", own.state)));
    }
    let Some(ti) = ti.filter(|ti| ti.token == Some(token)) else {
        return Ok(Answer::Refused(Refused::Superseded, "a newer attempt exists".into()));
    };
    let mut line = log::ti_state(&ti, ti.state, "worker");
    line.to = None;
    match &said.found {
        Found::Running { level } => {
            line.kind = "reattached";
            attempt::set_level(&tx, token, level).await?;
        }
        Found::NeverRan if own.state == AttemptState::Running => {
            line.kind = "start_taken_back";
            attempt::unstart(&tx, token, job_id).await?;
        }
        Found::NeverRan => line.kind = "claim_kept",
    }
    attempt::answered(&tx, token, job_id, said.call).await?;
    event::append(&tx, vec![line]).await?;
    tx.commit().await?;
    Ok(Answer::Accepted)
}
