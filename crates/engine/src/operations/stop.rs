//! The one mechanism behind cancel, clear, mark and time-outs.
//!
//! What has not started is final at once. What runs is asked to stop: from that commit its success
//! is refused, and its instance, slots and run stay as they are until its tree is reported gone.

use crate::error::EngineError;
use crate::log;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{AttemptEvent, TiEvent, attempt_next, ti_next};
use fencepost_core::state::{AttemptState, CountedAs, Outcome, StopReason, TiState};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt, AttemptEnd, StopRequest};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::pool;
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, Ti, TiChange, TiKey};
use std::collections::BTreeMap;

/// A stop of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStop<'a> {
    pub reason: StopReason,
    pub by: &'a str,
}

/// Stops a running run, whose lock the caller has: it ends when its last process is gone. The caller wakes the workers after
/// the commit.
pub async fn stop_run(tx: &Tx, run: &Run, request: &RunStop<'_>) -> Result<(), EngineError> {
    let first = run::stop(tx, run.run_pk, request.reason, request.by).await?;
    let word = request.reason.as_str();
    task_instance::lock_unfinished(tx, run.run_pk).await?;
    attempt::lock_in_hand(tx, run.run_pk).await?;
    task_instance::cancel_unstarted(tx, run.run_pk, word, request.by).await?;
    let in_hand = attempt::in_hand(tx, run.run_pk).await?;
    let stop = StopRequest { reason: request.reason, by: request.by, mark: None };
    stop_attempts(tx, &in_hand, &stop).await?;
    if first {
        let line = log::run(run, "stop_requested", run.state.as_str(), request.by, word);
        event::append(tx, vec![line]).await?;
    }
    Ok(())
}

/// Stops attempts: queued and claimed ones end at once with their instances cancelled, running
/// ones are asked to. The caller has their locks, and those of their instances.
pub(crate) async fn stop_attempts(
    tx: &Tx,
    attempts: &[Attempt],
    request: &StopRequest<'_>,
) -> Result<(), EngineError> {
    let (unstarted, started): (Vec<&Attempt>, Vec<&Attempt>) = attempts
        .iter()
        .filter(|a| a.state != AttemptState::Ended)
        .partition(|a| matches!(a.state, AttemptState::Queued | AttemptState::Claimed));
    cancel_unstarted(tx, &unstarted, request).await?;
    let running = |state| {
        started.iter().filter(move |a| a.state == state).map(|a| a.token).collect::<Vec<Token>>()
    };
    attempt::stop(tx, &running(AttemptState::Running), request).await?;
    attempt::change_stop(tx, &running(AttemptState::Stopping), request).await?;
    if request.reason != StopReason::Clear {
        // Decided: what may still run holds nothing any more.
        pool::free(tx, &running(AttemptState::LostOpen)).await?;
    }
    let lines = started.iter().map(|a| stop_line(a, request)).collect();
    event::append(tx, lines).await?;
    Ok(())
}

fn stop_line(attempt: &Attempt, request: &StopRequest<'_>) -> Event {
    Event {
        kind: "stop_requested",
        dag_id: Some(attempt.dag_id.clone()),
        run_pk: Some(attempt.ti.run_pk),
        map_index: Some(attempt.ti.map_index),
        token: Some(attempt.token),
        actor: request.by.into(),
        reason: Some(request.reason.as_str().into()),
        ..Event::default()
    }
}

async fn cancel_unstarted(
    tx: &Tx,
    attempts: &[&Attempt],
    request: &StopRequest<'_>,
) -> Result<(), EngineError> {
    let keys: Vec<TiKey> = attempts.iter().map(|attempt| attempt.ti).collect();
    let tis: BTreeMap<TiKey, Ti> =
        task_instance::get(tx, &keys).await?.into_iter().map(|ti| (ti.key, ti)).collect();
    let mut changes = Vec::new();
    let ends: Vec<AttemptEnd> = attempts
        .iter()
        .filter_map(|attempt| end_unstarted(attempt, Outcome::Cancelled, request.reason.as_str()))
        .collect();
    for attempt in attempts {
        let Some(ti) = tis.get(&attempt.ti).filter(|ti| ti.token == Some(attempt.token)) else {
            continue;
        };
        let Ok(to) = ti_next(ti.state, unstarted_event(request)) else { continue };
        let mut change = TiChange::of(ti);
        change.to.state = to;
        finish(&mut change.to, request.reason.as_str(), tx.now());
        changes.push(change);
    }
    end_all(tx, &ends).await?;
    task_instance::change(tx, &changes).await?;
    let lines = changes.iter().map(|c| log::ti_state(&c.to, c.from, request.by)).collect();
    event::append(tx, lines).await?;
    Ok(())
}

fn unstarted_event(request: &StopRequest<'_>) -> TiEvent {
    match request.mark {
        Some("success") => TiEvent::MarkSuccess,
        Some("failed") => TiEvent::MarkFailed,
        Some("skipped") => TiEvent::MarkSkipped,
        _ => TiEvent::Cancel,
    }
}

/// The end of an attempt that had not started.
pub(crate) fn end_unstarted(
    attempt: &Attempt,
    outcome: Outcome,
    reason: &str,
) -> Option<AttemptEnd> {
    attempt_next(attempt.state, AttemptEvent::End(outcome)).ok()?;
    Some(AttemptEnd {
        token: attempt.token,
        from: attempt.state,
        outcome,
        reason: reason.into(),
        message: None,
        exit_code: None,
        signal: None,
        counted_as: CountedAs::None,
        evidence: None,
        report_digest: None,
        containment: None,
    })
}

/// Ends attempts and frees what they hold.
pub(crate) async fn end_all(tx: &Tx, ends: &[AttemptEnd]) -> Result<(), EngineError> {
    attempt::end(tx, ends).await?;
    let tokens: Vec<Token> = ends.iter().map(|end| end.token).collect();
    pool::free(tx, &tokens).await?;
    Ok(())
}

/// Marks an instance as ended and not counted yet.
pub(crate) fn finish(ti: &mut Ti, reason: &str, now: fencepost_core::time::Timestamp) {
    debug_assert!(ti.state.is_finished() || ti.state == TiState::None);
    ti.reason = Some(reason.into());
    ti.retry_at = None;
    ti.ended_at = Some(now);
    ti.forward_due = true;
    // The mark of a mapped task's head is also for the instances behind it.
    if ti.key.map_index < 0 {
        ti.recheck = 0;
    }
}
