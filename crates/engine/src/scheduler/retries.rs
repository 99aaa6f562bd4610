//! Retries whose time has come. A timer is a row (I15): it has its effect once, after any outage.

use crate::error::EngineError;
use crate::log;
use crate::{Cx, Report};
use fencepost_core::lifecycle::{TiEvent, ti_next};
use fencepost_store::query::event;
use fencepost_store::query::task_instance::{self, TiChange};

const BATCH: u32 = 128;

pub(super) async fn bring_back(cx: &Cx) -> Result<Report, EngineError> {
    let tx = cx.store.begin("retries").await?;
    let due = task_instance::retry_due(&tx, BATCH).await?;
    let changes: Vec<TiChange> = due
        .iter()
        .filter_map(|ti| {
            let mut change = TiChange::of(ti);
            change.to.state = ti_next(ti.state, TiEvent::RetryDue).ok()?;
            change.to.retry_at = None;
            change.to.scheduled_at = Some(tx.now());
            change.to.ended_at = None;
            Some(change)
        })
        .collect();
    let applied = task_instance::change(&tx, &changes).await?;
    let events = changes
        .iter()
        .zip(applied)
        .filter(|(_, applied)| *applied)
        .map(|(change, _)| log::ti_state(&change.to, change.from, log::SCHEDULER))
        .collect::<Vec<_>>();
    let moved = events.len();
    event::append(&tx, events).await?;
    let next_due = task_instance::next_retry(&tx).await?;
    tx.commit().await?;
    Ok(Report { moved, next_due, troubles: Vec::new() })
}
