//! Backfills as people ask for them: make, preview, pause, resume, cancel. The scheduler carries them
//! out (`scheduler::backfill`), page by page, so that an answer takes no longer for many slots.

use super::trigger::merge_params;
use crate::Cx;
use crate::catalog::Version;
use crate::error::{EngineError, Refusal};
use crate::log;
use fencepost_core::plan::backfill::action;
use fencepost_core::schedule::{Calendar, Slot, read_range};
use fencepost_core::state::{BackfillState, Reprocess, RunState, SlotAction};
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::backfill::{self, Backfill, NewBackfill};
use fencepost_store::query::dag::{self, DagRow};
use fencepost_store::query::event::{self, Event};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most slots of one backfill.
pub const SLOTS_MAX: usize = 50_000;
/// Slots looked at in one statement.
const PAGE: usize = 500;

/// What to run again, or for the first time.
#[derive(Debug, Clone, PartialEq)]
pub struct BackfillRequest {
    pub dag_id: String,
    /// First and last logical date: an instant, or a date or local time in the DAG's zone; a date is
    /// its whole day.
    pub from_date: String,
    pub to_date: String,
    pub reprocess: Reprocess,
    pub max_active_runs: u32,
    pub backwards: bool,
    pub params: Map<String, Value>,
    pub conf: Value,
    pub by: String,
}

/// What a backfill would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preview {
    pub slots: usize,
    /// Slots that have a run, by its state and what becomes of it.
    pub existing: BTreeMap<(RunState, SlotAction), usize>,
    /// Slots without a run.
    pub missing: usize,
}

impl Preview {
    /// How many runs it would start.
    pub fn starts(&self) -> usize {
        let reruns = self.existing.iter().filter(|((_, action), _)| *action == SlotAction::Rerun);
        self.missing + reruns.map(|(_, count)| *count).sum::<usize>()
    }

    /// `7 slots: 5 exist (4 success: kept, 1 failed: rerun), 2 missing: create → 3 runs`.
    pub fn text(&self) -> String {
        let exist = self.slots - self.missing;
        let mut parts = Vec::new();
        for ((state, action), count) in &self.existing {
            let word = match action {
                SlotAction::Rerun => "rerun",
                SlotAction::InFlight => "left alone",
                SlotAction::Kept | SlotAction::Created => "kept",
            };
            parts.push(format!("{count} {state}: {word}"));
        }
        let mut text = format!("{} slots: {exist} exist", self.slots);
        if !parts.is_empty() {
            text += &format!(" ({})", parts.join(", "));
        }
        let starts = self.starts();
        let runs = if starts == 1 { "run" } else { "runs" };
        text + &format!(", {} missing: create → {starts} {runs}", self.missing)
    }
}

/// A request that was understood.
struct Asked {
    row: DagRow,
    version: Arc<Version>,
    range: (Timestamp, Timestamp),
    slots: Vec<Slot>,
}

/// Makes a backfill; the scheduler takes it up.
pub async fn create(cx: &Cx, request: &BackfillRequest) -> Result<Backfill, EngineError> {
    let tx = cx.store.begin("create_backfill").await?;
    let asked = understand(cx, &tx, request).await?;
    let params = merge_params(&asked.version.dag, &request.params)?;
    let conf = &request.conf;
    let new = NewBackfill {
        dag_id: request.dag_id.clone(),
        version_pk: asked.row.version_pk,
        from_date: asked.range.0,
        to_date: asked.range.1,
        reprocess: request.reprocess,
        max_active_runs: request.max_active_runs.into(),
        backwards: request.backwards,
        params,
        conf: if conf.is_null() { Value::Object(Map::new()) } else { conf.clone() },
        slots: i64::try_from(asked.slots.len()).unwrap_or(i64::MAX),
        by: request.by.clone(),
    };
    let Some(key) = backfill::insert(&tx, &new).await? else {
        return Err(Refusal::BackfillUnderWay(request.dag_id.clone()).into());
    };
    let made = found(&tx, key).await?;
    event::append(&tx, vec![line("backfill_created", &made, &request.by)]).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(made)
}

/// Says what a backfill would do now.
pub async fn preview(cx: &Cx, request: &BackfillRequest) -> Result<Preview, EngineError> {
    let tx = cx.store.read("preview_backfill").await?;
    let asked = understand(cx, &tx, request).await?;
    merge_params(&asked.version.dag, &request.params)?;
    let mut preview = Preview { slots: asked.slots.len(), ..Preview::default() };
    for page in asked.slots.chunks(PAGE) {
        let dates: Vec<Timestamp> = page.iter().map(|slot| slot.logical_date).collect();
        let there = backfill::found(&tx, &request.dag_id, &dates).await?;
        preview.missing += page.len() - there.len();
        for run in there {
            let what = action(request.reprocess, Some(run.state));
            *preview.existing.entry((run.state, what)).or_default() += 1;
        }
    }
    Ok(preview)
}

async fn understand(cx: &Cx, tx: &Tx, request: &BackfillRequest) -> Result<Asked, EngineError> {
    let dag_id = &request.dag_id;
    let row = dag::get(tx, dag_id).await?.ok_or_else(|| Refusal::NoDag(dag_id.clone()))?;
    if !row.is_active {
        return Err(Refusal::Inactive(dag_id.clone()).into());
    }
    if request.max_active_runs == 0 {
        return Err(Refusal::Invalid("max_active_runs must be at least 1".into()).into());
    }
    let version = cx.catalog.version(tx, row.version_pk).await?;
    check_past(&version, request)?;
    let timing = &version.dag.timing;
    if !timing.schedule.has_slots() {
        let text = format!("DAG `{dag_id}` has no schedule, so there are no slots to fill");
        return Err(Refusal::Invalid(text).into());
    }
    let calendar = Calendar::new(timing).map_err(|error| Refusal::Invalid(error.to_string()))?;
    let range = read_range(&request.from_date, &request.to_date, &timing.timezone)
        .map_err(Refusal::Invalid)?;
    let place = (None, request.backwards);
    let slots = calendar.between(range, tx.now(), place, SLOTS_MAX + 1);
    if slots.is_empty() {
        let text = "no slot of the schedule that is due lies between these dates".into();
        return Err(Refusal::Invalid(text).into());
    }
    if slots.len() > SLOTS_MAX {
        let text = format!("more than {SLOTS_MAX} slots: ask for a shorter range");
        return Err(Refusal::Invalid(text).into());
    }
    Ok(Asked { row, version, range, slots })
}

/// Runs that depend on the one before them go forwards, and a failed one in between would block
/// them, as in Airflow.
fn check_past(version: &Version, request: &BackfillRequest) -> Result<(), EngineError> {
    let Some(task) = version.dag.tasks.iter().find(|task| task.depends_on_past) else {
        return Ok(());
    };
    if request.backwards {
        let text = format!(
            "task `{}` depends on the run before: such runs cannot go backwards",
            task.task_id
        );
        return Err(Refusal::Invalid(text).into());
    }
    if request.reprocess == Reprocess::None {
        let text = format!(
            "task `{}` depends on the run before, and a failed one that is kept would block those \
             after it: ask for reprocess_behavior failed or completed",
            task.task_id
        );
        return Err(Refusal::Invalid(text).into());
    }
    Ok(())
}

/// Pauses or resumes: nothing new of it starts while it is paused.
pub async fn pause(cx: &Cx, key: i64, paused: bool, by: &str) -> Result<Backfill, EngineError> {
    let tx = cx.store.begin("pause_backfill").await?;
    let row = under_way(&tx, key).await?;
    backfill::pause(&tx, key, paused).await?;
    let kind = if paused { "backfill_paused" } else { "backfill_resumed" };
    event::append(&tx, vec![line(kind, &row, by)]).await?;
    let after = found(&tx, key).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(after)
}

/// Cancels: it makes no more runs from this commit on, and the scheduler stops those that are there.
pub async fn cancel(cx: &Cx, key: i64, by: &str) -> Result<Backfill, EngineError> {
    let tx = cx.store.begin("cancel_backfill").await?;
    let row = under_way(&tx, key).await?;
    let step = (BackfillState::Running, BackfillState::Cancelling);
    if backfill::set_state(&tx, key, step, Some(by)).await? {
        event::append(&tx, vec![line("backfill_cancelling", &row, by)]).await?;
    }
    let after = found(&tx, key).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(after)
}

/// The backfill of that number.
pub async fn found(tx: &Tx, key: i64) -> Result<Backfill, EngineError> {
    Ok(backfill::get(tx, key).await?.ok_or(Refusal::NoBackfill(key))?)
}

async fn under_way(tx: &Tx, key: i64) -> Result<Backfill, EngineError> {
    let row = found(tx, key).await?;
    if matches!(row.state, BackfillState::Completed | BackfillState::Cancelled) {
        let (what, state) = (format!("backfill {key}"), row.state.to_string());
        return Err(Refusal::AlreadyTerminal { what, state }.into());
    }
    Ok(row)
}

/// A line about a backfill.
pub(crate) fn line(kind: &'static str, of: &Backfill, actor: &str) -> Event {
    Event {
        kind,
        dag_id: Some(of.dag_id.clone()),
        actor: if actor.is_empty() { log::SCHEDULER.into() } else { actor.into() },
        reason: Some(format!("backfill {}", of.backfill_pk)),
        ..Event::default()
    }
}
