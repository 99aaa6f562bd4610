//! Pools by name, with what is held of them and what waits for them.

use crate::{Stmt, StoreError, Tx, values};

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
            CAST(COALESCE((SELECT SUM(h.slots) FROM hold h WHERE h.pool = p.name), 0) AS BIGINT),
            (SELECT COUNT(*) FROM task_instance t WHERE t.state = 'scheduled' AND t.pool = p.name)
     FROM pool p WHERE p.name > $1 ORDER BY p.name LIMIT $2",
);

/// Pools after a name.
pub async fn page(tx: &Tx, after: &str, limit: u32) -> Result<Vec<PoolUse>, StoreError> {
    let rows = tx.query(&POOL_PAGE, values![after, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("pool");
            Ok(PoolUse {
                name: c.text()?,
                slots: c.int()?,
                description: c.text()?,
                held: c.int()?,
                waiting: c.int()?,
            })
        })
        .collect()
}

const POOL_GET: Stmt = Stmt::same(
    "pool_get",
    "SELECT p.name, p.slots, p.description,
            CAST(COALESCE((SELECT SUM(h.slots) FROM hold h WHERE h.pool = p.name), 0) AS BIGINT),
            (SELECT COUNT(*) FROM task_instance t WHERE t.state = 'scheduled' AND t.pool = p.name)
     FROM pool p WHERE p.name = $1",
);

/// The pool of that name.
pub async fn get(tx: &Tx, name: &str) -> Result<Option<PoolUse>, StoreError> {
    let Some(row) = tx.query_opt(&POOL_GET, values![name]).await? else { return Ok(None) };
    let mut c = row.columns("pool");
    Ok(Some(PoolUse {
        name: c.text()?,
        slots: c.int()?,
        description: c.text()?,
        held: c.int()?,
        waiting: c.int()?,
    }))
}
