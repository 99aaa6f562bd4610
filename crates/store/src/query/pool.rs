//! Pools, and the holds on them: a row per active attempt.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;
use std::collections::BTreeMap;

/// A pool with what is held of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    pub slots: i64,
    pub description: String,
    pub held: i64,
    pub shrunk: bool,
}

const POOL_LIST: Stmt = Stmt::same(
    "pool_list",
    "SELECT p.name, p.slots, p.description, CAST(COALESCE(SUM(h.slots), 0) AS BIGINT), p.shrunk
     FROM pool p LEFT JOIN hold h ON h.pool = p.name
     GROUP BY p.name, p.slots, p.description, p.shrunk ORDER BY p.name LIMIT 10000",
);

/// Every pool.
pub async fn list(tx: &Tx) -> Result<Vec<Pool>, StoreError> {
    let rows = tx.query(&POOL_LIST, vec![]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("pool");
            Ok(Pool {
                name: c.text()?,
                slots: c.int()?,
                description: c.text()?,
                held: c.int()?,
                shrunk: c.flag()?,
            })
        })
        .collect()
}

const POOL_SLOTS: Stmt = Stmt::same("pool_slots", "SELECT slots FROM pool WHERE name = $1");

/// The size of a pool.
pub async fn slots(tx: &Tx, name: &str) -> Result<Option<i64>, StoreError> {
    let row = tx.query_opt(&POOL_SLOTS, values![name]).await?;
    row.map(|row| row.columns("pool").int()).transpose()
}

const POOL_LOCK: Stmt =
    Stmt::same("pool_lock", "SELECT name FROM pool WHERE name = $1").locking(" FOR UPDATE");
const POOL_TAKE: Stmt = Stmt::same("pool_take", "SELECT name FROM pool WHERE name = $1")
    .locking(" FOR UPDATE SKIP LOCKED");

/// Locks those of some pools that nobody else has in hand; their names. Who gives slots away holds the
/// lock of their pool from before it counts what is held until its commit.
pub async fn take(tx: &Tx, names: &[&str]) -> Result<Vec<String>, StoreError> {
    let sets = names.iter().map(|name| values![*name]).collect();
    let rows = tx.query_many(&POOL_TAKE, sets).await?;
    rows.into_iter().map(|row| row.columns("pool").text()).collect()
}

/// Waits for the lock of a pool: what is counted afterwards stays so.
async fn lock(tx: &Tx, name: &str) -> Result<(), StoreError> {
    tx.query(&POOL_LOCK, values![name]).await.map(drop)
}

const POOL_SET: Stmt = Stmt::same(
    "pool_set",
    "INSERT INTO pool (name, slots, description, shrunk) VALUES ($1, $2, $3, 0)
     ON CONFLICT (name) DO UPDATE SET slots = $2, description = $3,
        shrunk = CASE WHEN $2 < (SELECT COALESCE(SUM(slots), 0) FROM hold WHERE pool = $1)
                      THEN 1 ELSE 0 END",
);

/// Makes a pool or changes its size.
pub async fn set(tx: &Tx, name: &str, slots: i64, description: &str) -> Result<(), StoreError> {
    lock(tx, name).await?;
    tx.execute(&POOL_SET, values![name, slots, description]).await.map(drop)
}

const POOL_MAKE: Stmt = Stmt::same(
    "pool_make",
    "INSERT INTO pool (name, slots, description, shrunk) VALUES ($1, $2, $3, 0)
     ON CONFLICT (name) DO NOTHING",
);

/// Makes a pool if there is none of that name.
pub async fn make(tx: &Tx, name: &str, slots: i64, description: &str) -> Result<(), StoreError> {
    tx.execute(&POOL_MAKE, values![name, slots, description]).await.map(drop)
}

const POOL_SHRUNK: Stmt =
    Stmt::same("pool_shrunk", "SELECT name FROM pool WHERE shrunk = 1 ORDER BY name LIMIT 1000")
        .locking(" FOR UPDATE");
const POOL_SETTLED: Stmt = Stmt::same(
    "pool_settled",
    "UPDATE pool SET shrunk = 0 WHERE shrunk = 1
        AND slots >= (SELECT COALESCE(SUM(h.slots), 0) FROM hold h WHERE h.pool = pool.name)",
);

/// Forgets that a pool was made smaller, once no more than its size is held.
pub async fn settle(tx: &Tx) -> Result<(), StoreError> {
    // Counted under the locks: a statement that waited for one would count what was before.
    if tx.query(&POOL_SHRUNK, vec![]).await?.is_empty() {
        return Ok(());
    }
    tx.execute(&POOL_SETTLED, vec![]).await.map(drop)
}

const POOL_DELETE: Stmt = Stmt::same(
    "pool_delete",
    "DELETE FROM pool WHERE name = $1
        AND NOT EXISTS (SELECT 1 FROM hold WHERE pool = $1)",
);

/// Removes a pool that nothing holds.
pub async fn delete(tx: &Tx, name: &str) -> Result<bool, StoreError> {
    lock(tx, name).await?;
    Ok(tx.execute(&POOL_DELETE, values![name]).await? == 1)
}

/// What an active attempt holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub token: Token,
    pub pool: String,
    pub slots: i64,
    pub dag_id: String,
    pub run_pk: i64,
    pub task_index: u32,
}

const HOLD_INSERT: Stmt = Stmt::same(
    "hold_insert",
    "INSERT INTO hold (token, pool, slots, dag_id, run_pk, task_index)
     VALUES ($1, $2, $3, $4, $5, $6)",
)
.batched(
    0,
    "INSERT INTO hold (token, pool, slots, dag_id, run_pk, task_index) SELECT * FROM \
        unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::bigint[], \
        $6::bigint[])",
);

/// Writes holds.
pub async fn hold(tx: &Tx, holds: &[Hold]) -> Result<(), StoreError> {
    let sets = holds
        .iter()
        .map(|h| values![h.token, &h.pool, h.slots, &h.dag_id, h.run_pk, h.task_index])
        .collect();
    tx.execute_many(&HOLD_INSERT, sets).await.map(drop)
}

const HOLD_FREE: Stmt = Stmt::same("hold_free", "DELETE FROM hold WHERE token = $1").batched(
    1,
    "DELETE FROM hold h USING unnest($1::bigint[]) WITH ORDINALITY AS u(token, ord) \
        WHERE h.token = u.token RETURNING u.ord",
);

/// Frees holds.
pub async fn free(tx: &Tx, tokens: &[Token]) -> Result<(), StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    tx.execute_many(&HOLD_FREE, sets).await.map(drop)
}

const HOLD_KEEP: Stmt =
    Stmt::same("hold_keep", "UPDATE hold SET dag_id = '', task_index = -1 WHERE token = $1");

/// Keeps the slots of attempts that may still run though their instances wait: they count in no limit of
/// tasks any more.
pub async fn keep(tx: &Tx, tokens: &[Token]) -> Result<(), StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    tx.execute_many(&HOLD_KEEP, sets).await.map(drop)
}

const HOLD_OF_DAGS: Stmt =
    Stmt::same("hold_of_dags", "SELECT dag_id, COUNT(*) FROM hold GROUP BY dag_id LIMIT 100000");

/// How many attempts are active, by DAG.
pub async fn active_of_dags(tx: &Tx) -> Result<BTreeMap<String, i64>, StoreError> {
    let rows = tx.query(&HOLD_OF_DAGS, vec![]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("hold");
            Ok((c.text()?, c.int()?))
        })
        .collect()
}

/// How many attempts of a task are active: in the run, or over all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Active {
    pub dag_id: String,
    pub run_pk: i64,
    pub task_index: u32,
    pub count: i64,
}

const HOLD_ACTIVE: Stmt = Stmt::same(
    "hold_active",
    "SELECT dag_id, run_pk, task_index, COUNT(*) FROM hold
     GROUP BY dag_id, run_pk, task_index LIMIT 1000000",
);

/// What is active, by task of a run.
pub async fn active(tx: &Tx) -> Result<Vec<Active>, StoreError> {
    let rows = tx.query(&HOLD_ACTIVE, vec![]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("hold");
            Ok(Active {
                dag_id: c.text()?,
                run_pk: c.int()?,
                task_index: c.number()?,
                count: c.int()?,
            })
        })
        .collect()
}

pub(super) const STATEMENTS: &[Stmt] = &[
    POOL_LIST,
    POOL_SLOTS,
    POOL_LOCK,
    POOL_TAKE,
    POOL_SHRUNK,
    POOL_SET,
    POOL_MAKE,
    POOL_SETTLED,
    POOL_DELETE,
    HOLD_INSERT,
    HOLD_FREE,
    HOLD_KEEP,
    HOLD_OF_DAGS,
    HOLD_ACTIVE,
];
