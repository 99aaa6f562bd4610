//! What people do with runs and DAGs as a whole: cancel, kill, pause, note, delete.

use super::{find_run, stop};
use crate::Cx;
use crate::error::{EngineError, Refusal};
use crate::log;
use crate::scheduler::first_look;
use fencepost_core::lifecycle::{RunEvent, run_next};
use fencepost_core::schedule::Calendar;
use fencepost_core::state::{AttemptState, RunState, StopReason};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, StopRequest};
use fencepost_store::query::attempt_log;
use fencepost_store::query::dag;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::outbox;
use fencepost_store::query::run::{self, Run, RunEnd};
use fencepost_store::query::task_instance;

/// Cancels a run: final at once if nothing of it runs; else when its last process is gone.
/// `kill` skips the grace of its tasks.
pub async fn cancel(
    cx: &Cx,
    dag_id: &str,
    run_id: &str,
    kill: bool,
    by: &str,
) -> Result<Run, EngineError> {
    let tx = cx.store.begin("cancel").await?;
    let run = find_run(&tx, dag_id, run_id).await?;
    if run.state.is_finished() {
        let what = format!("run `{run_id}`");
        return Err(Refusal::AlreadyTerminal { what, state: run.state.to_string() }.into());
    }
    if run.state == RunState::Queued {
        cancel_queued(&tx, &run, by).await?;
    } else {
        let reason = if kill { StopReason::Kill } else { StopReason::Cancel };
        stop::stop_run(&tx, &run, &stop::RunStop { reason, by }).await?;
    }
    let after = find_run(&tx, dag_id, run_id).await?;
    tx.commit().await?;
    cx.wakes.engine();
    cx.wakes.workers();
    Ok(after)
}

/// Ends a queued run, whose lock the caller has.
pub(crate) async fn cancel_queued(tx: &Tx, run: &Run, by: &str) -> Result<(), EngineError> {
    let Ok(to) = run_next(run.state, RunEvent::Cancel) else { return Ok(()) };
    // One that was cleared has instances already.
    task_instance::cancel_unstarted(tx, run.run_pk, "cancel", by).await?;
    let end = RunEnd { run_pk: run.run_pk, from: run.state, to, reason: "cancel" };
    run::end(tx, &[end]).await?;
    event::append(tx, vec![log::run(run, "run_state", to.as_str(), by, "cancel")]).await?;
    Ok(())
}

/// Kills one attempt: its task instance fails, and is not tried again.
pub async fn kill_attempt(cx: &Cx, attempt_ref: &AttemptRef, by: &str) -> Result<(), EngineError> {
    let tx = cx.store.begin("kill_attempt").await?;
    let token = find_attempt(&tx, attempt_ref).await?.token;
    task_instance::of_attempts(&tx, &[token]).await?;
    let found = attempt::get(&tx, &[token]).await?.into_iter().next();
    let found = found.ok_or_else(|| Refusal::NoAttempt(token.to_string()))?;
    if found.state == AttemptState::Ended {
        let outcome = found.outcome.map_or("ended", |outcome| outcome.as_str());
        let what = format!("attempt {}", found.token);
        return Err(Refusal::AlreadyTerminal { what, state: outcome.into() }.into());
    }
    let request = StopRequest { reason: StopReason::Kill, by, mark: Some("failed") };
    stop::stop_attempts(&tx, &[found], &request).await?;
    tx.commit().await?;
    cx.wakes.engine();
    cx.wakes.workers();
    Ok(())
}

/// How people name an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptRef {
    Id(fencepost_core::id::AttemptId),
    Token(fencepost_core::id::Token),
}

impl AttemptRef {
    /// A UUID, `EPOCH-COUNTER` or the full decimal of a token.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        if let Ok(token) = text.parse() {
            return Ok(Self::Token(token));
        }
        text.parse().map(Self::Id).map_err(|_| Refusal::NoAttempt(text.into()))
    }
}

/// The attempt of that name, without a lock.
pub async fn find_attempt(tx: &Tx, of: &AttemptRef) -> Result<attempt::Attempt, EngineError> {
    let (found, name) = match of {
        AttemptRef::Id(id) => (attempt::by_id(tx, *id).await?, id.to_string()),
        AttemptRef::Token(token) => {
            (attempt::look(tx, &[*token]).await?.into_iter().next(), token.to_string())
        }
    };
    found.ok_or_else(|| Refusal::NoAttempt(name).into())
}

/// Pauses or resumes a run: nothing new of it is queued while it is paused.
pub async fn pause_run(
    cx: &Cx,
    dag_id: &str,
    run_id: &str,
    paused: bool,
    by: &str,
) -> Result<Run, EngineError> {
    let tx = cx.store.begin("pause_run").await?;
    let run = find_run(&tx, dag_id, run_id).await?;
    run::pause(&tx, run.run_pk, paused).await?;
    let kind = if paused { "run_paused" } else { "run_resumed" };
    event::append(&tx, vec![log::run(&run, kind, run.state.as_str(), by, "")]).await?;
    let after = find_run(&tx, dag_id, run_id).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(after)
}

/// Writes a note on a run.
pub async fn note_run(cx: &Cx, dag_id: &str, run_id: &str, note: &str) -> Result<Run, EngineError> {
    let tx = cx.store.begin("note_run").await?;
    let run = find_run(&tx, dag_id, run_id).await?;
    run::note(&tx, run.run_pk, note).await?;
    let after = find_run(&tx, dag_id, run_id).await?;
    tx.commit().await?;
    Ok(after)
}

/// Deletes a run that is not running, with its instances, attempts and events; its logs follow
/// through the outbox.
pub async fn delete_run(cx: &Cx, dag_id: &str, run_id: &str, by: &str) -> Result<(), EngineError> {
    let tx = cx.store.begin("delete_run").await?;
    let run = find_run(&tx, dag_id, run_id).await?;
    if run.state == RunState::Running {
        let what = format!("run `{run_id}`");
        return Err(Refusal::StillActive { what, state: run.state.to_string() }.into());
    }
    let mut tokens: Vec<String> = Vec::new();
    let mut after = 0;
    loop {
        let page = attempt::of_run(&tx, run.run_pk, after, 1_000).await?;
        let received: Vec<_> = page.iter().map(|a| a.token).collect();
        attempt_log::remove(&tx, &received).await?;
        tokens.extend(page.iter().map(|a| a.token.as_i64().to_string()));
        match page.last() {
            Some(last) if page.len() == 1_000 => after = last.token.as_i64(),
            Some(_) | None => break,
        }
    }
    run::delete(&tx, run.run_pk).await?;
    for chunk in tokens.chunks(1_000) {
        outbox::insert(&tx, "purge_logs", &serde_json::json!(chunk)).await?;
    }
    let line = Event {
        kind: "run_deleted",
        dag_id: Some(dag_id.into()),
        actor: by.into(),
        reason: Some(run_id.into()),
        ..Event::default()
    };
    event::append(&tx, vec![line]).await?;
    tx.commit().await?;
    cx.wakes.workers();
    Ok(())
}

/// Pauses or unpauses a DAG. Unpausing applies its catch-up rule to what fell due meanwhile.
pub async fn pause_dag(
    cx: &Cx,
    dag_id: &str,
    paused: bool,
    by: &str,
) -> Result<dag::DagRow, EngineError> {
    let tx = cx.store.begin("pause_dag").await?;
    let mut row = dag::lock(&tx, dag_id).await?.ok_or_else(|| Refusal::NoDag(dag_id.to_owned()))?;
    if !paused && row.is_paused {
        let version = cx.catalog.version(&tx, row.version_pk).await?;
        if let Ok(calendar) = Calendar::new(&version.dag.timing) {
            let catchup = version.dag.timing.catchup;
            (row.slot_cursor, row.next_slot_at) =
                first_look(&calendar, catchup, row.slot_cursor, tx.now());
        }
    }
    dag::pause(&tx, &row, paused, paused.then_some(by)).await?;
    let line = Event {
        kind: if paused { "dag_paused" } else { "dag_unpaused" },
        dag_id: Some(dag_id.into()),
        actor: by.into(),
        ..Event::default()
    };
    event::append(&tx, vec![line]).await?;
    let after = dag::get(&tx, dag_id).await?.unwrap_or(row);
    tx.commit().await?;
    cx.wakes.engine();
    Ok(after)
}
