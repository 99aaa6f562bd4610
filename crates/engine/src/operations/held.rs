//! A person decides about a task instance that is held.
//!
//! What is named is the attempt that was seen with it: an instance that has moved on meanwhile, by
//! evidence or by somebody else, is left alone. The ways are those of mark, clear and confirm-dead, which
//! here touch nothing that is not held.

use super::clear::{ClearRequest, clear};
use super::confirm_dead::confirm_dead;
use super::mark::{MarkRequest, mark};
use super::run_control::{AttemptRef, find_attempt};
use crate::Cx;
use crate::error::{EngineError, Refusal};
use fencepost_core::state::{AttemptState, TiState};
use fencepost_store::query::attempt::Attempt;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Ti};

/// What becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Success,
    Failed,
    /// It runs again: at once, or where the task wants the death confirmed first, after that.
    Rerun,
}

impl Decision {
    /// The decision of that name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "success" => Some(Self::Success),
            "failed" => Some(Self::Failed),
            "rerun" => Some(Self::Rerun),
            _ => None,
        }
    }
}

/// A decision about the held instance of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    pub attempt: AttemptRef,
    pub decision: Decision,
    /// The person also vouches that nothing of the attempt runs any more.
    pub confirm_dead: bool,
    pub by: String,
    pub reason: Option<String>,
}

/// Decides; the attempt that was named.
pub async fn resolve(cx: &Cx, request: &Resolve) -> Result<Attempt, EngineError> {
    let (found, ti, dag_id, run_id) = held(cx, &request.attempt).await?;
    let may_run = found.state != AttemptState::Ended;
    let vouch = async || {
        if request.confirm_dead && may_run {
            confirm_dead(cx, &request.attempt, &request.by, request.reason.as_deref()).await?;
        }
        Ok::<_, EngineError>(())
    };
    let map_index = Some(ti.key.map_index);
    let marked = match request.decision {
        Decision::Rerun => {
            // First: where only this was waited for, the confirmation itself starts it anew.
            vouch().await?;
            let tasks = vec![ti.task_id.clone()];
            let by = request.by.clone();
            let again = ClearRequest {
                dag_id,
                run_id,
                tasks,
                map_index,
                by,
                only_held: true,
                ..ClearRequest::default()
            };
            clear(cx, &again).await?;
            return Ok(found);
        }
        Decision::Success => TiState::Success,
        Decision::Failed => TiState::Failed,
    };
    let task_id = ti.task_id.clone();
    let by = request.by.clone();
    let (state, dry_run, only_held) = (marked, false, true);
    let decided = MarkRequest { dag_id, run_id, task_id, map_index, state, dry_run, only_held, by };
    if mark(cx, &decided).await?.is_empty() {
        return Err(not_held(&found, None).into());
    }
    // Afterwards: the death alone would let its task decide.
    vouch().await?;
    Ok(found)
}

/// The attempt and its instance, if that is held with this attempt as its newest.
async fn held(cx: &Cx, named: &AttemptRef) -> Result<(Attempt, Ti, String, String), EngineError> {
    let tx = cx.store.read("find_held").await?;
    let found = find_attempt(&tx, named).await?;
    let ti = task_instance::get(&tx, &[found.ti]).await?.pop();
    let run = run::by_pks(&tx, &[found.ti.run_pk]).await?.pop();
    let state = ti.as_ref().map(|ti| ti.state);
    let ti = ti.filter(|ti| ti.state == TiState::Held && ti.token == Some(found.token));
    let (Some(ti), Some(run)) = (ti, run) else { return Err(not_held(&found, state).into()) };
    let (dag_id, run_id) = (run.dag_id, run.run_id);
    Ok((found, ti, dag_id, run_id))
}

fn not_held(found: &Attempt, state: Option<TiState>) -> Refusal {
    let state = match state {
        Some(TiState::Held) => "held by a newer attempt".into(),
        Some(state) => format!("{state}, not held"),
        None => "not held any more".into(),
    };
    Refusal::AlreadyTerminal { what: format!("the task of attempt {}", found.token), state }
}
