//! API tokens of people and programs. The token itself is never stored, only its SHA-256.

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::time::Timestamp;

/// A token's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiToken {
    pub id: String,
    /// May be empty.
    pub name: String,
    pub role: String,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
    pub created_by: String,
    /// To some minutes.
    pub used_at: Option<Timestamp>,
}

impl ApiToken {
    /// Whether it lets anybody in at that instant.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|at| at > now)
    }
}

macro_rules! columns {
    () => {
        "id, name, role, created_at, expires_at, revoked_at, created_by, used_at"
    };
}

fn decode(row: Row) -> Result<ApiToken, StoreError> {
    let mut c: Columns = row.columns("api_token");
    Ok(ApiToken {
        id: c.text()?,
        name: c.text()?,
        role: c.text()?,
        created_at: c.time()?,
        expires_at: c.opt_time()?,
        revoked_at: c.opt_time()?,
        created_by: c.text()?,
        used_at: c.opt_time()?,
    })
}

const API_TOKEN_INSERT: Stmt = Stmt::same(
    "api_token_insert",
    "INSERT INTO api_token (id, name, role, created_at, expires_at, revoked_at, created_by, hash)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);

/// Writes a new token; `hash` is the hexadecimal SHA-256 of its text.
pub async fn insert(tx: &Tx, token: &ApiToken, hash: &str) -> Result<(), StoreError> {
    let values = values![
        &token.id,
        &token.name,
        &token.role,
        token.created_at,
        token.expires_at,
        token.revoked_at,
        &token.created_by,
        hash,
    ];
    tx.execute(&API_TOKEN_INSERT, values).await.map(drop)
}

const API_TOKEN_BY_HASH: Stmt = Stmt::same(
    "api_token_by_hash",
    concat!("SELECT ", columns!(), " FROM api_token WHERE hash = $1"),
);

/// The token whose text has that hash, valid or not.
pub async fn by_hash(tx: &Tx, hash: &str) -> Result<Option<ApiToken>, StoreError> {
    tx.query_opt(&API_TOKEN_BY_HASH, values![hash]).await?.map(decode).transpose()
}

const API_TOKEN_GET: Stmt =
    Stmt::same("api_token_get", concat!("SELECT ", columns!(), " FROM api_token WHERE id = $1"));

/// The token of that id.
pub async fn get(tx: &Tx, id: &str) -> Result<Option<ApiToken>, StoreError> {
    tx.query_opt(&API_TOKEN_GET, values![id]).await?.map(decode).transpose()
}

const API_TOKEN_PAGE: Stmt = Stmt::same(
    "api_token_page",
    concat!("SELECT ", columns!(), " FROM api_token WHERE id > $1 ORDER BY id LIMIT $2"),
);

/// Tokens in the order in which they were made (ids rise), after an id.
pub async fn page(tx: &Tx, after: &str, limit: u32) -> Result<Vec<ApiToken>, StoreError> {
    tx.query(&API_TOKEN_PAGE, values![after, limit]).await?.into_iter().map(decode).collect()
}

const API_TOKEN_REVOKE: Stmt = Stmt::same(
    "api_token_revoke",
    "UPDATE api_token SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL
       AND (role <> 'admin' OR EXISTS (
            SELECT 1 FROM api_token o WHERE o.id <> $1 AND o.role = 'admin'
               AND o.revoked_at IS NULL AND (o.expires_at IS NULL OR o.expires_at > $2)))",
);

const API_TOKEN_ADMINS: Stmt = Stmt::same(
    "api_token_admins",
    "SELECT id FROM api_token WHERE role = 'admin' AND revoked_at IS NULL ORDER BY id LIMIT 1000",
)
.locking(" FOR UPDATE");

/// Revokes a token, unless it is the last valid one of an admin.
pub async fn revoke(tx: &Tx, id: &str) -> Result<bool, StoreError> {
    // Two at once must not take each other for the one that stays.
    tx.query(&API_TOKEN_ADMINS, vec![]).await?;
    Ok(tx.execute(&API_TOKEN_REVOKE, values![id, tx.now()]).await? == 1)
}

const API_TOKEN_REVOKE_MADE_BY: Stmt = Stmt::same(
    "api_token_revoke_made_by",
    "UPDATE api_token SET revoked_at = $2 WHERE created_by = $1 AND revoked_at IS NULL",
);

/// Revokes every token that was made by that hand.
pub async fn revoke_made_by(tx: &Tx, created_by: &str) -> Result<u64, StoreError> {
    tx.execute(&API_TOKEN_REVOKE_MADE_BY, values![created_by, tx.now()]).await
}

const API_TOKEN_USED: Stmt = Stmt::same(
    "api_token_used",
    "UPDATE api_token SET used_at = $2 WHERE id = $1 AND (used_at IS NULL OR used_at < $2)",
);

/// It was used now.
pub async fn used(tx: &Tx, id: &str) -> Result<(), StoreError> {
    tx.execute(&API_TOKEN_USED, values![id, tx.now()]).await.map(drop)
}

pub(super) const STATEMENTS: &[Stmt] = &[
    API_TOKEN_USED,
    API_TOKEN_INSERT,
    API_TOKEN_BY_HASH,
    API_TOKEN_GET,
    API_TOKEN_PAGE,
    API_TOKEN_REVOKE,
    API_TOKEN_ADMINS,
    API_TOKEN_REVOKE_MADE_BY,
];
