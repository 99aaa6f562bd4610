//! Assets and their events.

use super::task_label;
use crate::output::paint::Paint;
use crate::output::span::{age, date_time};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::{Always, Wide};
use fencepost_api::rest::{Asset, AssetDetail, AssetEvent, AssetTask};
use fencepost_core::time::Timestamp;

impl Row for Asset {
    const COLUMNS: &'static [Column] =
        &[Always("ASSET"), Always("PRODUCERS"), Always("CONSUMERS"), Always("LAST EVENT")];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(&self.name, Paint::Strong),
            self.producers.to_string().into(),
            self.consumers.to_string().into(),
            age(self.last_event_at.as_deref(), now).into(),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Detail for AssetDetail {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let tasks = |tasks: &[AssetTask]| {
            let all: Vec<String> =
                tasks.iter().map(|of| format!("{} {}", of.dag_id, of.task_id)).collect();
            Cell::or_dash(Some(all.join(", ")))
        };
        let consumers: Vec<String> = self
            .consumers
            .iter()
            .map(|of| format!("{} ({} queued)", of.dag_id, of.queued))
            .collect();
        vec![
            ("Asset", Cell::painted(&self.name, Paint::Strong)),
            ("Producers", tasks(&self.producers)),
            ("Consumers", Cell::or_dash(Some(consumers.join(", ")))),
            ("Read by", tasks(&self.inlets)),
            ("Last event", age(self.last_event_at.as_deref(), now).into()),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

impl Row for AssetEvent {
    const COLUMNS: &'static [Column] = &[
        Always("EVENT"),
        Always("ASSET"),
        Always("AT"),
        Always("FROM"),
        Always("TAKEN BY"),
        Wide("EXTRA"),
    ];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        let from = match &self.source {
            Some(of) => {
                let task = task_label(&of.task_id, of.map_index, None);
                format!("{} {} {task}", of.dag_id, of.run_id)
            }
            None => self.emitted_by.clone(),
        };
        let taken: Vec<String> = self
            .queued_for
            .iter()
            .map(|of| format!("{} {}", of.dag_id, of.run_id.as_deref().unwrap_or("(queued)")))
            .collect();
        vec![
            Cell::painted(self.id.to_string(), Paint::Strong),
            self.asset.as_str().into(),
            date_time(Some(&self.at)).into(),
            from.into(),
            Cell::or_dash(Some(taken.join(", "))),
            self.extra.to_string().into(),
        ]
    }
    fn name(&self) -> String {
        self.id.to_string()
    }
}
