//! Pools by name, with what is held of them and what waits for them.

use crate::{Row, Stmt, StoreError, Tx, values};
use std::collections::BTreeMap;

/// A pool in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolUse {
    pub name: String,
    pub slots: i64,
    pub description: String,
    pub held: i64,
    /// Instances that could be queued but for limits.
    pub waiting: i64,
}

const POOL_PAGE: Stmt = Stmt::same(
    "pool_page",
    "SELECT p.name, p.slots, p.description,
            CAST(COALESCE((SELECT SUM(h.slots) FROM hold h WHERE h.pool = p.name), 0) AS BIGINT)
     FROM pool p WHERE p.name > $1 ORDER BY p.name LIMIT $2",
);
const POOL_GET: Stmt = Stmt::same(
    "pool_get",
    "SELECT p.name, p.slots, p.description,
            CAST(COALESCE((SELECT SUM(h.slots) FROM hold h WHERE h.pool = p.name), 0) AS BIGINT)
     FROM pool p WHERE p.name = $1",
);
const POOL_WAITING: Stmt = Stmt::same(
    "pool_waiting",
    "SELECT pool, COUNT(*) FROM task_instance WHERE state = 'scheduled'
     GROUP BY pool LIMIT 10000",
);

/// Pools after a name.
pub async fn page(tx: &Tx, after: &str, limit: u32) -> Result<Vec<PoolUse>, StoreError> {
    let rows = tx.query(&POOL_PAGE, values![after, limit]).await?;
    with_waiting(tx, rows).await
}

/// The pool of that name.
pub async fn get(tx: &Tx, name: &str) -> Result<Option<PoolUse>, StoreError> {
    let rows = tx.query(&POOL_GET, values![name]).await?;
    Ok(with_waiting(tx, rows).await?.pop())
}

/// What waits is counted once for all pools.
async fn with_waiting(tx: &Tx, rows: Vec<Row>) -> Result<Vec<PoolUse>, StoreError> {
    let mut waiting: BTreeMap<String, i64> = BTreeMap::new();
    for row in tx.query(&POOL_WAITING, vec![]).await? {
        let mut c = row.columns("task_instance");
        waiting.insert(c.text()?, c.int()?);
    }
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("pool");
            let (name, slots, description) = (c.text()?, c.int()?, c.text()?);
            let waiting = waiting.get(&name).copied().unwrap_or(0);
            Ok(PoolUse { name, slots, description, held: c.int()?, waiting })
        })
        .collect()
}

pub(in crate::query) const STATEMENTS: &[Stmt] = &[POOL_PAGE, POOL_GET, POOL_WAITING];
