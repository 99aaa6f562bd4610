//! Answers to requests with an `Idempotency-Key`, kept for a while.
//!
//! A row with status 0 is a reservation: a request with that key was begun, and its answer is not
//! known (yet). Its body holds what the request decided beforehand, such as the id of a run.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::time::{Span, Timestamp};

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Of the request.
    pub digest: String,
    /// The HTTP status; 0: begun only.
    pub status: u16,
    pub body: String,
}

/// Rows that one pruning removes at most.
const PRUNED: u32 = 200;

const IDEMPOTENCY_FIND: Stmt = Stmt::same(
    "idempotency_find",
    "SELECT digest, status, body FROM idempotency WHERE key = $1 AND at > $2",
);

/// What is known of a key that is not older than `age`.
pub async fn find(tx: &Tx, key: &str, age: Span) -> Result<Option<Kept>, StoreError> {
    let Some(row) = tx.query_opt(&IDEMPOTENCY_FIND, values![key, oldest(tx, age)]).await? else {
        return Ok(None);
    };
    let mut c = row.columns("idempotency");
    Ok(Some(Kept { digest: c.text()?, status: c.number()?, body: c.text()? }))
}

fn oldest(tx: &Tx, age: Span) -> Timestamp {
    tx.now().minus(age)
}

const IDEMPOTENCY_PUT: Stmt = Stmt::same(
    "idempotency_put",
    "INSERT INTO idempotency (key, digest, status, body, at) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (key) DO UPDATE SET digest = $2, status = $3, body = $4, at = $5
        WHERE idempotency.at <= $6 OR (idempotency.status = 0 AND idempotency.digest = $2)",
);

/// Writes what is known of a key: over nothing, over a reservation of the same request, or over
/// what is older than `age`. False: another request has it.
pub async fn put(tx: &Tx, key: &str, kept: &Kept, age: Span) -> Result<bool, StoreError> {
    let status = i64::from(kept.status);
    let values = values![key, &kept.digest, status, &kept.body, tx.now(), oldest(tx, age)];
    Ok(tx.execute(&IDEMPOTENCY_PUT, values).await? == 1)
}

const IDEMPOTENCY_FORGET: Stmt = Stmt::same(
    "idempotency_forget",
    "DELETE FROM idempotency WHERE key = $1 AND digest = $2 AND status = 0",
);

/// Gives a reservation back: the request changed nothing.
pub async fn forget(tx: &Tx, key: &str, digest: &str) -> Result<(), StoreError> {
    tx.execute(&IDEMPOTENCY_FORGET, values![key, digest]).await.map(drop)
}

const IDEMPOTENCY_PRUNE: Stmt = Stmt::same(
    "idempotency_prune",
    "DELETE FROM idempotency WHERE key IN (
        SELECT key FROM idempotency WHERE at <= $1 ORDER BY at LIMIT $2)",
);

/// Removes some of what is older than `age`.
pub async fn prune(tx: &Tx, age: Span) -> Result<u64, StoreError> {
    tx.execute(&IDEMPOTENCY_PRUNE, values![oldest(tx, age), PRUNED]).await
}

pub(super) const STATEMENTS: &[Stmt] =
    &[IDEMPOTENCY_FIND, IDEMPOTENCY_PUT, IDEMPOTENCY_FORGET, IDEMPOTENCY_PRUNE];
