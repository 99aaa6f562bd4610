//! Backfills, as a list and as a page.

use super::flag;
use crate::output::paint::Paint;
use crate::output::span::{age, date_time};
use crate::output::table::Cell;
use crate::output::{Column, Detail, Row};
use Column::{Always, Wide};
use fencepost_api::rest::{Backfill, BackfillProgress};
use fencepost_core::time::Timestamp;

impl Row for Backfill {
    const COLUMNS: &'static [Column] = &[
        Always("BACKFILL"),
        Always("DAG"),
        Always("STATE"),
        Always("PAUSED"),
        Always("FROM"),
        Always("TO"),
        Always("DONE"),
        Always("FAILED"),
        Always("SINCE"),
        Wide("BEHAVIOR"),
        Wide("MOST"),
        Wide("BY"),
    ];
    fn cells(&self, now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(self.id.to_string(), Paint::Strong),
            self.dag_id.as_str().into(),
            self.state.as_str().into(),
            flag(self.paused, "paused"),
            date_time(Some(&self.from_date)).into(),
            date_time(Some(&self.to_date)).into(),
            done(&self.progress).into(),
            failed(&self.progress),
            age(Some(&self.created_at), now).into(),
            self.reprocess_behavior.as_str().into(),
            self.max_active_runs.to_string().into(),
            self.created_by.as_str().into(),
        ]
    }
    fn name(&self) -> String {
        self.id.to_string()
    }
}

/// Slots that are done with, of all.
fn done(of: &BackfillProgress) -> String {
    let done = of.kept + of.success + of.failed + of.cancelled;
    format!("{done}/{}", of.slots)
}

fn failed(of: &BackfillProgress) -> Cell {
    let paint = if of.failed > 0 { Paint::Alert } else { Paint::Plain };
    Cell::painted(of.failed.to_string(), paint)
}

impl Detail for Backfill {
    fn lines(&self, now: Timestamp) -> Vec<(&'static str, Cell)> {
        let of = &self.progress;
        let slots = format!("{} new, {} again, {} kept", of.created, of.rerun, of.kept);
        let runs = format!(
            "{} queued, {} running, {} success, {} cancelled",
            of.queued, of.running, of.success, of.cancelled
        );
        vec![
            ("Backfill", Cell::painted(self.id.to_string(), Paint::Strong)),
            ("DAG", self.dag_id.as_str().into()),
            ("State", self.state.as_str().into()),
            ("Paused", flag(self.paused, "paused")),
            ("From", date_time(Some(&self.from_date)).into()),
            ("To", date_time(Some(&self.to_date)).into()),
            ("Behavior", self.reprocess_behavior.as_str().into()),
            ("Order", if self.run_backwards { "newest first" } else { "oldest first" }.into()),
            ("At once", self.max_active_runs.to_string().into()),
            ("Done", done(of).into()),
            ("Slots", slots.into()),
            ("Runs", runs.into()),
            ("Failed", failed(of)),
            (
                "Created",
                format!("{} by {}", date_time(Some(&self.created_at)), self.created_by).into(),
            ),
            ("Ended", age(self.ended_at.as_deref(), now).into()),
        ]
    }
    fn name(&self) -> String {
        self.id.to_string()
    }
}
