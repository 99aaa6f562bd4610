//! Events that are of no run, answers that are over, credentials that let nobody in.

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::time::Timestamp;

// The oldest first, then by age: the newer ones are not walked over.
const RETENTION_EVENTS: Stmt = Stmt::split(
    "retention_events",
    "DELETE FROM event WHERE at < $1 AND seq IN (
        SELECT seq FROM event WHERE run_pk IS NULL ORDER BY seq LIMIT $2)",
    "DELETE FROM event WHERE seq IN (
        SELECT seq FROM (SELECT seq, at FROM event WHERE run_pk IS NULL
            ORDER BY seq LIMIT $2 FOR UPDATE SKIP LOCKED) oldest WHERE at < $1)",
);
const RETENTION_EVENTS_OLD: Stmt = Stmt::same(
    "retention_events_old",
    "SELECT seq, at FROM event WHERE run_pk IS NULL AND seq > $1 ORDER BY seq LIMIT $2",
);

/// Removes some of the oldest events that are of no run, if they are from before an instant; how many.
pub async fn drop_events(tx: &Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    tx.execute(&RETENTION_EVENTS, values![before, limit]).await
}

/// Events that are of no run, after a number.
pub async fn events(tx: &Tx, after: i64, limit: u32) -> Result<Vec<(i64, Timestamp)>, StoreError> {
    let rows = tx.query(&RETENTION_EVENTS_OLD, values![after, limit]).await?;
    let decode = |row: Row| {
        let mut c = row.columns("event");
        Ok((c.int()?, c.time()?))
    };
    rows.into_iter().map(decode).collect()
}

const RETENTION_BACKFILL_SLOTS: Stmt = Stmt::same(
    "retention_backfill_slots",
    "DELETE FROM backfill_slot WHERE (backfill_pk, logical_date) IN (
        SELECT s.backfill_pk, s.logical_date FROM backfill b
            JOIN backfill_slot s ON s.backfill_pk = b.backfill_pk
        WHERE b.ended_at < $1 ORDER BY s.backfill_pk, s.logical_date LIMIT $2)",
);
const RETENTION_BACKFILLS: Stmt = Stmt::same(
    "retention_backfills",
    "DELETE FROM backfill WHERE backfill_pk IN (
        SELECT b.backfill_pk FROM backfill b WHERE b.ended_at < $1
            AND NOT EXISTS (SELECT 1 FROM backfill_slot s WHERE s.backfill_pk = b.backfill_pk)
        ORDER BY b.backfill_pk LIMIT $2)",
);
const RETENTION_BACKFILLS_OLD: Stmt =
    Stmt::same("retention_backfills_old", "SELECT COUNT(*) FROM backfill WHERE ended_at < $1");

/// Removes some slots of backfills that ended before an instant; how many. Their runs stay.
pub async fn drop_backfill_slots(
    tx: &Tx,
    before: Timestamp,
    limit: u32,
) -> Result<u64, StoreError> {
    tx.execute(&RETENTION_BACKFILL_SLOTS, values![before, limit]).await
}

/// Removes some backfills that ended before an instant and have no slots left; how many.
pub async fn drop_backfills(tx: &Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    tx.execute(&RETENTION_BACKFILLS, values![before, limit]).await
}

/// How many backfills ended before an instant.
pub async fn backfills(tx: &Tx, before: Timestamp) -> Result<u64, StoreError> {
    count(tx, &RETENTION_BACKFILLS_OLD, before).await
}

const RETENTION_ASSET_QUEUE: Stmt = Stmt::same(
    "retention_asset_queue",
    "DELETE FROM asset_queue WHERE (event_pk, dag_id) IN (
        SELECT q.event_pk, q.dag_id FROM dag d
            JOIN asset_queue q ON q.dag_id = d.dag_id AND q.run_pk IS NULL
            JOIN asset_event e ON e.event_pk = q.event_pk
        WHERE d.is_active = 0 AND e.at < $1 ORDER BY q.event_pk LIMIT $2)",
);
const RETENTION_ASSET_EVENTS: Stmt = Stmt::same(
    "retention_asset_events",
    "DELETE FROM asset_event WHERE event_pk IN (
        SELECT e.event_pk FROM asset_event e WHERE e.at < $1
            AND NOT EXISTS (SELECT 1 FROM asset_queue q WHERE q.event_pk = e.event_pk)
        ORDER BY e.at LIMIT $2)",
);
const RETENTION_ASSET_EVENTS_OLD: Stmt = Stmt::same(
    "retention_asset_events_old",
    "SELECT COUNT(*) FROM asset_event e WHERE e.at < $1
        AND NOT EXISTS (SELECT 1 FROM asset_queue q WHERE q.event_pk = e.event_pk)",
);

/// Takes events from before an instant out of the queues of DAGs whose files are gone; how many.
pub async fn drop_asset_queue(tx: &Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    tx.execute(&RETENTION_ASSET_QUEUE, values![before, limit]).await
}

/// Removes some events of assets from before an instant that no queue and no run has; how many.
pub async fn drop_asset_events(tx: &Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    tx.execute(&RETENTION_ASSET_EVENTS, values![before, limit]).await
}

/// How many of them there are.
pub async fn asset_events(tx: &Tx, before: Timestamp) -> Result<u64, StoreError> {
    count(tx, &RETENTION_ASSET_EVENTS_OLD, before).await
}

const RETENTION_TOKENS: Stmt = Stmt::same(
    "retention_tokens",
    "DELETE FROM api_token WHERE id IN (
        SELECT id FROM api_token WHERE expires_at < $1 OR revoked_at < $1 ORDER BY id LIMIT $2)",
);
const RETENTION_TOKENS_OLD: Stmt = Stmt::same(
    "retention_tokens_old",
    "SELECT COUNT(*) FROM api_token WHERE expires_at < $1 OR revoked_at < $1",
);
const RETENTION_ANSWERS_OLD: Stmt =
    Stmt::same("retention_answers_old", "SELECT COUNT(*) FROM idempotency WHERE at <= $1");

/// Removes some credentials that let nobody in since before an instant; how many.
pub async fn drop_tokens(tx: &Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    tx.execute(&RETENTION_TOKENS, values![before, limit]).await
}

/// How many of them there are.
pub async fn tokens(tx: &Tx, before: Timestamp) -> Result<u64, StoreError> {
    count(tx, &RETENTION_TOKENS_OLD, before).await
}

/// How many answers to requests are from before an instant.
pub async fn answers(tx: &Tx, before: Timestamp) -> Result<u64, StoreError> {
    count(tx, &RETENTION_ANSWERS_OLD, before).await
}

async fn count(tx: &Tx, stmt: &Stmt, before: Timestamp) -> Result<u64, StoreError> {
    let row = tx.query_opt(stmt, values![before]).await?;
    row.unwrap_or(Row(vec![])).columns("retention").number()
}

pub(super) const STATEMENTS: &[Stmt] = &[
    RETENTION_EVENTS,
    RETENTION_EVENTS_OLD,
    RETENTION_BACKFILL_SLOTS,
    RETENTION_BACKFILLS,
    RETENTION_BACKFILLS_OLD,
    RETENTION_ASSET_QUEUE,
    RETENTION_ASSET_EVENTS,
    RETENTION_ASSET_EVENTS_OLD,
    RETENTION_TOKENS,
    RETENTION_TOKENS_OLD,
    RETENTION_ANSWERS_OLD,
];
