//! Slots that are due become queued runs, each exactly once.
//!
//! The place of a schedule is a column that moves by compare-and-set in the transaction that makes
//! its runs, and a run's id follows from its slot, so neither a crash nor a second scheduler makes
//! a run twice or skips a slot (I17, I31).

use super::overlap;
use crate::error::EngineError;
use crate::log;
use crate::{Cx, Report};
use fencepost_core::dag::Dag;
use fencepost_core::schedule::{Calendar, Catchup, Slot, SlotPolicy};
use fencepost_core::state::RunType;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::backfill;
use fencepost_store::query::dag::{self, DagRow};
use fencepost_store::query::event;
use fencepost_store::query::run::{self, NewRun};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// DAGs handled in one transaction.
const DAGS: u32 = 50;
/// Scheduled runs of a DAG that may wait beyond its `max_active_runs`: enough to start the next at
/// once, few enough that a catch-up over years does not fill the store.
pub(super) const AHEAD: i64 = 32;
/// Missed slots recorded in one transaction.
const MISSED: usize = 500;

pub(super) async fn create_runs(cx: &Cx) -> Result<Report, EngineError> {
    let mut report = Report::default();
    loop {
        let tx = cx.store.begin("create_runs").await?;
        let due = dag::due(&tx, DAGS).await?;
        let mut moved = 0;
        for row in &due {
            match create_for(cx, &tx, row).await {
                Ok(count) => moved += count,
                // A DAG that cannot be read stops only itself: its slot is put off.
                Err(error) => {
                    let why = error.of_one_version()?;
                    report.troubles.push(format!("{}: {why}", row.dag_id));
                    let later = tx.now().plus(Span::from_secs(60));
                    dag::advance(&tx, &row.dag_id, row.slot_cursor, row.slot_cursor, Some(later))
                        .await?;
                }
            }
        }
        report.next_due = dag::next_due(&tx).await?.filter(|at| *at > tx.now());
        tx.commit().await?;
        report.moved += moved;
        if moved == 0 || due.len() < DAGS as usize {
            return Ok(report);
        }
    }
}

/// Makes the runs of one DAG's due slots, as many as may wait; how many.
async fn create_for(cx: &Cx, tx: &Tx, row: &DagRow) -> Result<usize, EngineError> {
    let version = cx.catalog.version(tx, row.version_pk).await?;
    let Ok(calendar) = Calendar::new(&version.dag.timing) else {
        dag::advance(tx, &row.dag_id, row.slot_cursor, row.slot_cursor, None).await?;
        return Ok(0);
    };
    let waiting = run::count_waiting(tx, &row.dag_id).await?;
    let room = usize::try_from(row.max_active_runs + AHEAD - waiting).unwrap_or(0);
    if room == 0 {
        // Its runs wait already; the slots are looked at again when some have started.
        let later = tx.now().plus(Span::from_secs(5));
        dag::advance(tx, &row.dag_id, row.slot_cursor, row.slot_cursor, Some(later)).await?;
        return Ok(0);
    }
    let slots = due_slots(&calendar, &version.dag, row, tx.now(), room);
    let cursor = slots.last().map(|due| due.slot.due_at).or(row.slot_cursor);
    let next = next_slot(&calendar, cursor, tx.now());
    if !dag::advance(tx, &row.dag_id, row.slot_cursor, cursor, next).await? {
        return Ok(0);
    }
    let slots = unfilled(tx, &row.dag_id, slots).await?;
    let runs: Vec<NewRun> =
        slots.iter().map(|due| scheduled(row, &version.dag, &due.slot, tx.now())).collect();
    let made = run::insert(tx, &runs).await?;
    let new = || slots.iter().zip(&runs).zip(&made).filter(|(_, made)| **made).map(|(of, _)| of);
    let mut events = Vec::new();
    for (_, new) in new().filter(|(due, _)| due.missed.is_none()) {
        if let Some(found) = run::get(tx, &new.dag_id, &new.run_id).await? {
            events.push(log::run(&found, "run_created", "queued", log::SCHEDULER, "slot"));
        }
    }
    let count = events.len();
    event::append(tx, events).await?;
    let missed: BTreeMap<&str, &'static str> =
        new().filter_map(|(due, new)| Some((new.run_id.as_str(), due.missed?))).collect();
    if let Some(last) =
        new().filter(|(due, _)| due.missed.is_some()).map(|of| of.0.slot).next_back()
    {
        let before = last.due_at.plus(Span::from_micros(1));
        overlap::miss_made(tx, &row.dag_id, before, &missed).await?;
    }
    Ok((count + missed.len()).max(1))
}

/// Without those that a backfill has made a run of: a slot has one run.
async fn unfilled(tx: &Tx, dag_id: &str, slots: Vec<Due>) -> Result<Vec<Due>, EngineError> {
    let dates: Vec<Timestamp> = slots.iter().map(|due| due.slot.logical_date).collect();
    let found = backfill::found(tx, dag_id, &dates).await?;
    let filled = |due: &Due| {
        let date = due.slot.logical_date;
        found.iter().any(|run| run.logical_date == date && run.run_type == RunType::Backfill)
    };
    Ok(slots.into_iter().filter(|due| !filled(due)).collect())
}

/// A slot whose turn it is.
struct Due {
    slot: Slot,
    /// Why it is recorded as missed at once.
    missed: Option<&'static str>,
}

/// The slots to be made into runs now, oldest first: as many as may wait, and a page of those that
/// are missed.
fn due_slots(
    calendar: &Calendar,
    dag: &Dag,
    row: &DagRow,
    now: Timestamp,
    room: usize,
) -> Vec<Due> {
    let policy = &dag.slots;
    let page = if policy.start_deadline.is_some() { room.max(MISSED) } else { room };
    let slots = match (dag.timing.catchup, row.slot_cursor) {
        (Catchup::All, None) => calendar.due_since_start(now, page),
        (Catchup::All | Catchup::Next, Some(cursor)) => calendar.due(cursor, now, page),
        (Catchup::Newest, cursor) => return newest_due(calendar, policy, cursor, now),
        (Catchup::Next, None) => Vec::new(),
    };
    let late = |slot: &Slot| policy.is_late(slot.due_at, now).then_some(SlotPolicy::LATE);
    let due: Vec<Due> = slots.into_iter().map(|slot| Due { missed: late(&slot), slot }).collect();
    // Those that are late come before those that are not.
    let late = due.iter().filter(|due| due.missed.is_some()).count();
    due.into_iter().take(late + room).collect()
}

/// Without catch-up only the newest slot runs. With a `start_deadline` those that it passes over while
/// the DAG is active are recorded too, page by page.
fn newest_due(
    calendar: &Calendar,
    policy: &SlotPolicy,
    cursor: Option<Timestamp>,
    now: Timestamp,
) -> Vec<Due> {
    let newest = calendar.newest_due(now).filter(|slot| cursor.is_none_or(|c| slot.due_at > c));
    let Some(newest) = newest else { return Vec::new() };
    let slots = match cursor.filter(|_| policy.start_deadline.is_some()) {
        Some(cursor) => calendar.due(cursor, newest.due_at, MISSED),
        None => vec![newest],
    };
    let why = |slot: &Slot| match (policy.is_late(slot.due_at, now), *slot == newest) {
        (true, _) => Some(SlotPolicy::LATE),
        (false, false) => Some(SlotPolicy::SUPERSEDED),
        (false, true) => None,
    };
    slots.into_iter().map(|slot| Due { missed: why(&slot), slot }).collect()
}

/// When a schedule that was changed or unpaused is to be looked at first, and its place: at once if
/// a slot is due by its catch-up rule.
pub(crate) fn first_look(
    calendar: &Calendar,
    catchup: Catchup,
    cursor: Option<Timestamp>,
    now: Timestamp,
) -> (Option<Timestamp>, Option<Timestamp>) {
    match catchup {
        Catchup::All => {
            let first = match cursor {
                Some(cursor) => calendar.next_after(cursor),
                None => calendar.due_since_start(Timestamp::from_micros(i64::MAX), 1).pop(),
            };
            let first = first.map(|slot| slot.due_at);
            (cursor, first.or_else(|| next_slot(calendar, cursor, now)))
        }
        Catchup::Newest => {
            let due = calendar.newest_due(now).filter(|s| cursor.is_none_or(|c| s.due_at > c));
            // What went by while it was paused, or its file was another one, is passed over for good.
            let place = due.map(|slot| slot.due_at.minus(Span::from_micros(1))).or(cursor);
            (place, due.map(|_| now).or_else(|| next_slot(calendar, Some(now), now)))
        }
        Catchup::Next => {
            // Never back: slots before the place were handled, whatever the clock says.
            let place = cursor.map_or(now, |cursor| cursor.max(now));
            (Some(place), next_slot(calendar, Some(place), now))
        }
    }
}

/// When the next slot after the schedule's place is due. Without a place: from the start on, or
/// from now.
fn next_slot(calendar: &Calendar, cursor: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    calendar.next_after(cursor.unwrap_or(now)).map(|slot| slot.due_at)
}

fn scheduled(row: &DagRow, dag: &Dag, slot: &Slot, now: Timestamp) -> NewRun {
    NewRun {
        dag_id: row.dag_id.clone(),
        run_id: scheduled_run_id(slot),
        version_pk: row.version_pk,
        run_type: RunType::Scheduled,
        logical_date: Some(slot.logical_date),
        interval: Some((slot.interval_start, slot.interval_end)),
        run_after: slot.due_at,
        conf: Value::Object(Map::new()),
        params: default_params(dag),
        note: None,
        triggered_by: log::SCHEDULER.into(),
        calls: dag.calls(),
        alert_at: dag.alert_at(RunType::Scheduled, slot.due_at, now),
    }
}

/// The id of a slot's run: `scheduled__<logical date>`, so that a slot has one run for ever.
fn scheduled_run_id(slot: &Slot) -> String {
    let at = slot.logical_date.to_jiff();
    format!("scheduled__{at}")
}

/// The defaults of a DAG's params.
pub(crate) fn default_params(dag: &Dag) -> Value {
    Value::Object(dag.params.iter().map(|p| (p.name.clone(), p.default.clone())).collect())
}
