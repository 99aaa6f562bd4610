//! Task instances, outputs, rendered fields, planned changes.

use super::{task_label, token};
use crate::output::paint::Paint;
use crate::output::span::{age, between, clock, date_time};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::{Always, Wide};
use fencepost_api::rest::{Change, Output, RenderedField, TaskInstance};
use fencepost_core::time::Timestamp;

fn label(task: &TaskInstance) -> String {
    task_label(&task.task_id, task.map_index, task.map_label.as_deref())
}

fn reason(task: &TaskInstance, now: Timestamp) -> Cell {
    match (&task.reason, &task.next_try_at) {
        (reason, Some(at)) if task.state == "up_for_retry" => {
            let next = format!("next try {}", age(Some(at), now));
            Cell::from(reason.as_ref().map_or(next.clone(), |reason| format!("{reason}; {next}")))
        }
        (reason, _) => Cell::or_dash(reason.as_ref()),
    }
}

impl Row for TaskInstance {
    const COLUMNS: &'static [Column] = &[
        Always("TASK"),
        Always("STATE"),
        Always("TRY"),
        Always("ATTEMPTS"),
        Always("STARTED"),
        Always("DURATION"),
        Always("REASON"),
        Wide("TOKEN"),
        Wide("WORKER"),
        Wide("POOL"),
        Wide("QUEUE"),
        Wide("PRIORITY"),
        Wide("INFRA"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let (started, ended) = (self.started_at.as_deref(), self.ended_at.as_deref());
        vec![
            Cell::painted(label(self), Paint::Strong),
            Cell::state(&self.state),
            format!("{}/{}", self.try_number, self.max_tries).into(),
            self.attempt_count.to_string().into(),
            clock(started, now).into(),
            between(started, ended, now).into(),
            reason(self, now),
            token(self.token.as_deref()),
            Cell::or_dash(self.worker.as_ref()),
            format!("{} ({})", self.pool, self.pool_slots).into(),
            self.queue.as_str().into(),
            self.priority_weight.to_string().into(),
            format!("{}/{}", self.infra_used, self.infra_retries).into(),
        ]
    }
    fn name(&self) -> String {
        super::task_path(&self.task_id, self.map_index)
    }
}

impl Detail for TaskInstance {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let (started, ended) = (self.started_at.as_deref(), self.ended_at.as_deref());
        vec![
            ("Task", Cell::painted(label(self), Paint::Strong)),
            ("DAG", self.dag_id.as_str().into()),
            ("Run", self.run_id.as_str().into()),
            ("State", Cell::state(&self.state)),
            ("Reason", reason(self, now)),
            ("Since", clock(self.since.as_deref(), now).into()),
            ("Try", format!("{} of {}", self.try_number, self.max_tries).into()),
            ("Infra retries", format!("{} of {} used", self.infra_used, self.infra_retries).into()),
            ("Attempts", self.attempt_count.to_string().into()),
            ("Token", token(self.token.as_deref())),
            ("Worker", Cell::or_dash(self.worker.as_ref())),
            ("Started", date_time(started).into()),
            ("Ended", date_time(ended).into()),
            ("Duration", between(started, ended, now).into()),
            ("After", Cell::or_dash(Some(self.depends_on.join(", ")))),
            ("Trigger rule", self.trigger_rule.as_str().into()),
            ("Pool", format!("{} ({} slots)", self.pool, self.pool_slots).into()),
            ("Queue", self.queue.as_str().into()),
            ("Priority", self.priority_weight.to_string().into()),
        ]
    }
    fn name(&self) -> String {
        super::task_path(&self.task_id, self.map_index)
    }
}

impl Row for Output {
    const COLUMNS: &'static [Column] = &[Always("NAME"), Always("VALUE")];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        let value = self.value.as_str().map_or_else(|| self.value.to_string(), Into::into);
        vec![Cell::painted(&self.name, Paint::Strong), value.into()]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Row for RenderedField {
    const COLUMNS: &'static [Column] = &[Always("FIELD"), Always("TEXT")];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        let text = match (&self.text, &self.error) {
            (_, Some(error)) => Cell::painted(error, Paint::Bad),
            (text, None) => Cell::or_dash(text.as_ref()),
        };
        vec![Cell::painted(&self.field, Paint::Strong), text]
    }
    fn name(&self) -> String {
        self.field.clone()
    }
}

impl Row for Change {
    const COLUMNS: &'static [Column] =
        &[Always("TASK"), Always("NOW"), Always("THEN"), Always("KEY"), Always("REASON")];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(task_label(&self.task_id, self.map_index, None), Paint::Strong),
            Cell::state(&self.from),
            self.to.as_deref().map_or(Cell::painted("kept", Paint::Dim), Cell::state),
            match (self.new_key, &self.to) {
                (true, _) => "new".into(),
                (false, Some(_)) => Cell::painted("kept", Paint::Dim),
                (false, None) => Cell::or_dash(None::<String>),
            },
            Cell::or_dash(self.reason.as_ref()),
        ]
    }
    fn name(&self) -> String {
        super::task_path(&self.task_id, self.map_index)
    }
}
