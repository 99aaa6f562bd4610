//! Mark: a person says how an instance ended. What runs is stopped first.

use super::stop;
use crate::Cx;
use crate::error::{EngineError, Refusal};
use crate::log;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{TiEvent, ti_next};
use fencepost_core::state::{AttemptState, StopReason, TiState};
use fencepost_store::query::attempt::{self, StopRequest};
use fencepost_store::query::event;
use fencepost_store::query::pool;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Ti, TiChange, TiKey};

/// What to mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkRequest {
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    pub map_index: Option<i32>,
    /// `success`, `failed` or `skipped`.
    pub state: TiState,
    pub dry_run: bool,
    /// Whatever is not held stays as it is.
    pub only_held: bool,
    pub by: String,
}

const MARKS: [(TiState, TiEvent); 3] = [
    (TiState::Success, TiEvent::MarkSuccess),
    (TiState::Failed, TiEvent::MarkFailed),
    (TiState::Skipped, TiEvent::MarkSkipped),
];

/// Marks; the instances that it concerns, as they were.
pub async fn mark(cx: &Cx, request: &MarkRequest) -> Result<Vec<Ti>, EngineError> {
    let Some((_, event)) = MARKS.iter().find(|(state, _)| *state == request.state) else {
        let state = request.state;
        let text = format!("a task cannot be marked {state}: success, failed or skipped");
        return Err(Refusal::Invalid(text).into());
    };
    let tx = cx.store.begin("mark").await?;
    let run = super::find_run(&tx, &request.dag_id, &request.run_id).await?;
    let version = cx.catalog.version(&tx, run.version_pk).await?;
    let task_index = version.task_index(&request.task_id).ok_or_else(|| Refusal::NoTask {
        run_id: request.run_id.clone(),
        task_id: request.task_id.clone(),
    })?;
    task_instance::lock_tasks(&tx, run.run_pk, &[task_index]).await?;
    let tis: Vec<Ti> = task_instance::of_tasks(&tx, run.run_pk, &[task_index])
        .await?
        .into_iter()
        .filter(|ti| request.map_index.is_none_or(|index| index == ti.key.map_index))
        .filter(|ti| ti.state != request.state)
        .filter(|ti| !request.only_held || ti.state == TiState::Held)
        .collect();
    if request.dry_run || tis.is_empty() {
        return Ok(tis);
    }
    let mut changes = Vec::new();
    for ti in &tis {
        let in_hand = match ti.token.filter(|_| ti.state.has_attempt()) {
            Some(token) => attempt::get(&tx, &[token]).await?,
            None => Vec::new(),
        };
        if in_hand.iter().any(|a| a.state != AttemptState::Ended) {
            let mark = Some(request.state.as_str());
            let stop = StopRequest { reason: StopReason::Mark, by: &request.by, mark };
            stop::stop_attempts(&tx, &in_hand, &stop).await?;
        } else if let Ok(to) = ti_next(ti.state, *event) {
            let mut change = TiChange::of(ti);
            change.to.state = to;
            stop::finish(&mut change.to, "mark", tx.now());
            changes.push(change);
        }
    }
    task_instance::change(&tx, &changes).await?;
    // What may still run of those that were held holds nothing any more.
    let held: Vec<Token> =
        tis.iter().filter(|ti| ti.state == TiState::Held).filter_map(|ti| ti.token).collect();
    pool::free(&tx, &held).await?;
    let lines = changes.iter().map(|c| log::ti_state(&c.to, c.from, &request.by)).collect();
    event::append(&tx, lines).await?;
    // A head that ends before its turn leaves the other instances of its task behind it.
    let early = changes.iter().filter(|c| c.from == TiState::None && c.to.key.map_index >= 0);
    let early: Vec<TiKey> = early.map(|c| c.to.key).collect();
    super::report::mark_heads(&tx, &early).await?;
    super::clear::recount(&tx, &version, &run, &tis).await?;
    if run::reopen(&tx, run.run_pk).await? {
        let line = log::run(&run, "run_state", "queued", &request.by, "mark");
        event::append(&tx, vec![line]).await?;
    }
    tx.commit().await?;
    cx.wakes.engine();
    cx.wakes.workers();
    Ok(tis)
}
