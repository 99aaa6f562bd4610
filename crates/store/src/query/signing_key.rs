//! The key that credentials of jobs and attempts are signed with: one an installation.

use crate::{Stmt, StoreError, Tx, values};

const SIGNING_KEY_MAKE: Stmt = Stmt::same(
    "signing_key_make",
    "INSERT INTO signing_key (one, key, created_at) VALUES (1, $1, $2) ON CONFLICT (one) DO NOTHING",
);

/// Keeps a key if there is none; the first one stays, whoever else offers another.
pub async fn make(tx: &Tx, key: &str) -> Result<(), StoreError> {
    tx.execute(&SIGNING_KEY_MAKE, values![key, tx.now()]).await.map(drop)
}

const SIGNING_KEY_LOAD: Stmt =
    Stmt::same("signing_key_load", "SELECT key FROM signing_key WHERE one = 1");

/// The key, if there is one yet.
pub async fn load(tx: &Tx) -> Result<Option<String>, StoreError> {
    let row = tx.query_opt(&SIGNING_KEY_LOAD, vec![]).await?;
    row.map(|row| row.columns("signing_key").text()).transpose()
}

pub(super) const STATEMENTS: &[Stmt] = &[SIGNING_KEY_MAKE, SIGNING_KEY_LOAD];
