//! Slots that give way: those past their `start_deadline`, and those that `overlap` does not let
//! wait while the DAG's places are taken. Each becomes a run in state `missed`, once, with its reason.
//!
//! Only slots of the schedule that have not begun give way, and only a run of the schedule is
//! replaced: what a person asked for waits, and is stopped by nobody but a person.

use super::start::AGAIN;
use crate::error::EngineError;
use crate::log;
use crate::operations::stop::{self, RunStop};
use crate::{Cx, Report};
use fencepost_core::lifecycle::{RunEvent, run_next};
use fencepost_core::schedule::{Overlap, SlotPolicy};
use fencepost_core::state::{RunState, StopReason};
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::dag::DagRow;
use fencepost_store::query::event;
use fencepost_store::query::run::{self, Run, RunEnd};
use std::collections::BTreeMap;

/// Slots of a DAG missed in one transaction.
const SLOTS: u32 = 500;
/// Who stops a run that is replaced.
const BY: &str = "scheduler (overlap: replace)";

/// What the newest version of a DAG says. One that cannot be read lets its slots wait.
pub(super) async fn policy(
    cx: &Cx,
    tx: &Tx,
    row: &DagRow,
    report: &mut Report,
) -> Result<SlotPolicy, EngineError> {
    match cx.catalog.version(tx, row.version_pk).await {
        Ok(version) => Ok(version.dag.slots),
        Err(error) => {
            let why = error.of_one_version()?;
            report.troubles.push(format!("{}: {why}", row.dag_id));
            Ok(SlotPolicy::default())
        }
    }
}

/// Misses the waiting slots of a DAG whose deadline is over; how many.
pub(super) async fn miss_late(
    tx: &Tx,
    dag_id: &str,
    policy: &SlotPolicy,
    report: &mut Report,
) -> Result<usize, EngineError> {
    let (Some(before), Some(deadline)) = (policy.late_before(tx.now()), policy.start_deadline)
    else {
        return Ok(0);
    };
    let missed = miss(tx, dag_id, before, SlotPolicy::LATE).await?;
    let oldest = run::slot_edges(tx, dag_id).await?.map(|(oldest, _)| oldest);
    // At the deadline itself it is still in time.
    let just_after = fencepost_core::time::Span::from_micros(1);
    let next_due = oldest.map(|due| due.plus(deadline).plus(just_after).max(tx.now()));
    report.merge(Report { next_due, ..Report::default() });
    Ok(missed)
}

/// With the DAG's places taken: misses the slots that may not wait on; how many, and the run that is
/// to be replaced.
pub(super) async fn give_way(
    tx: &Tx,
    dag_id: &str,
    overlap: Overlap,
) -> Result<(usize, Option<Run>), EngineError> {
    let Some((_, newest)) = run::slot_edges(tx, dag_id).await? else { return Ok((0, None)) };
    let Some(before) = overlap.missed_before(newest) else { return Ok((0, None)) };
    let missed = miss(tx, dag_id, before, overlap.reason()).await?;
    let oldest = match overlap {
        Overlap::Replace => run::oldest_slot(tx, dag_id).await?,
        Overlap::Queue | Overlap::Skip | Overlap::Latest => None,
    };
    Ok((missed, oldest.filter(|run| run.stop_reason.is_none())))
}

async fn miss(
    tx: &Tx,
    dag_id: &str,
    before: Timestamp,
    reason: &'static str,
) -> Result<usize, EngineError> {
    let slots = run::slots_before(tx, dag_id, before, SLOTS).await?;
    let slots: Vec<_> = slots.into_iter().map(|slot| (slot, reason)).collect();
    end(tx, &slots).await
}

/// Misses slots whose runs were made in this transaction, by run id.
pub(super) async fn miss_made(
    tx: &Tx,
    dag_id: &str,
    before: Timestamp,
    missed: &BTreeMap<&str, &'static str>,
) -> Result<usize, EngineError> {
    let slots = run::slots_before(tx, dag_id, before, u32::MAX).await?;
    let why = |slot: &Run| missed.get(slot.run_id.as_str()).copied();
    let slots: Vec<_> = slots.into_iter().filter_map(|s| why(&s).map(|why| (s, why))).collect();
    end(tx, &slots).await
}

async fn end(tx: &Tx, slots: &[(Run, &'static str)]) -> Result<usize, EngineError> {
    let mut ends = Vec::new();
    let mut lines = Vec::new();
    for (slot, reason) in slots {
        let Ok(to) = run_next(slot.state, RunEvent::Miss) else { continue };
        ends.push(RunEnd { run_pk: slot.run_pk, from: slot.state, to, reason });
        lines.push(log::run(slot, "run_state", to.as_str(), log::SCHEDULER, reason));
    }
    let ended = run::end(tx, &ends).await?;
    let lines = lines.into_iter().zip(ended).filter(|(_, ended)| *ended).map(|(line, _)| line);
    let lines: Vec<_> = lines.collect();
    let count = lines.len();
    event::append(tx, lines).await?;
    Ok(count)
}

/// Cancels a run in whose place a newer slot is to start: it keeps that place until its last process
/// is gone (I5). In a transaction of its own, since who holds a DAG's lock waits for no run.
pub(super) async fn replace(cx: &Cx, old: &Run, report: &mut Report) -> Result<(), EngineError> {
    let tx = cx.store.begin("replace_run").await?;
    let Some(run) = run::take(&tx, &[old.run_pk]).await?.pop() else {
        let again = tx.now().plus(AGAIN);
        report.merge(Report { next_due: Some(again), ..Report::default() });
        return Ok(());
    };
    // Since it was chosen the newer slot may have started elsewhere, or been cancelled.
    let waits = run::slot_edges(&tx, &run.dag_id).await?.is_some_and(|(_, at)| at > run.run_after);
    if run.state != RunState::Running || run.stop_reason.is_some() || !waits {
        return Ok(());
    }
    stop::stop_run(&tx, &run, &RunStop { reason: StopReason::Cancel, by: BY }).await?;
    tx.commit().await?;
    cx.wakes.workers();
    report.moved += 1;
    Ok(())
}
