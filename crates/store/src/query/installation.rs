//! The installation's one row: its id, its epoch, and the counter of the fencing tokens.

use crate::{Stmt, StoreError, StoreErrorKind, Tx, values};
use fencepost_core::id::{IdError, Token};

/// The row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    pub installation_id: String,
    pub epoch: u32,
    pub counter: i64,
}

const INSTALLATION_MAKE: Stmt = Stmt::same(
    "installation_make",
    "INSERT INTO installation (one, installation_id, epoch, counter, created_at)
     VALUES (1, $1, 1, 0, $2) ON CONFLICT (one) DO NOTHING",
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

const EPOCH_RAISE: Stmt =
    Stmt::same("epoch_raise", "UPDATE installation SET epoch = $1 WHERE one = 1 AND epoch < $1");

/// Raises the epoch; it never falls.
pub async fn raise_epoch(tx: &Tx, epoch: u32) -> Result<(), StoreError> {
    tx.execute(&EPOCH_RAISE, values![epoch]).await.map(drop)
}

const TOKENS_MINT: Stmt = Stmt::same(
    "tokens_mint",
    "UPDATE installation SET counter = counter + $1 WHERE one = 1 RETURNING epoch, counter",
);

/// Draws `count` tokens, ascending. The rows that they are for must be locked already.
pub async fn mint(tx: &Tx, count: usize) -> Result<Vec<Token>, StoreError> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let row = tx.query_opt(&TOKENS_MINT, values![count]).await?;
    let Some(row) = row else {
        let message = "it has no installation row: nothing was registered in it yet";
        return Err(StoreError::new(StoreErrorKind::Corrupt, "mint", message));
    };
    let mut c = row.columns("installation");
    let (epoch, last): (u32, i64) = (c.number()?, c.int()?);
    let token = |n: i64| Token::new(epoch, u64::try_from(n).unwrap_or(0));
    let minted: Result<Vec<Token>, IdError> = (last - count + 1..=last).map(token).collect();
    minted.map_err(|error| c.wrong(&error.to_string()))
}

pub(super) const STATEMENTS: &[Stmt] =
    &[INSTALLATION_MAKE, INSTALLATION_LOAD, EPOCH_RAISE, TOKENS_MINT];
