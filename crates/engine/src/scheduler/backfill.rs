//! Backfills go on: their slots become runs, these run within the backfill's own limit, and it ends
//! with the last of them.
//!
//! All of it happens under the lock of the backfill's row, one page a transaction: its place moves in
//! the transaction that makes the page's runs, so that a crash at any commit leaves it to be resumed,
//! and no two schedulers exceed its limit. Who has that lock waits for no run.

use super::start::{AGAIN, RUNS, readable, start};
use crate::error::EngineError;
use crate::log;
use crate::operations::backfill::line;
use crate::operations::clear::{self, ClearRequest};
use crate::operations::run_control::cancel_queued;
use crate::operations::stop::{self, RunStop};
use crate::{Cx, Report};
use fencepost_core::dag::Dag;
use fencepost_core::plan::backfill::action;
use fencepost_core::schedule::{Calendar, Slot};
use fencepost_core::state::{BackfillState, RunState, RunType, SlotAction, StopReason};
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::backfill::{self, Backfill, Found};
use fencepost_store::query::dag;
use fencepost_store::query::event;
use fencepost_store::query::run::{self, NewRun};
use std::collections::BTreeMap;

/// Backfills looked at in one statement.
const MANY: u32 = 100;
/// Slots handled in one transaction.
const SLOTS: usize = 64;
/// Runs cleared in one transaction.
const RERUNS: usize = 4;
/// Transactions of one backfill in one pass: a long one holds up nobody for long.
const TURNS: usize = 16;
/// Runs of a backfill that may wait.
const AHEAD: i64 = 64;
/// Runs stopped in one transaction.
const STOPS: u32 = 16;

pub(super) async fn backfills(cx: &Cx) -> Result<Report, EngineError> {
    let mut report = Report::default();
    let mut after = 0;
    loop {
        let tx = cx.store.read("backfills").await?;
        let page = backfill::under_way(&tx, after, MANY).await?;
        drop(tx);
        for of in page.iter().filter(|of| may_move(of)) {
            for _ in 0..TURNS {
                if turn(cx, of.backfill_pk, &mut report).await? == 0 {
                    break;
                }
            }
        }
        match page.last() {
            Some(last) if page.len() == MANY as usize => after = last.backfill_pk,
            _ => return Ok(report),
        }
    }
}

/// Whether a write may come of a look at it: most looks find runs that run.
fn may_move(of: &Backfill) -> bool {
    of.state == BackfillState::Cancelling
        || (of.planned && of.queued + of.running == 0)
        || (!of.paused && ((!of.planned && of.queued < AHEAD) || has_room(of)))
}

fn has_room(of: &Backfill) -> bool {
    of.queued > 0 && of.running < of.max_active_runs
}

/// One transaction of a backfill; how much moved.
async fn turn(cx: &Cx, key: i64, report: &mut Report) -> Result<usize, EngineError> {
    let tx = cx.store.begin("backfill").await?;
    let Some(of) = backfill::take(&tx, key).await? else {
        let again = tx.now().plus(AGAIN);
        report.merge(Report { next_due: Some(again), ..Report::default() });
        return Ok(0);
    };
    let moved = match of.state {
        BackfillState::Completed | BackfillState::Cancelled => 0,
        BackfillState::Cancelling => stop_some(&tx, &of).await?,
        BackfillState::Running => match go_on(cx, &tx, &of, report).await {
            Ok(moved) => moved,
            // It stops only itself, until its version can be read.
            Err(error) => {
                let why = error.of_one_version()?;
                report.troubles.push(format!("backfill {key}: {why}"));
                return Ok(0);
            }
        },
    };
    if moved == 0 {
        return Ok(0);
    }
    tx.commit().await?;
    if of.state == BackfillState::Cancelling {
        cx.wakes.workers();
    }
    report.moved += moved;
    Ok(moved)
}

async fn go_on(cx: &Cx, tx: &Tx, of: &Backfill, report: &mut Report) -> Result<usize, EngineError> {
    if of.planned && of.queued + of.running == 0 {
        let step = (BackfillState::Running, BackfillState::Completed);
        return end(tx, of, step, "backfill_completed").await;
    }
    let dag = dag::get(tx, &of.dag_id).await?;
    if of.paused || dag.is_none_or(|dag| dag.is_paused) {
        return Ok(0);
    }
    let mut moved = 0;
    if !of.planned && of.queued < AHEAD {
        moved += make_some(cx, tx, of, report).await?;
    }
    let room = usize::try_from(of.max_active_runs - of.running).unwrap_or(0).min(RUNS as usize);
    if room > 0 {
        let queued = run::queued_of(tx, of.backfill_pk, of.backwards, RUNS).await?;
        let ready = readable(cx, tx, queued, room, report).await?;
        moved += ready.len();
        start(cx, tx, &ready).await?;
    }
    Ok(moved)
}

async fn end(
    tx: &Tx,
    of: &Backfill,
    step: (BackfillState, BackfillState),
    kind: &'static str,
) -> Result<usize, EngineError> {
    let ended = backfill::set_state(tx, of.backfill_pk, step, None).await?;
    if ended {
        event::append(tx, vec![line(kind, of, log::SCHEDULER)]).await?;
    }
    Ok(usize::from(ended))
}

/// Handles a page of slots, and moves the place behind it: either such as run again, or such as do not.
async fn make_some(
    cx: &Cx,
    tx: &Tx,
    of: &Backfill,
    report: &mut Report,
) -> Result<usize, EngineError> {
    let version = cx.catalog.version(tx, of.version_pk).await?;
    let (range, place) = ((of.from_date, of.to_date), (of.place, of.backwards));
    let slots = Calendar::new(&version.dag.timing)
        .map(|calendar| calendar.between(range, of.created_at, place, SLOTS))
        .unwrap_or_default();
    let first = there(tx, of, slots.get(..1).unwrap_or_default()).await?;
    let reruns = slots.first().is_some_and(|slot| decided(of, &first, slot) == SlotAction::Rerun);
    let done = if reruns {
        rerun_some(cx, tx, of, &slots, report).await?
    } else if dag::take(tx, &of.dag_id).await?.is_some() {
        // A slot has one run: the schedule makes its own under the lock of the DAG.
        make(tx, of, &version.dag, &slots).await?
    } else {
        report.merge(Report { next_due: Some(tx.now().plus(AGAIN)), ..Report::default() });
        return Ok(0);
    };
    backfill::insert_slots(tx, of.backfill_pk, &done).await?;
    let last = done.len().checked_sub(1).and_then(|at| slots.get(at)).map(|slot| slot.due_at);
    let planned = done.len() == slots.len() && slots.len() < SLOTS;
    if done.is_empty() && !planned {
        report.merge(Report { next_due: Some(tx.now().plus(AGAIN)), ..Report::default() });
        return Ok(0);
    }
    backfill::move_on(tx, of.backfill_pk, last.or(of.place), planned).await?;
    Ok(done.len() + usize::from(planned))
}

/// What was done with a slot, and its run.
type Done = (Timestamp, SlotAction, i64);

/// The runs that are there, by their dates.
async fn there(
    tx: &Tx,
    of: &Backfill,
    slots: &[Slot],
) -> Result<BTreeMap<Timestamp, Found>, EngineError> {
    let dates: Vec<Timestamp> = slots.iter().map(|slot| slot.logical_date).collect();
    let found = backfill::found(tx, &of.dag_id, &dates).await?;
    Ok(found.into_iter().map(|found| (found.logical_date, found)).collect())
}

fn decided(of: &Backfill, there: &BTreeMap<Timestamp, Found>, slot: &Slot) -> SlotAction {
    action(of.reprocess, there.get(&slot.logical_date).map(|found| found.state))
}

/// Clears the runs of the first slots, as long as they run again; few at a time, since a run may be large.
async fn rerun_some(
    cx: &Cx,
    tx: &Tx,
    of: &Backfill,
    slots: &[Slot],
    report: &mut Report,
) -> Result<Vec<Done>, EngineError> {
    let slots = slots.get(..RERUNS.min(slots.len())).unwrap_or_default();
    let there = there(tx, of, slots).await?;
    let mut done = Vec::new();
    for slot in slots {
        let Some(found) = there.get(&slot.logical_date) else { break };
        if decided(of, &there, slot) != SlotAction::Rerun {
            break;
        }
        // Somebody may have that run in hand: the page ends before it.
        let Some(what) = rerun(cx, tx, of, found, report).await? else { break };
        done.push((slot.logical_date, what, found.run_pk));
    }
    Ok(done)
}

/// Makes the runs of the first slots, as long as none runs again; those that have a run keep it.
async fn make(tx: &Tx, of: &Backfill, dag: &Dag, slots: &[Slot]) -> Result<Vec<Done>, EngineError> {
    let there = there(tx, of, slots).await?;
    let again = |slot: &&Slot| decided(of, &there, slot) != SlotAction::Rerun;
    let slots: Vec<&Slot> = slots.iter().take_while(again).collect();
    let missing = slots.iter().filter(|slot| decided(of, &there, slot) == SlotAction::Created);
    let new: Vec<NewRun> = missing.map(|slot| new_run(of, dag, slot, tx.now())).collect();
    let made = run::insert(tx, &new).await?;
    let (mut lines, mut keys, mut runs) = (Vec::new(), Vec::new(), BTreeMap::new());
    for (new, is_new) in new.iter().zip(made) {
        let Some(found) = run::get(tx, &new.dag_id, &new.run_id).await? else { continue };
        // A run of that name and another date is a person's: it is left alone.
        let what = if is_new { SlotAction::Created } else { SlotAction::Kept };
        runs.insert(new.logical_date, (what, found.run_pk));
        if is_new {
            keys.push(found.run_pk);
            let why = format!("backfill {}", of.backfill_pk);
            lines.push(log::run(&found, "run_created", "queued", log::SCHEDULER, &why));
        }
    }
    backfill::adopt(tx, of.backfill_pk, &keys).await?;
    event::append(tx, lines).await?;
    let done = slots.iter().map(|slot| {
        let date = slot.logical_date;
        let kept = there.get(&date).map(|found| (decided(of, &there, slot), found.run_pk));
        let (what, run_pk) =
            runs.get(&Some(date)).copied().or(kept).unwrap_or((SlotAction::Kept, 0));
        (date, what, run_pk)
    });
    Ok(done.collect())
}

fn new_run(of: &Backfill, dag: &Dag, slot: &Slot, now: Timestamp) -> NewRun {
    NewRun {
        dag_id: of.dag_id.clone(),
        run_id: format!("backfill__{}", slot.logical_date.to_jiff()),
        version_pk: of.version_pk,
        run_type: RunType::Backfill,
        logical_date: Some(slot.logical_date),
        interval: Some((slot.interval_start, slot.interval_end)),
        run_after: slot.due_at,
        conf: of.conf.clone(),
        params: of.params.clone(),
        note: None,
        triggered_by: of.created_by.clone(),
        calls: dag.calls(),
        alert_at: dag.alert_at(RunType::Backfill, slot.due_at, now),
    }
}

/// Clears a run that is over, so that it runs again in this backfill's limit; `None`: somebody has it
/// in hand.
async fn rerun(
    cx: &Cx,
    tx: &Tx,
    of: &Backfill,
    found: &Found,
    report: &mut Report,
) -> Result<Option<SlotAction>, EngineError> {
    let Some(run) = run::take(tx, &[found.run_pk]).await?.pop() else { return Ok(None) };
    // Since it was looked at somebody may have cleared it.
    if action(of.reprocess, Some(run.state)) != SlotAction::Rerun {
        return Ok(Some(action(of.reprocess, Some(run.state))));
    }
    let request = ClearRequest {
        dag_id: run.dag_id.clone(),
        run_id: run.run_id.clone(),
        by: of.created_by.clone(),
        ..ClearRequest::default()
    };
    if let Err(error) = clear::clear_run(cx, tx, &run, &request).await {
        let why = error.of_one_version()?;
        report.troubles.push(format!("backfill {}: {}: {why}", of.backfill_pk, run.run_id));
        return Ok(Some(SlotAction::Kept));
    }
    // One that was cancelled before it began has nothing to clear.
    if run::reopen(tx, run.run_pk).await? {
        let line = log::run(&run, "run_state", "queued", &of.created_by, "clear");
        event::append(tx, vec![line]).await?;
    }
    backfill::adopt(tx, of.backfill_pk, &[run.run_pk]).await?;
    Ok(Some(SlotAction::Rerun))
}

/// Cancels what waits and stops what runs, page by page; with the last of them it is cancelled.
async fn stop_some(tx: &Tx, of: &Backfill) -> Result<usize, EngineError> {
    if of.queued + of.running == 0 {
        let step = (BackfillState::Cancelling, BackfillState::Cancelled);
        return end(tx, of, step, "backfill_cancelled").await;
    }
    let by = of.stopped_by.as_deref().unwrap_or(log::SCHEDULER);
    let queued = run::open_of(tx, of.backfill_pk, RunState::Queued, STOPS).await?;
    for run in &queued {
        cancel_queued(tx, run, by).await?;
    }
    if !queued.is_empty() {
        return Ok(queued.len());
    }
    let running = run::unstopped_of(tx, of.backfill_pk, STOPS).await?;
    for run in &running {
        stop::stop_run(tx, run, &RunStop { reason: StopReason::Cancel, by }).await?;
    }
    Ok(running.len())
}
