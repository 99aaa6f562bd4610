//! Clear: instances run again. Old attempts and logs are kept.
//!
//! What runs is stopped first and comes back when its tree is gone (`restarting`); everything else
//! goes back to `none` at once and is decided by its trigger rule anew. The run opens again if it
//! was over. A clear gives one more try (I8); the idempotency key changes only for instances that
//! had ended in success, or with `new_keys`.

use super::stop;
use crate::Cx;
use crate::catalog::Version;
use crate::error::{EngineError, Refusal};
use crate::log;
use crate::scheduler::MARK_NOW;
use fencepost_core::dag::{Replace, TaskIndex};
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{TiEvent, ti_next};
use fencepost_core::plan::forward;
use fencepost_core::state::{AttemptState, Outcome, RunState, StopReason, TiState};
use fencepost_core::trigger_rule::UpstreamCounts;
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, AttemptEnd, StopRequest};
use fencepost_store::query::event;
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, StateCount, Ti, TiChange, TiKey};
use fencepost_store::query::xcom;
use std::collections::BTreeSet;

/// What to clear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClearRequest {
    pub dag_id: String,
    pub run_id: String,
    /// Empty: all tasks.
    pub tasks: Vec<String>,
    pub map_index: Option<i32>,
    pub downstream: bool,
    pub only_failed: bool,
    /// Whatever is not held stays as it is.
    pub only_held: bool,
    pub new_keys: bool,
    pub dry_run: bool,
    pub by: String,
}

/// What a clear does to one instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cleared {
    pub task_id: String,
    pub map_index: i32,
    pub state: TiState,
    /// Its next attempt has a new idempotency key.
    pub new_key: bool,
}

/// Clears, or with `dry_run` says what it would clear.
pub async fn clear(cx: &Cx, request: &ClearRequest) -> Result<Vec<Cleared>, EngineError> {
    let tx = cx.store.begin("clear").await?;
    let run = super::find_run(&tx, &request.dag_id, &request.run_id).await?;
    if run.state == RunState::Running && run.stop_reason.is_some() {
        let what = format!("run `{}`", run.run_id);
        let state = "being stopped; wait for its end".into();
        return Err(Refusal::StillActive { what, state }.into());
    }
    let preview = clear_run(cx, &tx, &run, request).await?;
    if request.dry_run || preview.is_empty() {
        return Ok(preview);
    }
    tx.commit().await?;
    cx.wakes.engine();
    cx.wakes.workers();
    Ok(preview)
}

/// Clears in a run whose lock the caller has, who commits and wakes engine and workers.
pub(crate) async fn clear_run(
    cx: &Cx,
    tx: &Tx,
    run: &Run,
    request: &ClearRequest,
) -> Result<Vec<Cleared>, EngineError> {
    let version = cx.catalog.version(tx, run.version_pk).await?;
    let tasks = selected(&version, request)?;
    let list: Vec<u32> = tasks.iter().copied().collect();
    if !request.dry_run {
        task_instance::lock_tasks(tx, run.run_pk, &list).await?;
    }
    let tis: Vec<Ti> = task_instance::of_tasks(tx, run.run_pk, &list)
        .await?
        .into_iter()
        .filter(|ti| wanted(ti, request))
        .collect();
    let preview = tis.iter().map(|ti| Cleared {
        task_id: ti.task_id.clone(),
        map_index: ti.key.map_index,
        state: ti.state,
        new_key: request.new_keys || ti.state == TiState::Success,
    });
    let preview: Vec<Cleared> = preview.collect();
    if request.dry_run || tis.is_empty() {
        return Ok(preview);
    }
    apply(tx, &version, &tis, request).await?;
    recount(tx, &version, run, &tis).await?;
    if run::reopen(tx, run.run_pk).await? {
        let line = log::run(run, "run_state", "queued", &request.by, "clear");
        event::append(tx, vec![line]).await?;
    }
    Ok(preview)
}

fn selected(version: &Version, request: &ClearRequest) -> Result<BTreeSet<u32>, EngineError> {
    let mut named = Vec::new();
    for task_id in &request.tasks {
        named.push(version.task_index(task_id).ok_or_else(|| Refusal::NoTask {
            run_id: request.run_id.clone(),
            task_id: task_id.clone(),
        })?);
    }
    if named.is_empty() {
        return Ok((0..u32::try_from(version.dag.tasks.len()).unwrap_or(0)).collect());
    }
    let named = if request.downstream {
        version.with_descendants(&named)
    } else {
        named.into_iter().collect()
    };
    if request.map_index.is_some() {
        return Ok(named);
    }
    let named: Vec<TaskIndex> = named.into_iter().map(TaskIndex).collect();
    let all = version.dag.with_setups_and_teardowns(&named);
    Ok(all.into_iter().map(|index| index.0).collect())
}

fn wanted(ti: &Ti, request: &ClearRequest) -> bool {
    let failed = matches!(ti.state, TiState::Failed | TiState::UpstreamFailed | TiState::Held);
    let index = request.map_index.is_none_or(|index| index == ti.key.map_index);
    let moved = !matches!(ti.state, TiState::None | TiState::Restarting);
    let held = ti.state == TiState::Held;
    index && moved && (!request.only_failed || failed) && (!request.only_held || held)
}

async fn apply(
    tx: &Tx,
    version: &Version,
    tis: &[Ti],
    request: &ClearRequest,
) -> Result<(), EngineError> {
    let mut changes: Vec<TiChange> = Vec::new();
    let mut ends: Vec<AttemptEnd> = Vec::new();
    let mut stops: Vec<Attempt> = Vec::new();
    let mut waiting: Vec<Token> = Vec::new();
    for ti in tis {
        let newest = match ti.token {
            Some(token) => attempt::get(tx, &[token]).await?.into_iter().next(),
            None => None,
        };
        let event =
            if ti.state == TiState::Running { TiEvent::ClearRunning } else { TiEvent::Clear };
        let Ok(to) = ti_next(ti.state, event) else { continue };
        match newest {
            // Nothing may start before its death is confirmed: the evidence starts the new attempt.
            Some(open) if waits_for_evidence(version, ti, &open) => {
                waiting.push(open.token);
                let mut change = TiChange::of(ti);
                renew(&mut change.to, ti, request);
                change.to.reason = Some("awaiting_evidence".into());
                changes.push(change);
                continue;
            }
            Some(running) if ti.state == TiState::Running => stops.push(running),
            Some(open) if open.outcome.is_none() => {
                ends.extend(stop::end_unstarted(&open, Outcome::Cleared, "clear"));
            }
            Some(_) | None => {}
        }
        let mut change = TiChange::of(ti);
        change.to.state = to;
        renew(&mut change.to, ti, request);
        changes.push(change);
    }
    stop::end_all(tx, &ends).await?;
    let request_stop = StopRequest { reason: StopReason::Clear, by: &request.by, mark: None };
    stop::stop_attempts(tx, &stops, &request_stop).await?;
    attempt::stop_open(tx, &waiting, &request_stop).await?;
    task_instance::change(tx, &changes).await?;
    let lines = changes.iter().map(|c| log::ti_state(&c.to, c.from, &request.by)).collect();
    event::append(tx, lines).await?;
    let gone = changes.iter().filter(|c| c.to.state == TiState::None);
    let keys: Vec<TiKey> = gone.map(|c| c.to.key).collect();
    for key in &keys {
        xcom::clear(tx, key.run_pk, &[(key.task_index, key.map_index)]).await?;
    }
    super::report::mark_heads(tx, &keys).await
}

fn waits_for_evidence(version: &Version, ti: &Ti, newest: &Attempt) -> bool {
    let task = version.dag.tasks.get(ti.key.task_index as usize);
    newest.state == AttemptState::LostOpen
        && task.is_some_and(|task| task.replace == Replace::AfterConfirmedDead)
}

/// The budgets and times of an instance that runs again.
fn renew(to: &mut Ti, from: &Ti, request: &ClearRequest) {
    to.reason = Some("clear".into());
    to.forward_due = false;
    to.retry_at = None;
    to.clears += 1;
    to.requeues = 0;
    to.next_why = "cleared".into();
    if from.attempts > 0 {
        to.max_tries += 1;
        // A try that waits for its turn is still to come.
        to.try_number += u32::from(from.state == TiState::Running || from.state.is_finished());
    }
    if request.new_keys || from.state == TiState::Success {
        to.generation += 1;
    }
    if to.state == TiState::None {
        to.scheduled_at = None;
        to.queued_at = None;
        to.started_at = None;
        to.ended_at = None;
        to.recheck = 0;
    }
}

/// Counts the upstream ends of everything below the cleared instances anew, and what is left of
/// the run.
pub(crate) async fn recount(
    tx: &Tx,
    version: &Version,
    run: &Run,
    touched: &[Ti],
) -> Result<(), EngineError> {
    let states = task_instance::states(tx, &[run.run_pk]).await?;
    let tasks: BTreeSet<u32> = touched
        .iter()
        .flat_map(|ti| version.downstreams.get(ti.key.task_index as usize).into_iter().flatten())
        .map(|down| down.0)
        .collect();
    let tasks: Vec<(i64, u32)> = tasks.into_iter().map(|task| (run.run_pk, task)).collect();
    let mut counts: Vec<(TiKey, UpstreamCounts)> = Vec::new();
    let mut marks: Vec<(TiKey, u32)> = Vec::new();
    for head in task_instance::heads(tx, &tasks).await? {
        counts.push((head.key, count(version, &head, &states)));
        if head.state == TiState::None {
            marks.push((head.key, MARK_NOW));
        }
    }
    task_instance::set_counts(tx, &counts).await?;
    task_instance::set_recheck(tx, &marks).await?;
    let left = |s: &StateCount| if s.state.is_finished() { s.uncounted } else { s.count };
    let unfinished = states.iter().map(|s| i64::from(left(s))).sum();
    run::set_unfinished(tx, run.run_pk, unfinished).await?;
    Ok(())
}

fn count(version: &Version, head: &Ti, states: &[StateCount]) -> UpstreamCounts {
    let mut counts = UpstreamCounts { total: head.upstream.total, ..UpstreamCounts::default() };
    let Some(task) = version.dag.tasks.get(head.key.task_index as usize) else { return counts };
    for s in states.iter().filter(|s| s.state.is_finished()) {
        if task.depends_on.iter().any(|up| up.0 == s.task_index) {
            for _ in s.uncounted..s.count {
                forward::count(&mut counts, s.state);
            }
        }
    }
    counts
}
