//! What is told to the outside.

use super::task_label;
use crate::output::span::age;
use crate::output::table::Cell;
use crate::output::{Column, Row};
use Column::{Always, Wide};
use fencepost_api::rest::Callback;
use fencepost_core::time::Timestamp;

impl Row for Callback {
    const COLUMNS: &'static [Column] = &[
        Always("ID"),
        Always("DAG"),
        Always("RUN"),
        Always("TASK"),
        Always("OCCASION"),
        Always("KIND"),
        Wide("TARGET"),
        Always("STATE"),
        Always("TRIES"),
        Always("AGE"),
        Always("LAST ERROR"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        let task = self.task_id.as_ref().map(|id| task_label(id, self.map_index, None));
        vec![
            self.id.as_str().into(),
            self.dag_id.as_str().into(),
            self.run_id.as_str().into(),
            Cell::or_dash(task),
            self.occasion.as_str().into(),
            self.kind.as_str().into(),
            self.target.as_str().into(),
            Cell::state(&self.state),
            self.tries.to_string().into(),
            age(Some(&self.created_at), now).into(),
            Cell::or_dash(self.last_error.as_ref()),
        ]
    }
    fn name(&self) -> String {
        self.id.clone()
    }
}
