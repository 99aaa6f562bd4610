//! DAGs on the wire.

use super::call::Call;
use super::failure::Failure;
use fencepost_api::rest::{
    Dag, DagDetail, DagTask, DagTaskGroup, Diagnostic, ImportError, Param, RunDot, Slot,
};
use fencepost_core::dag::{self, Action, Task};
use fencepost_core::schedule::{self, Catchup, Timetable, Timing};
use fencepost_core::time::Timestamp;
use fencepost_engine::catalog::Version;
use fencepost_store::Tx;
use fencepost_store::query::dag::DagRow;
use fencepost_store::query::listing::runs::Dot;
use fencepost_store::query::{dag as dag_query, listing};
use serde_json::Value;

/// Runs shown as dots.
const DOTS: u32 = 20;

/// RFC 3339, if there is an instant.
pub(super) fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

/// A number of the store in the width of the wire.
pub(super) fn narrow(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// Rows with what belongs to them, read for all at once.
pub(super) async fn dags(call: &Call, tx: &Tx, rows: &[DagRow]) -> Result<Vec<Dag>, Failure> {
    let names: Vec<&str> = rows.iter().map(|row| row.dag_id.as_str()).collect();
    let files: Vec<&str> = rows.iter().map(|row| row.fileloc.as_str()).collect();
    let dots = listing::runs::dots(tx, &names, DOTS).await?;
    let broken = listing::dags::broken(tx, &files).await?;
    let mut out = Vec::new();
    for row in rows {
        let timing = call.server.timings.of(call.cx(), tx, row.version_pk).await?;
        let own = dots.iter().filter(|dot| dot.dag_id == row.dag_id);
        out.push(Dag {
            last_runs: own.map(run_dot).collect(),
            has_import_error: broken.contains(&row.fileloc),
            ..dag_row(row, timing.as_deref())
        });
    }
    Ok(out)
}

fn dag_row(row: &DagRow, timing: Option<&Timing>) -> Dag {
    let tags = row.tags.as_array().map(Vec::as_slice).unwrap_or_default();
    let runs_by_itself = row.is_active && !row.is_paused && !row.schedule.is_empty();
    Dag {
        dag_id: row.dag_id.clone(),
        description: row.description.clone(),
        owner: row.owner.clone(),
        tags: tags.iter().filter_map(|tag| tag.as_str().map(Into::into)).collect(),
        is_paused: row.is_paused,
        is_active: row.is_active,
        schedule: schedule_of(row),
        timezone: timing.map_or_else(|| "UTC".into(), |timing| timing.timezone.clone()),
        version: narrow(row.version),
        file: row.fileloc.clone(),
        next_due_at: time(row.next_slot_at.filter(|_| runs_by_itself)),
        last_runs: Vec::new(),
        has_import_error: false,
    }
}

/// The schedule as people read it.
pub(super) fn schedule_of(row: &DagRow) -> Option<String> {
    Some(row.schedule.clone()).filter(|text| !text.is_empty())
}

/// A run as a dot.
pub(super) fn run_dot(dot: &Dot) -> RunDot {
    RunDot {
        run_id: dot.run_id.clone(),
        state: dot.state.as_str().into(),
        started_at: time(dot.started_at),
        ended_at: time(dot.ended_at),
    }
}

/// The page of one DAG.
pub(super) fn detail(dag: Dag, version: &Version, active_runs: u32) -> DagDetail {
    let own = &version.dag;
    let timeout = own.dagrun_timeout.map(|span| u64::try_from(span.as_millis()).unwrap_or(0));
    DagDetail {
        dag,
        doc_md: own.doc_md.clone(),
        timetable: timetable(own.timing.timetable).into(),
        start_date: time(own.timing.start_date),
        end_date: time(own.timing.end_date),
        catchup: catchup(own.timing.catchup).into(),
        max_active_runs: own.limits.max_active_runs,
        max_active_tasks: own.limits.max_active_tasks,
        dagrun_timeout_ms: timeout,
        fail_fast: own.fail_fast,
        params: own.params.iter().map(param).collect(),
        tasks: own.tasks.iter().map(|task| dag_task(own, task)).collect(),
        task_groups: own.groups.iter().map(|group| task_group(own, group)).collect(),
        active_runs,
    }
}

const fn timetable(timetable: Timetable) -> &'static str {
    match timetable {
        Timetable::Trigger => "trigger",
        Timetable::DataInterval => "data_interval",
    }
}

const fn catchup(catchup: Catchup) -> &'static str {
    match catchup {
        Catchup::All => "all",
        Catchup::Newest => "newest",
        Catchup::Next => "next",
    }
}

fn param(param: &dag::Param) -> Param {
    Param {
        name: param.name.clone(),
        default: param.default.clone(),
        description: param.description.clone(),
        schema: param.schema.clone(),
    }
}

fn dag_task(dag: &dag::Dag, task: &Task) -> DagTask {
    let action = match &task.action {
        Action::Run(_) => "run",
        Action::Command(_) => "command",
        Action::Python(_) => "python",
        Action::TriggerDag(_) => "trigger_dag",
        Action::Http(_) => "http",
        Action::Wait(_) => "wait",
        Action::Noop => "noop",
    };
    DagTask {
        task_id: task.task_id.as_str().into(),
        action: action.into(),
        depends_on: upstreams(dag, task),
        trigger_rule: task.trigger_rule.as_str().into(),
        is_mapped: task.is_mapped(),
        pool: task.limits.pool.as_str().into(),
        queue: task.limits.queue.as_str().into(),
        retries: task.retry.retries,
        infra_retries: task.infra_retries,
    }
}

fn task_group(dag: &dag::Dag, group: &dag::TaskGroup) -> DagTaskGroup {
    let parent = group.parent.and_then(|parent| dag.groups.get(parent));
    DagTaskGroup {
        group_id: group.group_id.to_string(),
        tooltip: group.tooltip.clone(),
        parent: parent.map(|parent| parent.group_id.to_string()),
        tasks: names(dag, &group.tasks),
    }
}

/// The names of a task's upstreams.
pub(super) fn upstreams(dag: &dag::Dag, task: &Task) -> Vec<String> {
    names(dag, &task.depends_on)
}

fn names(dag: &dag::Dag, tasks: &[dag::TaskIndex]) -> Vec<String> {
    let name = |index: &dag::TaskIndex| dag.task(*index).map(|task| task.task_id.to_string());
    tasks.iter().filter_map(name).collect()
}

/// A slot of a schedule.
pub(super) fn slot(slot: &schedule::Slot) -> Slot {
    Slot {
        due_at: slot.due_at.to_string(),
        logical_date: slot.logical_date.to_string(),
        data_interval_start: slot.interval_start.to_string(),
        data_interval_end: slot.interval_end.to_string(),
    }
}

/// A file with mistakes.
pub(super) fn import_error(error: dag_query::ImportError, dag_id: Option<String>) -> ImportError {
    let list = error.errors.as_array().map(Vec::as_slice).unwrap_or_default();
    ImportError {
        file: error.fileloc,
        dag_id,
        at: error.at.to_string(),
        diagnostics: list.iter().map(diagnostic).collect(),
    }
}

fn diagnostic(stored: &Value) -> Diagnostic {
    let text = |name: &str| stored[name].as_str().unwrap_or_default().to_owned();
    let number =
        |name: &str| stored[name].as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
    Diagnostic {
        line: number("line"),
        column: number("column"),
        severity: text("severity"),
        code: text("code"),
        message: text("message"),
        hint: Some(text("hint")).filter(|hint| !hint.is_empty()),
    }
}
