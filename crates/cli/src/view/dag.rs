//! DAGs, versions, slots, import errors.

use super::flag;
use crate::output::paint::{Paint, look};
use crate::output::span::{age, clock, date_time};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::{Always, Wide};
use fencepost_api::rest::{Dag, DagDetail, DagVersion, ImportError, NextRun, RunDot, Slot};
use fencepost_core::time::Timestamp;

/// The last outcomes as a row of icons, oldest first.
fn dots(runs: &[RunDot]) -> String {
    runs.iter().take(10).rev().map(|run| look(&run.state).0).collect()
}

/// What keeps it from running, in one word.
fn dag_state(dag: &Dag) -> Cell {
    if !dag.is_active {
        return Cell::painted("inactive", Paint::Dim);
    }
    if dag.is_paused {
        return Cell::painted("paused", Paint::Waiting);
    }
    Cell::painted("active", Paint::Good)
}

impl Row for Dag {
    const COLUMNS: &'static [Column] = &[
        Always("DAG"),
        Always("STATE"),
        Always("SCHEDULE"),
        Always("NEXT RUN"),
        Always("LAST RUNS"),
        Always("TAGS"),
        Always("PROBLEM"),
        Wide("OWNER"),
        Wide("TIMEZONE"),
        Wide("VERSION"),
        Wide("FILE"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(&self.dag_id, Paint::Strong),
            dag_state(self),
            Cell::or_dash(self.schedule.as_ref()),
            self.next_due_at
                .as_deref()
                .map_or(Cell::or_dash(None::<String>), |at| age(Some(at), now).into()),
            Cell::or_dash(Some(dots(&self.last_runs))),
            Cell::or_dash(Some(self.tags.join(","))),
            flag(self.has_import_error, "import error"),
            Cell::or_dash(Some(&self.owner)),
            self.timezone.as_str().into(),
            format!("v{}", self.version).into(),
            self.file.as_str().into(),
        ]
    }
    fn name(&self) -> String {
        self.dag_id.clone()
    }
}

impl Detail for DagDetail {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let dag = &self.dag;
        let mut lines = vec![
            ("DAG", Cell::painted(&dag.dag_id, Paint::Strong)),
            ("State", dag_state(dag)),
            ("Description", Cell::or_dash(Some(&dag.description))),
            ("Owner", Cell::or_dash(Some(&dag.owner))),
            ("Tags", Cell::or_dash(Some(dag.tags.join(", ")))),
            ("Schedule", Cell::or_dash(dag.schedule.as_ref())),
            ("Timezone", dag.timezone.as_str().into()),
            ("Catchup", self.catchup.as_str().into()),
            ("Start date", date_time(self.start_date.as_deref()).into()),
            ("End date", date_time(self.end_date.as_deref()).into()),
            ("Next run", date_time(dag.next_due_at.as_deref()).into()),
            ("Active runs", format!("{} of {}", self.active_runs, self.max_active_runs).into()),
            ("Active tasks", format!("at most {}", self.max_active_tasks).into()),
            ("Version", format!("v{}", dag.version).into()),
            ("File", dag.file.as_str().into()),
            ("Problem", flag(dag.has_import_error, "import error: see `fencepost dags errors`")),
        ];
        for param in &self.params {
            lines.push(("Param", format!("{} = {}", param.name, param.default).into()));
        }
        for task in &self.tasks {
            let after = match task.depends_on.as_slice() {
                [] => String::new(),
                some => format!("  after {}", some.join(", ")),
            };
            lines.push(("Task", format!("{} ({}){after}", task.task_id, task.action).into()));
        }
        for group in &self.task_groups {
            let about = Some(&group.tooltip).filter(|text| !text.is_empty());
            let about = about.map(|text| format!("  {text}")).unwrap_or_default();
            lines.push(("Group", format!("{}{about}", group.group_id).into()));
        }
        for run in dag.last_runs.iter().take(5) {
            let text = format!("{}  {}", run.run_id, age(run.started_at.as_deref(), now));
            lines.push(("Run", Cell::state_with(&run.state, &text)));
        }
        lines
    }
    fn name(&self) -> String {
        self.dag.dag_id.clone()
    }
}

impl Row for DagVersion {
    const COLUMNS: &'static [Column] =
        &[Always("VERSION"), Always("CREATED"), Always("RUNS"), Always("CURRENT"), Wide("HASH")];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        vec![
            format!("v{}", self.version).into(),
            date_time(Some(&self.created_at)).into(),
            self.runs.to_string().into(),
            if self.is_current { "current".into() } else { Cell::or_dash(None::<String>) },
            self.hash.as_str().into(),
        ]
    }
    fn name(&self) -> String {
        self.version.to_string()
    }
}

impl Row for Slot {
    const COLUMNS: &'static [Column] =
        &[Always("DUE (UTC)"), Always("LOGICAL DATE"), Always("DATA INTERVAL"), Always("IN")];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let from = date_time(Some(&self.data_interval_start));
        let to = date_time(Some(&self.data_interval_end));
        vec![
            date_time(Some(&self.due_at)).into(),
            date_time(Some(&self.logical_date)).into(),
            format!("{from} .. {to}").into(),
            age(Some(&self.due_at), now).trim_start_matches("in ").into(),
        ]
    }
    fn name(&self) -> String {
        self.due_at.clone()
    }
}

impl Row for NextRun {
    const COLUMNS: &'static [Column] = &[
        Always("NEXT (UTC)"),
        Always("LEFT"),
        Always("LAST"),
        Always("STATE"),
        Always("DAG"),
        Always("SCHEDULE"),
        Wide("TIMEZONE"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let due = self.next.as_ref().map(|slot| slot.due_at.as_str());
        let last = self.last.as_ref();
        let started = last.and_then(|run| run.started_at.as_deref());
        vec![
            if self.is_paused {
                Cell::painted("paused", Paint::Waiting)
            } else {
                date_time(due).into()
            },
            age(due, now).trim_start_matches("in ").into(),
            clock(started, now).into(),
            last.map_or(Cell::or_dash(None::<String>), |run| Cell::state(&run.state)),
            Cell::painted(&self.dag_id, Paint::Strong),
            Cell::or_dash(self.schedule.as_ref()),
            self.timezone.as_str().into(),
        ]
    }
    fn name(&self) -> String {
        self.dag_id.clone()
    }
}

impl Row for ImportError {
    const COLUMNS: &'static [Column] =
        &[Always("FILE"), Always("AGE"), Always("ERRORS"), Always("FIRST"), Wide("DAG")];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let errors = self.diagnostics.iter().filter(|d| d.severity == "error").count();
        let first =
            self.diagnostics.first().map(|d| format!("{}:{} {}", d.line, d.column, d.message));
        vec![
            self.file.as_str().into(),
            age(Some(&self.at), now).into(),
            Cell::painted(errors.to_string(), Paint::Bad),
            Cell::or_dash(first),
            Cell::or_dash(self.dag_id.as_ref()),
        ]
    }
    fn name(&self) -> String {
        self.file.clone()
    }
}
