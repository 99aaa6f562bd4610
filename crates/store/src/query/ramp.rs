//! The ramps of pools (`core::ramp`): a row per pool to which recovered work comes back.
//!
//! Who lets recovered attempts go has the lock of their ramp's row, from before it reads it until its
//! commit. It comes after the locks of attempts: who has it takes only those that nobody else has.

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::ramp::Ramp;
use fencepost_core::time::Timestamp;

const RAMP_NEXT: Stmt = Stmt::same(
    "ramp_next",
    "SELECT a.ramp, r.free_at FROM attempt a LEFT JOIN ramp r ON r.pool = a.ramp
     WHERE a.state = 'queued' AND a.ramp > $1 ORDER BY a.ramp LIMIT 1",
);

/// The next pool, in order, in which recovered attempts wait, and when its ramp lets one go; `None`:
/// nobody has drawn from it yet.
pub async fn next(tx: &Tx, after: &str) -> Result<Option<(String, Option<Timestamp>)>, StoreError> {
    let Some(row) = tx.query_opt(&RAMP_NEXT, values![after]).await? else { return Ok(None) };
    let mut c = row.columns("ramp");
    Ok(Some((c.text()?, c.opt_time()?)))
}

const RAMP_WAITING: Stmt = Stmt::same(
    "ramp_waiting",
    "SELECT COUNT(*) FROM (SELECT 1 FROM attempt WHERE state = 'queued' AND ramp = $1
        AND queue = $2 LIMIT $3) waiting",
);

/// How many attempts of a queue wait for a pool's ramp, counted up to `most`.
pub async fn waiting(tx: &Tx, (pool, queue): (&str, &str), most: u32) -> Result<u32, StoreError> {
    let row = tx.query_opt(&RAMP_WAITING, values![pool, queue, most]).await?;
    row.map_or(Ok(0), |row| row.columns("ramp").number())
}

const RAMP_LIST: Stmt =
    Stmt::same("ramp_list", "SELECT pool, rate, free_at, good FROM ramp ORDER BY pool LIMIT 10000");
const RAMP_GET: Stmt =
    Stmt::same("ramp_get", "SELECT pool, rate, free_at, good FROM ramp WHERE pool = $1")
        .locking(" FOR UPDATE");

fn decode(row: Row) -> Result<(String, Ramp), StoreError> {
    let mut c = row.columns("ramp");
    let pool = c.text()?;
    Ok((pool, Ramp { rate: c.number()?, free_at: c.time()?, good: c.number()? }))
}

/// The ramp of a pool; locked in a transaction that may write.
pub async fn get(tx: &Tx, pool: &str) -> Result<Option<Ramp>, StoreError> {
    let row = tx.query_opt(&RAMP_GET, values![pool]).await?;
    row.map(|row| Ok(decode(row)?.1)).transpose()
}

/// Every ramp, by pool.
pub async fn list(tx: &Tx) -> Result<Vec<(String, Ramp)>, StoreError> {
    tx.query(&RAMP_LIST, vec![]).await?.into_iter().map(decode).collect()
}

const RAMP_MAKE: Stmt = Stmt::same(
    "ramp_make",
    "INSERT INTO ramp (pool, rate, free_at, good) VALUES ($1, $2, $3, $4)
     ON CONFLICT (pool) DO NOTHING",
);

/// Makes a pool's ramp if it has none; whether it did. Nobody else makes one before the commit.
pub async fn make(tx: &Tx, pool: &str, ramp: Ramp) -> Result<bool, StoreError> {
    let values = values![pool, ramp.rate, ramp.free_at, ramp.good];
    Ok(tx.execute(&RAMP_MAKE, values).await? == 1)
}

const RAMP_SET: Stmt =
    Stmt::same("ramp_set", "UPDATE ramp SET rate = $2, free_at = $3, good = $4 WHERE pool = $1");

/// Writes a ramp that is locked.
pub async fn set(tx: &Tx, pool: &str, ramp: Ramp) -> Result<(), StoreError> {
    let values = values![pool, ramp.rate, ramp.free_at, ramp.good];
    tx.execute(&RAMP_SET, values).await.map(drop)
}

const RAMP_OVER: Stmt = Stmt::same(
    "ramp_over",
    "DELETE FROM ramp WHERE free_at <= $1 AND NOT EXISTS (
        SELECT 1 FROM attempt a WHERE a.state = 'queued' AND a.ramp = ramp.pool)
     RETURNING pool",
);

/// Forgets ramps for which nothing has waited since an instant; their pools.
pub async fn end(tx: &Tx, idle_since: Timestamp) -> Result<Vec<String>, StoreError> {
    let rows = tx.query(&RAMP_OVER, values![idle_since]).await?;
    rows.into_iter().map(|row| row.columns("ramp").text()).collect()
}

pub(super) const STATEMENTS: &[Stmt] =
    &[RAMP_NEXT, RAMP_WAITING, RAMP_LIST, RAMP_GET, RAMP_MAKE, RAMP_SET, RAMP_OVER];
