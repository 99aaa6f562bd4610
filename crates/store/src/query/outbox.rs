//! The outbox: effects to carry out after the commit that wrote them. Rows with a state, never a
//! cursor, so that one that commits late is not skipped.

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::time::{Span, Timestamp};

/// An effect that is due.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    pub id: i64,
    pub kind: String,
    pub payload: serde_json::Value,
    pub tries: i64,
}

const OUTBOX_INSERT: Stmt = Stmt::same(
    "outbox_insert",
    "INSERT INTO outbox (kind, payload, state, created_at, due_at)
     VALUES ($1, $2, 'due', $3, $3)",
);

/// Writes an effect, in the transaction that wants it.
pub async fn insert(tx: &Tx, kind: &str, payload: &serde_json::Value) -> Result<(), StoreError> {
    tx.execute(&OUTBOX_INSERT, values![kind, payload, tx.now()]).await.map(drop)
}

const OUTBOX_DUE: Stmt = Stmt::same(
    "outbox_due",
    "SELECT id, kind, payload, tries FROM outbox
     WHERE state = 'due' AND due_at <= $1 ORDER BY due_at, id LIMIT $2",
);

/// Effects that are due, oldest first.
pub async fn due(tx: &Tx, limit: u32) -> Result<Vec<Effect>, StoreError> {
    let rows = tx.query(&OUTBOX_DUE, values![tx.now(), limit]).await?;
    rows.into_iter().map(effect).collect()
}

fn effect(row: Row) -> Result<Effect, StoreError> {
    let mut c = row.columns("outbox");
    Ok(Effect { id: c.int()?, kind: c.text()?, payload: c.json()?, tries: c.int()? })
}

const OUTBOX_TAKE: Stmt = Stmt::split(
    "outbox_take",
    "UPDATE outbox SET due_at = $3 WHERE id IN (
        SELECT id FROM outbox WHERE state = 'due' AND due_at <= $1 ORDER BY due_at, id LIMIT $2)
     RETURNING id, kind, payload, tries",
    "WITH picked AS MATERIALIZED (
        SELECT id FROM outbox WHERE state = 'due' AND due_at <= $1
        ORDER BY due_at, id LIMIT $2 FOR UPDATE SKIP LOCKED)
     UPDATE outbox o SET due_at = $3 FROM picked WHERE o.id = picked.id
     RETURNING o.id, o.kind, o.payload, o.tries",
);

/// Takes effects that are due, oldest first: for a while they are due for nobody else, then again,
/// if whoever took them did not tell.
pub async fn take(tx: &Tx, limit: u32, hold: Span) -> Result<Vec<Effect>, StoreError> {
    let values = values![tx.now(), limit, tx.now().plus(hold)];
    let rows = tx.query(&OUTBOX_TAKE, values).await?;
    let mut effects = rows.into_iter().map(effect).collect::<Result<Vec<_>, _>>()?;
    effects.sort_by_key(|effect| effect.id);
    Ok(effects)
}

const OUTBOX_DONE: Stmt = Stmt::same("outbox_done", "DELETE FROM outbox WHERE id = $1");

/// Forgets effects that were carried out.
pub async fn done(tx: &Tx, ids: &[i64]) -> Result<(), StoreError> {
    tx.execute_many(&OUTBOX_DONE, ids.iter().map(|id| values![*id]).collect()).await.map(drop)
}

const OUTBOX_AGAIN: Stmt = Stmt::same(
    "outbox_again",
    "UPDATE outbox SET tries = tries + 1, due_at = $2, last_error = $3 WHERE id = $1",
);

/// Puts an effect off after a failure.
pub async fn again(tx: &Tx, id: i64, delay: Span, error: &str) -> Result<(), StoreError> {
    tx.execute(&OUTBOX_AGAIN, values![id, tx.now().plus(delay), error]).await.map(drop)
}

const OUTBOX_NEXT: Stmt =
    Stmt::same("outbox_next", "SELECT MIN(due_at) FROM outbox WHERE state = 'due'");

/// When the next effect is due.
pub async fn next_due(tx: &Tx) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = tx.query_opt(&OUTBOX_NEXT, vec![]).await? else { return Ok(None) };
    row.columns("outbox").opt_time()
}

pub(super) const STATEMENTS: &[Stmt] =
    &[OUTBOX_INSERT, OUTBOX_DUE, OUTBOX_TAKE, OUTBOX_DONE, OUTBOX_AGAIN, OUTBOX_NEXT];
