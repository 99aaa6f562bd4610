//! Variables, connections and secrets. What they say is sealed before it comes here.

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::kept::{Kind, Name};
use fencepost_core::time::Timestamp;

/// A row of the vault.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// `variable`, `connection` or `secret`.
    pub kind: String,
    pub name: String,
    pub description: String,
    /// Ciphertext.
    pub sealed: String,
    pub updated_at: Timestamp,
    pub updated_by: String,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

/// What an entry says, sealed.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    pub kind: Kind,
    pub name: String,
    pub text: String,
}

impl std::fmt::Debug for Sealed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

macro_rules! columns {
    () => {
        "kind, name, description, sealed, updated_at, updated_by"
    };
}

fn decode(row: Row) -> Result<Entry, StoreError> {
    let mut c: Columns = row.columns("vault");
    Ok(Entry {
        kind: c.text()?,
        name: c.text()?,
        description: c.text()?,
        sealed: c.text()?,
        updated_at: c.time()?,
        updated_by: c.text()?,
    })
}

const VAULT_SET: Stmt = Stmt::same(
    "vault_set",
    "INSERT INTO vault (kind, name, description, sealed, updated_at, updated_by)
     VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (kind, name) DO UPDATE SET description = excluded.description,
         sealed = excluded.sealed, updated_at = excluded.updated_at, updated_by = excluded.updated_by",
);

/// Makes an entry or replaces it.
pub async fn set(tx: &Tx, entry: &Entry) -> Result<(), StoreError> {
    let values = values![
        &entry.kind,
        &entry.name,
        &entry.description,
        &entry.sealed,
        tx.now(),
        &entry.updated_by,
    ];
    tx.execute(&VAULT_SET, values).await.map(drop)
}

const VAULT_GET: Stmt = Stmt::same(
    "vault_get",
    concat!("SELECT ", columns!(), " FROM vault WHERE kind = $1 AND name = $2"),
);

/// The entry of that name.
pub async fn get(tx: &Tx, kind: &str, name: &str) -> Result<Option<Entry>, StoreError> {
    tx.query_opt(&VAULT_GET, values![kind, name]).await?.map(decode).transpose()
}

const VAULT_SEALED: Stmt = Stmt::same(
    "vault_sealed",
    "SELECT kind, name, sealed FROM vault WHERE kind = $1 AND name = $2",
)
.batched(
    0,
    "SELECT u.ord, v.kind, v.name, v.sealed FROM unnest($1::text[], $2::text[]) \
        WITH ORDINALITY AS u(kind, name, ord) \
        JOIN vault v ON v.kind = u.kind AND v.name = u.name ORDER BY u.ord",
);

/// What the entries of these names say; one that is not there is left out.
pub async fn sealed(tx: &Tx, names: &[&Name]) -> Result<Vec<Sealed>, StoreError> {
    let sets = names.iter().map(|(kind, name)| values![kind.as_str(), name]).collect();
    let rows = tx.query_many(&VAULT_SEALED, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c: Columns = row.columns("vault");
            Ok(Sealed { kind: c.named(Kind::parse)?, name: c.text()?, text: c.text()? })
        })
        .collect()
}

const VAULT_PAGE: Stmt = Stmt::same(
    "vault_page",
    concat!(
        "SELECT ",
        columns!(),
        " FROM vault WHERE kind = $1 AND name > $2 ORDER BY name LIMIT $3"
    ),
);

/// Entries of a kind after a name.
pub async fn page(tx: &Tx, kind: &str, after: &str, limit: u32) -> Result<Vec<Entry>, StoreError> {
    let rows = tx.query(&VAULT_PAGE, values![kind, after, limit]).await?;
    rows.into_iter().map(decode).collect()
}

const VAULT_DELETE: Stmt =
    Stmt::same("vault_delete", "DELETE FROM vault WHERE kind = $1 AND name = $2");

/// Removes an entry; whether there was one.
pub async fn delete(tx: &Tx, kind: &str, name: &str) -> Result<bool, StoreError> {
    Ok(tx.execute(&VAULT_DELETE, values![kind, name]).await? == 1)
}

const VAULT_RESEAL: Stmt = Stmt::same(
    "vault_reseal",
    "UPDATE vault SET sealed = $4 WHERE kind = $1 AND name = $2 AND sealed = $3",
);

/// Replaces a ciphertext by another of the same text, unless it was set meanwhile.
pub async fn reseal(tx: &Tx, entry: &Entry, sealed: &str) -> Result<bool, StoreError> {
    let values = values![&entry.kind, &entry.name, &entry.sealed, sealed];
    Ok(tx.execute(&VAULT_RESEAL, values).await? == 1)
}

pub(super) const STATEMENTS: &[Stmt] =
    &[VAULT_SET, VAULT_GET, VAULT_SEALED, VAULT_PAGE, VAULT_DELETE, VAULT_RESEAL];
