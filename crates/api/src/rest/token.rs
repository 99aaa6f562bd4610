//! API tokens of people and workers (not fencing tokens).

use super::{Time, Word};
use serde::{Deserialize, Serialize};

/// `POST /tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCreate {
    /// `worker`, `viewer`, `operator`, `author` or `admin`.
    pub role: Word,
    #[serde(default)]
    pub name: Option<String>,
    /// Null: it does not expire.
    #[serde(default)]
    pub expires_in_secs: Option<u64>,
}

/// The answer: the only time that the token itself is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCreated {
    pub id: String,
    pub token: String,
    pub role: Word,
    pub name: Option<String>,
    pub expires_at: Option<Time>,
}

/// A token in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    pub id: String,
    pub name: Option<String>,
    pub role: Word,
    pub created_at: Time,
    pub expires_at: Option<Time>,
    /// Since the server started; null: not since then.
    pub last_used_at: Option<Time>,
    pub revoked_at: Option<Time>,
}
