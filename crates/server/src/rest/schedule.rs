//! When DAGs run by themselves: coming slots, and the switch that stops and starts that.

use super::answer::{Answer, Done};
use super::call::Call;
use super::failure::Failure;
use super::{cursor, dag_view, dags};
use fencepost_api::rest::{DagPatch, ListQuery, NextRun, PauseEffect, SlotQuery};
use fencepost_core::schedule::{Calendar, Catchup, Slot, Timing};
use fencepost_core::time::Timestamp;
use fencepost_engine::operations::run_control;
use fencepost_store::Tx;
use fencepost_store::query::dag::{self, DagRow};
use fencepost_store::query::listing;

/// Slots of an answer.
const SLOTS: u32 = 5;
const SLOTS_MAX: u32 = 1_000;
/// Due slots that are counted; a DAG with more has at least as many.
const COUNTED: usize = 10_000;
const READ: u32 = 500;
/// DAGs with a schedule that the overview looks at.
const DAGS_MAX: usize = 10_000;

pub(super) async fn next(call: &Call) -> Done {
    let query: SlotQuery = call.query()?;
    let count = cursor::count(query.n.unwrap_or(SLOTS).min(SLOTS_MAX));
    let tx = call.read().await?;
    let row = dags::find(&tx, call.arg(0)).await?;
    let timing = call.server.timings.of(call.cx(), &tx, row.version_pk).await?;
    let calendar = timing.and_then(|timing| Calendar::new(&timing).ok());
    let forever = Timestamp::from_micros(i64::MAX);
    let slots = calendar.map(|calendar| calendar.due(tx.now(), forever, count));
    let items = slots.unwrap_or_default().iter().map(dag_view::slot).collect();
    Answer::ok(&cursor::page(items, None))
}

pub(super) async fn list(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let after = match cursor::read::<2>("schedule", query.cursor.as_deref())? {
        Some([at, dag_id]) => Some((cursor::number(&at)?, dag_id)),
        None => None,
    };
    let tx = call.read().await?;
    let mut coming: Vec<(i64, Option<Slot>, DagRow)> = Vec::new();
    for row in scheduled(&tx).await? {
        let timing = call.server.timings.of(call.cx(), &tx, row.version_pk).await?;
        let slot = timing.and_then(|timing| Calendar::new(&timing).ok()?.next_after(tx.now()));
        let at = slot.as_ref().map_or(i64::MAX, |slot| slot.due_at.as_micros());
        let place = (at, row.dag_id.clone());
        if after.as_ref().is_none_or(|after| place > *after) {
            coming.push((at, slot, row));
        }
    }
    coming.sort_by(|a, b| (a.0, &a.2.dag_id).cmp(&(b.0, &b.2.dag_id)));
    let place = |(at, _, row): &(i64, _, DagRow)| {
        cursor::write("schedule", &[&at.to_string(), &row.dag_id])
    };
    let (coming, next) = cursor::cut(coming, limit, place);
    let items = next_runs(call, &tx, coming).await?;
    Answer::ok(&cursor::page(items, next))
}

async fn scheduled(tx: &Tx) -> Result<Vec<DagRow>, Failure> {
    let mut rows: Vec<DagRow> = Vec::new();
    let mut after = String::new();
    loop {
        let found = dag::list(tx, &after, READ).await?;
        let is_last = found.len() < cursor::count(READ);
        if let Some(last) = found.last() {
            after.clone_from(&last.dag_id);
        }
        rows.extend(found.into_iter().filter(|row| row.is_active && !row.schedule.is_empty()));
        if is_last || rows.len() >= DAGS_MAX {
            return Ok(rows);
        }
    }
}

async fn next_runs(
    call: &Call,
    tx: &Tx,
    coming: Vec<(i64, Option<Slot>, DagRow)>,
) -> Result<Vec<NextRun>, Failure> {
    let names: Vec<&str> = coming.iter().map(|(_, _, row)| row.dag_id.as_str()).collect();
    let dots = listing::runs::dots(tx, &names, 1).await?;
    let mut items = Vec::new();
    for (_, slot, row) in &coming {
        let timing = call.server.timings.of(call.cx(), tx, row.version_pk).await?;
        let last = dots.iter().find(|dot| dot.dag_id == row.dag_id);
        items.push(NextRun {
            dag_id: row.dag_id.clone(),
            is_paused: row.is_paused,
            schedule: dag_view::schedule_of(row),
            timezone: timing.map_or_else(|| "UTC".into(), |timing| timing.timezone.clone()),
            next: slot.as_ref().map(dag_view::slot),
            last: last.map(dag_view::run_dot),
        });
    }
    Ok(items)
}

/// Pauses and unpauses; says which runs an unpause starts at once.
pub(super) async fn patch(call: &Call) -> Done {
    let dry_run = call.dry_run()?;
    let patch: DagPatch = call.body()?;
    let (row, timing, now) = {
        let tx = call.read().await?;
        let row = dags::find(&tx, call.arg(0)).await?;
        let timing = call.server.timings.of(call.cx(), &tx, row.version_pk).await?;
        (row, timing, tx.now())
    };
    let wanted = patch.is_paused.unwrap_or(row.is_paused);
    let unchanged = wanted == row.is_paused;
    let starts = !wanted && !unchanged && row.is_active;
    let due = match &timing {
        Some(timing) if starts => due(timing, row.slot_cursor, now),
        _ => Due::default(),
    };
    if !dry_run && !unchanged {
        run_control::pause_dag(call.cx(), &row.dag_id, wanted, call.by()).await?;
    }
    Answer::ok(&PauseEffect {
        dag_id: row.dag_id,
        is_paused: wanted,
        unchanged,
        due_runs: due.count,
        first_logical_date: dag_view::time(due.first),
        last_logical_date: dag_view::time(due.last),
    })
}

#[derive(Debug, Default)]
struct Due {
    count: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

/// The slots that are due already, as the DAG's catch-up rule takes them.
fn due(timing: &Timing, cursor: Option<Timestamp>, now: Timestamp) -> Due {
    let Ok(calendar) = Calendar::new(timing) else { return Due::default() };
    let newest = calendar.newest_due(now);
    let slots = match (timing.catchup, cursor) {
        (Catchup::All, Some(cursor)) => calendar.due(cursor, now, COUNTED),
        (Catchup::All, None) => calendar.due_since_start(now, COUNTED),
        (Catchup::Newest, cursor) => {
            newest.filter(|slot| cursor.is_none_or(|c| slot.due_at > c)).into_iter().collect()
        }
        (Catchup::Next, _) => Vec::new(),
    };
    let last = if slots.len() < COUNTED { slots.last().copied() } else { newest };
    Due {
        count: u64::try_from(slots.len()).unwrap_or(u64::MAX),
        first: slots.first().map(|slot| slot.logical_date),
        last: last.map(|slot| slot.logical_date),
    }
}
