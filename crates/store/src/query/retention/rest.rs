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
    RETENTION_TOKENS,
    RETENTION_TOKENS_OLD,
    RETENTION_ANSWERS_OLD,
];
