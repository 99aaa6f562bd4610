//! Slots that wait for a place: queued runs of the schedule that have not begun.
//!
//! What a person asked for, what was cleared, and what is paused is no such slot.

use super::{Run, decode, decode_all};
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::time::Timestamp;

pub(super) const RUN_COUNT: Stmt = Stmt::same(
    "run_count",
    "SELECT COUNT(*) FROM run WHERE dag_id = $1 AND state = 'queued' AND run_type = 'scheduled'
        AND backfill_pk IS NULL",
);

/// How many scheduled runs of a DAG wait.
pub async fn count_waiting(tx: &Tx, dag_id: &str) -> Result<i64, StoreError> {
    let row = tx.query_opt(&RUN_COUNT, values![dag_id]).await?;
    row.unwrap_or(Row(vec![])).columns("run").int()
}

pub(super) const RUN_COUNT_OF_ASSETS: Stmt = Stmt::same(
    "run_count_of_assets",
    "SELECT COUNT(*) FROM run WHERE dag_id = $1 AND state = 'queued' AND run_type = 'asset_triggered'",
);

/// How many runs of a DAG wait that events of assets made.
pub async fn count_waiting_for_assets(tx: &Tx, dag_id: &str) -> Result<i64, StoreError> {
    let row = tx.query_opt(&RUN_COUNT_OF_ASSETS, values![dag_id]).await?;
    row.unwrap_or(Row(vec![])).columns("run").int()
}

pub(super) const RUN_SLOTS_BEFORE: Stmt = Stmt::same(
    "run_slots_before",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND state = 'queued' AND run_type = 'scheduled' AND made = 0
            AND paused = 0 AND backfill_pk IS NULL AND run_after < $2 ORDER BY run_after, run_pk LIMIT $3"
    ),
)
.locking(" FOR UPDATE SKIP LOCKED");

/// Slots of a DAG that wait and were due before an instant, oldest first.
pub async fn slots_before(
    tx: &Tx,
    dag_id: &str,
    before: Timestamp,
    limit: u32,
) -> Result<Vec<Run>, StoreError> {
    decode_all(tx.query(&RUN_SLOTS_BEFORE, values![dag_id, before, limit]).await?)
}

pub(super) const RUN_SLOT_EDGES: Stmt = Stmt::same(
    "run_slot_edges",
    "SELECT MIN(run_after), MAX(run_after) FROM run WHERE dag_id = $1 AND state = 'queued'
        AND run_type = 'scheduled' AND made = 0 AND paused = 0 AND backfill_pk IS NULL",
);

/// When the oldest and the newest of a DAG's waiting slots were due; `None`: no slot waits.
pub async fn slot_edges(
    tx: &Tx,
    dag_id: &str,
) -> Result<Option<(Timestamp, Timestamp)>, StoreError> {
    let row = tx.query_opt(&RUN_SLOT_EDGES, values![dag_id]).await?;
    let mut c = row.unwrap_or(Row(vec![])).columns("run");
    Ok(c.opt_time()?.zip(c.opt_time()?))
}

pub(super) const RUN_OLDEST_SLOT: Stmt = Stmt::same(
    "run_oldest_slot",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND state = 'running' AND run_type = 'scheduled'
            AND backfill_pk IS NULL ORDER BY run_after, run_pk LIMIT 1"
    ),
);

/// The oldest running run of a DAG's schedule.
pub async fn oldest_slot(tx: &Tx, dag_id: &str) -> Result<Option<Run>, StoreError> {
    tx.query_opt(&RUN_OLDEST_SLOT, values![dag_id]).await?.map(decode).transpose()
}
