//! Deadlines of runs that nobody has been told of.

use super::{Run, decode_all};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::time::Timestamp;

pub(super) const RUN_ALERTS: Stmt = Stmt::split(
    "run_alerts",
    concat!(
        "UPDATE run SET alert_at = NULL WHERE run_pk IN (
            SELECT run_pk FROM run WHERE alert_at IS NOT NULL AND state IN ('queued', 'running')
                AND alert_at <= $1 ORDER BY alert_at, run_pk LIMIT $2)
         RETURNING ",
        columns!()
    ),
    concat!(
        "UPDATE run SET alert_at = NULL WHERE run_pk IN (
            SELECT run_pk FROM run WHERE alert_at IS NOT NULL AND state IN ('queued', 'running')
                AND alert_at <= $1 ORDER BY alert_at, run_pk LIMIT $2 FOR UPDATE SKIP LOCKED)
         RETURNING ",
        columns!()
    ),
);

/// Takes the alerts that are due of runs that have not finished: each is taken once.
pub async fn alerts(tx: &Tx, limit: u32) -> Result<Vec<Run>, StoreError> {
    let mut found = decode_all(tx.query(&RUN_ALERTS, values![tx.now(), limit]).await?)?;
    found.sort_unstable_by_key(|run| run.run_pk);
    Ok(found)
}

pub(super) const RUN_NEXT_ALERT: Stmt = Stmt::same(
    "run_next_alert",
    "SELECT MIN(alert_at) FROM run WHERE alert_at IS NOT NULL AND state IN ('queued', 'running')",
);

/// When the next alert is due; it may be past.
pub async fn next_alert(tx: &Tx) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = tx.query_opt(&RUN_NEXT_ALERT, vec![]).await? else { return Ok(None) };
    row.columns("run").opt_time()
}
