//! Dag runs.

use crate::output::paint::{Paint, look};
use crate::output::span::{age, between, date_time};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::{Always, Wide};
use fencepost_api::rest::Run;
use fencepost_core::time::Timestamp;

/// `5✔ 1▶ 2○`: task instances by state, finished ones first.
pub(crate) fn counts(run: &Run) -> String {
    let order = ["success", "skipped", "failed", "upstream_failed", "held", "running"];
    let place = |state: &str| order.iter().position(|s| *s == state).unwrap_or(order.len());
    let mut counts: Vec<(&String, &u32)> = run.task_counts.iter().collect();
    counts.sort_by_key(|(state, _)| place(state));
    let texts = counts.into_iter().map(|(state, count)| format!("{count}{}", look(state).0));
    texts.collect::<Vec<_>>().join(" ")
}

fn state(run: &Run) -> Cell {
    if run.paused {
        return Cell::state_with(&run.state, &format!("{} (paused)", run.state));
    }
    Cell::state(&run.state)
}

impl Row for Run {
    const COLUMNS: &'static [Column] = &[
        Always("DAG"),
        Always("RUN"),
        Always("STATE"),
        Always("TASKS"),
        Always("STARTED"),
        Always("DURATION"),
        Wide("TYPE"),
        Wide("LOGICAL DATE"),
        Wide("VERSION"),
        Wide("BY"),
        Wide("NOTE"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let (started, ended) = (self.started_at.as_deref(), self.ended_at.as_deref());
        vec![
            self.dag_id.as_str().into(),
            Cell::painted(&self.run_id, Paint::Strong),
            state(self),
            Cell::or_dash(Some(counts(self))),
            age(started, now).into(),
            between(started, ended, now).into(),
            self.run_type.as_str().into(),
            date_time(self.logical_date.as_deref()).into(),
            format!("v{}", self.version).into(),
            self.triggered_by.as_str().into(),
            Cell::or_dash(self.note.as_ref()),
        ]
    }
    fn name(&self) -> String {
        self.run_id.clone()
    }
}

impl Detail for Run {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let (started, ended) = (self.started_at.as_deref(), self.ended_at.as_deref());
        let interval = match (&self.data_interval_start, &self.data_interval_end) {
            (Some(from), Some(to)) => {
                Some(format!("{} .. {}", date_time(Some(from)), date_time(Some(to))))
            }
            _ => None,
        };
        let mut lines = vec![
            ("DAG", self.dag_id.as_str().into()),
            ("Run", Cell::painted(&self.run_id, Paint::Strong)),
            ("State", state(self)),
            ("Reason", Cell::or_dash(self.reason.as_ref())),
            ("Tasks", Cell::or_dash(Some(counts(self)))),
            ("Type", self.run_type.as_str().into()),
            ("By", self.triggered_by.as_str().into()),
            ("Logical date", date_time(self.logical_date.as_deref()).into()),
            ("Data interval", Cell::or_dash(interval)),
            ("Queued", date_time(Some(&self.queued_at)).into()),
            ("Started", date_time(started).into()),
            ("Ended", date_time(ended).into()),
            ("Duration", between(started, ended, now).into()),
            ("Version", format!("v{}", self.version).into()),
            ("Note", Cell::or_dash(self.note.as_ref())),
        ];
        for (name, value) in &self.params {
            lines.push(("Param", format!("{name} = {value}").into()));
        }
        lines
    }
    fn name(&self) -> String {
        self.run_id.clone()
    }
}
