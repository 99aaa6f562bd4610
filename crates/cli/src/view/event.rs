//! The transition log.

use super::{task_label, token};
use crate::output::span::clock;
use crate::output::table::Cell;
use crate::output::{Column, Row};
use Column::{Always, Wide};
use fencepost_api::rest::Event;
use fencepost_core::time::Timestamp;

impl Row for Event {
    const COLUMNS: &'static [Column] = &[
        Always("AT"),
        Always("KIND"),
        Always("TASK"),
        Always("TOKEN"),
        Always("CHANGE"),
        Always("REASON"),
        Always("ACTOR"),
        Wide("SEQ"),
        Wide("DAG"),
        Wide("RUN"),
        Wide("EVIDENCE"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let task =
            self.task_id.as_ref().map(|id| task_label(id, self.map_index.unwrap_or(-1), None));
        let change = match (&self.from, &self.to) {
            (Some(from), Some(to)) => Cell::state_with(to, &format!("{from} → {to}")),
            (None, Some(to)) => Cell::state(to),
            _ => Cell::or_dash(None::<String>),
        };
        vec![
            clock(Some(&self.at), now).into(),
            self.kind.as_str().into(),
            Cell::or_dash(task),
            token(self.token.as_deref()),
            change,
            Cell::or_dash(self.reason.as_ref()),
            self.actor.as_str().into(),
            self.seq.to_string().into(),
            Cell::or_dash(self.dag_id.as_ref()),
            Cell::or_dash(self.run_id.as_ref()),
            Cell::or_dash(self.evidence.as_ref().map(|evidence| &evidence.kind)),
        ]
    }
    fn name(&self) -> String {
        self.seq.to_string()
    }
}
