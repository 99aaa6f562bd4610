//! The installation's one row: its id, its epoch, and the counter of the fencing tokens.

use crate::{Stmt, StoreError, StoreErrorKind, Tx, values};
use fencepost_core::id::{IdError, Token};
use fencepost_core::time::Timestamp;

/// The row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    pub installation_id: String,
    pub epoch: u32,
    pub counter: i64,
}

/// Which server this is, on PostgreSQL: the checkpoint's timeline would lag after a promotion.
macro_rules! live {
    (timeline) => {
        "substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)"
    };
    (system) => {
        "(SELECT system_identifier FROM pg_control_system())"
    };
}

const INSTALLATION_MAKE: Stmt = Stmt::split(
    "installation_make",
    "INSERT INTO installation (one, installation_id, epoch, counter, created_at)
     VALUES (1, $1, 1, 0, $2) ON CONFLICT (one) DO NOTHING",
    concat!(
        "INSERT INTO installation (one, installation_id, epoch, counter, created_at, timeline, \
         system_id) VALUES (1, $1, 1, 0, $2, ",
        live!(timeline),
        ", ",
        live!(system),
        ") ON CONFLICT (one) DO NOTHING"
    ),
);

/// Makes the row of a fresh store; an existing one stays.
pub async fn make(tx: &Tx, installation_id: &str) -> Result<bool, StoreError> {
    let made = tx.execute(&INSTALLATION_MAKE, values![installation_id, tx.now()]).await?;
    Ok(made == 1)
}

const INSTALLATION_LOAD: Stmt = Stmt::same(
    "installation_load",
    "SELECT installation_id, epoch, counter FROM installation WHERE one = 1",
);

/// The row, if the store was used before.
pub async fn load(tx: &Tx) -> Result<Option<Installation>, StoreError> {
    let Some(row) = tx.query_opt(&INSTALLATION_LOAD, vec![]).await? else { return Ok(None) };
    let mut c = row.columns("installation");
    Ok(Some(Installation { installation_id: c.text()?, epoch: c.number()?, counter: c.int()? }))
}

/// The epoch, and whether everybody has come to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub epoch: u32,
    /// The epoch in which everybody has reconciled.
    pub reconciled: u32,
    /// When the epoch began; zero once a lease has passed since then, and after a plain start.
    pub epoch_at: Timestamp,
    /// The last counter that was drawn.
    pub counter: i64,
    /// This is the server that the epoch was made on.
    pub is_same_server: bool,
}

const INSTALLATION_STANDING: Stmt = Stmt::split(
    "installation_standing",
    "SELECT epoch, reconciled, epoch_at, counter, 1 FROM installation WHERE one = 1",
    concat!(
        "SELECT epoch, reconciled, epoch_at, counter, CASE WHEN timeline = ",
        live!(timeline),
        " AND system_id = ",
        live!(system),
        " THEN CAST(1 AS BIGINT) ELSE 0 END FROM installation WHERE one = 1"
    ),
)
.in_memory(
    "SELECT epoch, reconciled, epoch_at, counter, server = (SELECT now FROM server)
     FROM installation WHERE one = 1",
);

/// How the installation stands; `None` if the store was never used.
pub async fn standing(tx: &Tx) -> Result<Option<Standing>, StoreError> {
    let Some(row) = tx.query_opt(&INSTALLATION_STANDING, vec![]).await? else { return Ok(None) };
    let mut c = row.columns("installation");
    Ok(Some(Standing {
        epoch: c.number()?,
        reconciled: c.number()?,
        epoch_at: c.time()?,
        counter: c.int()?,
        is_same_server: c.flag()?,
    }))
}

const EPOCH_RAISE: Stmt = Stmt::same(
    "epoch_raise",
    "UPDATE installation SET epoch = $1, reconciled = $1, epoch_at = 0
     WHERE one = 1 AND epoch < $1",
);

/// Raises the epoch for a plain start, after which there is nothing to reconcile; it never falls.
pub async fn raise_epoch(tx: &Tx, epoch: u32) -> Result<(), StoreError> {
    tx.execute(&EPOCH_RAISE, values![epoch]).await.map(drop)
}

// Above the timeline too, which rises with each promotion: a new epoch may itself be lost with the
// last commits of the server that made it.
const EPOCH_RENEW: Stmt = Stmt::split(
    "epoch_renew",
    "UPDATE installation SET epoch = $1, epoch_at = $2 WHERE one = 0 RETURNING epoch",
    concat!(
        "UPDATE installation SET epoch = GREATEST(epoch + 1, CAST($1 AS BIGINT) + 1, ('x' || ",
        live!(timeline),
        ")::bit(32)::bigint), epoch_at = $2, timeline = ",
        live!(timeline),
        ", system_id = ",
        live!(system),
        " WHERE one = 1 AND (timeline IS DISTINCT FROM ",
        live!(timeline),
        " OR system_id IS DISTINCT FROM ",
        live!(system),
        ") RETURNING epoch"
    ),
)
.in_memory(
    "UPDATE installation SET epoch = MAX(epoch + 1, $1 + 1, (SELECT now FROM server) + 1),
        epoch_at = $2, server = (SELECT now FROM server)
     WHERE one = 1 AND server <> (SELECT now FROM server) RETURNING epoch",
);

/// Makes a new epoch, above the stored one and `presented`, if the server is another than that of the
/// stored one; the new epoch. On SQLite never: each start has one of its own.
pub async fn renew_epoch(tx: &Tx, presented: u32) -> Result<Option<u32>, StoreError> {
    let Some(row) = tx.query_opt(&EPOCH_RENEW, values![presented, tx.now()]).await? else {
        return Ok(None);
    };
    row.columns("installation").number().map(Some)
}

const EPOCH_FORCE: Stmt = Stmt::split(
    "epoch_force",
    "UPDATE installation SET epoch = MAX(epoch, $1) + 1, epoch_at = $3
     WHERE one = 1 AND epoch = $2 RETURNING epoch",
    "UPDATE installation SET epoch = GREATEST(epoch, CAST($1 AS BIGINT)) + 1, epoch_at = $3
     WHERE one = 1 AND epoch = $2 RETURNING epoch",
);

/// Makes a new epoch above `seen`, the highest that a component has seen or has a token of, if the
/// epoch is still the one that was read; the new epoch.
pub async fn force_epoch(tx: &Tx, seen: u32, read: u32) -> Result<Option<u32>, StoreError> {
    let values = values![seen, read, tx.now()];
    let Some(row) = tx.query_opt(&EPOCH_FORCE, values).await? else { return Ok(None) };
    row.columns("installation").number().map(Some)
}

const EPOCH_RECONCILED: Stmt = Stmt::same(
    "epoch_reconciled",
    "UPDATE installation SET reconciled = $1 WHERE one = 1 AND epoch = $1 AND reconciled < $1",
);

/// Everybody has come to an epoch, or had time to: work goes on in it.
pub async fn reconciled(tx: &Tx, epoch: u32) -> Result<bool, StoreError> {
    Ok(tx.execute(&EPOCH_RECONCILED, values![epoch]).await? == 1)
}

const EPOCH_SETTLED: Stmt = Stmt::same(
    "epoch_settled",
    "UPDATE installation SET epoch_at = 0 WHERE one = 1 AND epoch = $1 AND epoch_at <> 0",
);

/// A lease has passed since an epoch began: nobody runs anything that the store has forgotten.
pub async fn settled(tx: &Tx, epoch: u32) -> Result<bool, StoreError> {
    Ok(tx.execute(&EPOCH_SETTLED, values![epoch]).await? == 1)
}

const TOKENS_MINT: Stmt = Stmt::split(
    "tokens_mint",
    "UPDATE installation SET counter = counter + $1 WHERE one = 1 RETURNING epoch, counter",
    concat!(
        "UPDATE installation SET counter = counter + $1 WHERE one = 1 AND timeline = ",
        live!(timeline),
        " AND system_id = ",
        live!(system),
        " RETURNING epoch, counter"
    ),
)
.in_memory(
    "UPDATE installation SET counter = counter + $1
     WHERE one = 1 AND server = (SELECT now FROM server) RETURNING epoch, counter",
);

/// Draws `count` tokens, ascending. The rows that they are for must be locked already.
pub async fn mint(tx: &Tx, count: usize) -> Result<Vec<Token>, StoreError> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let row = tx.query_opt(&TOKENS_MINT, values![count]).await?;
    let Some(row) = row else {
        if load(tx).await?.is_some() {
            let message = "the server is not the one that its epoch was made on";
            return Err(StoreError::new(StoreErrorKind::EpochOver, "mint", message));
        }
        let message = "it has no installation row: nothing was registered in it yet";
        return Err(StoreError::new(StoreErrorKind::Corrupt, "mint", message));
    };
    let mut c = row.columns("installation");
    let (epoch, last): (u32, i64) = (c.number()?, c.int()?);
    let token = |n: i64| Token::new(epoch, u64::try_from(n).unwrap_or(0));
    let minted: Result<Vec<Token>, IdError> = (last - count + 1..=last).map(token).collect();
    minted.map_err(|error| c.wrong(&error.to_string()))
}

pub(super) const STATEMENTS: &[Stmt] = &[
    INSTALLATION_MAKE,
    INSTALLATION_LOAD,
    INSTALLATION_STANDING,
    EPOCH_RAISE,
    EPOCH_RENEW,
    EPOCH_FORCE,
    EPOCH_RECONCILED,
    EPOCH_SETTLED,
    TOKENS_MINT,
];
