//! The rows that runs left which are gone: logs first, instances last, then the run's key.

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;

const RETENTION_LEFT: Stmt =
    Stmt::same("retention_left", "SELECT run_pk FROM pruned_run ORDER BY run_pk LIMIT 1")
        .locking(" FOR UPDATE SKIP LOCKED");
const RETENTION_LOG_ROWS: Stmt = Stmt::same(
    "retention_log_rows",
    "DELETE FROM attempt_log WHERE (token, segment, at_offset) IN (
        SELECT l.token, l.segment, l.at_offset FROM attempt a
        JOIN attempt_log l ON l.token = a.token WHERE a.run_pk = $1 LIMIT $2)",
);
const RETENTION_EVENT_ROWS: Stmt = Stmt::same(
    "retention_event_rows",
    "DELETE FROM event WHERE seq IN (
        SELECT seq FROM event WHERE run_pk = $1 ORDER BY seq LIMIT $2)",
);
const RETENTION_XCOM_ROWS: Stmt = Stmt::same(
    "retention_xcom_rows",
    "DELETE FROM xcom WHERE (run_pk, task_index, name, map_index) IN (
        SELECT run_pk, task_index, name, map_index FROM xcom WHERE run_pk = $1 LIMIT $2)",
);
// What it took stays taken: nobody takes it again.
const RETENTION_ASSET_ROWS: Stmt = Stmt::same(
    "retention_asset_rows",
    "DELETE FROM asset_queue WHERE (event_pk, dag_id) IN (
        SELECT event_pk, dag_id FROM asset_queue WHERE run_pk = $1 AND run_pk IS NOT NULL LIMIT $2)",
);
const RETENTION_ATTEMPT_ROWS: Stmt = Stmt::same(
    "retention_attempt_rows",
    "DELETE FROM attempt WHERE token IN (
        SELECT token FROM attempt WHERE run_pk = $1 LIMIT $2) RETURNING token",
);
const RETENTION_TI_ROWS: Stmt = Stmt::same(
    "retention_ti_rows",
    "DELETE FROM task_instance WHERE (run_pk, task_index, map_index) IN (
        SELECT run_pk, task_index, map_index FROM task_instance WHERE run_pk = $1 LIMIT $2)",
);
const RETENTION_KEY: Stmt = Stmt::same("retention_key", "DELETE FROM pruned_run WHERE run_pk = $1");

/// Pieces of logs are large: so many go in place of this many other rows.
const PER_PIECE: u32 = 10;

/// What one batch removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    pub logs: u64,
    pub events: u64,
    pub outputs: u64,
    /// Whose files may be removed.
    pub attempts: Vec<Token>,
    pub instances: u64,
    /// Nothing of the run is left.
    pub is_all: bool,
}

/// A run that is gone, of which there are rows; locked in a transaction that may write.
pub async fn left(tx: &Tx) -> Result<Option<i64>, StoreError> {
    let row = tx.query_opt(&RETENTION_LEFT, vec![]).await?;
    row.map(|row| row.columns("pruned_run").int()).transpose()
}

/// Removes up to so many rows of a run that is gone.
pub async fn remove(tx: &Tx, run_pk: i64, most: u32) -> Result<Removed, StoreError> {
    let mut removed = Removed::default();
    let mut room = u64::from(most);
    let pieces = (most / PER_PIECE).max(1);
    removed.logs = tx.execute(&RETENTION_LOG_ROWS, values![run_pk, pieces]).await?;
    room = room.saturating_sub(removed.logs * u64::from(PER_PIECE));
    removed.events = some(tx, &RETENTION_EVENT_ROWS, run_pk, &mut room).await?;
    removed.outputs = some(tx, &RETENTION_XCOM_ROWS, run_pk, &mut room).await?;
    some(tx, &RETENTION_ASSET_ROWS, run_pk, &mut room).await?;
    // Whoever removes the attempts first does not find their logs.
    if room > 0 {
        let rows = tx.query(&RETENTION_ATTEMPT_ROWS, values![run_pk, limit(room)]).await?;
        let token = |row: Row| row.columns("attempt").token();
        removed.attempts = rows.into_iter().map(token).collect::<Result<_, _>>()?;
        room = room.saturating_sub(removed.attempts.len() as u64);
    }
    removed.instances = some(tx, &RETENTION_TI_ROWS, run_pk, &mut room).await?;
    if room > 0 {
        removed.is_all = tx.execute(&RETENTION_KEY, values![run_pk]).await? == 1;
    }
    Ok(removed)
}

/// Up to as many as there is room for.
async fn some(tx: &Tx, stmt: &Stmt, run_pk: i64, room: &mut u64) -> Result<u64, StoreError> {
    if *room == 0 {
        return Ok(0);
    }
    let gone = tx.execute(stmt, values![run_pk, limit(*room)]).await?;
    *room = room.saturating_sub(gone);
    Ok(gone)
}

fn limit(room: u64) -> i64 {
    i64::try_from(room).unwrap_or(i64::MAX)
}

const RETENTION_SIZE: Stmt = Stmt::same(
    "retention_size",
    "SELECT (SELECT COUNT(*) FROM attempt a JOIN attempt_log l ON l.token = a.token
                WHERE a.run_pk = $1),
            (SELECT COUNT(*) FROM event WHERE run_pk = $1),
            (SELECT COUNT(*) FROM xcom WHERE run_pk = $1),
            (SELECT COUNT(*) FROM attempt WHERE run_pk = $1),
            (SELECT COUNT(*) FROM task_instance WHERE run_pk = $1)",
);

/// How many rows a run has, by what they are.
pub async fn size(tx: &Tx, run_pk: i64) -> Result<[(&'static str, u64); 5], StoreError> {
    let row = tx.query_opt(&RETENTION_SIZE, values![run_pk]).await?.unwrap_or(Row(vec![]));
    let mut c = row.columns("run");
    Ok([
        ("log pieces", c.number()?),
        ("events", c.number()?),
        ("outputs", c.number()?),
        ("attempts", c.number()?),
        ("task instances", c.number()?),
    ])
}

pub(super) const STATEMENTS: &[Stmt] = &[
    RETENTION_LEFT,
    RETENTION_LOG_ROWS,
    RETENTION_EVENT_ROWS,
    RETENTION_XCOM_ROWS,
    RETENTION_ASSET_ROWS,
    RETENTION_ATTEMPT_ROWS,
    RETENTION_TI_ROWS,
    RETENTION_KEY,
    RETENTION_SIZE,
];
