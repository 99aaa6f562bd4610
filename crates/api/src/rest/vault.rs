//! Variables, connections and secrets.

use super::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One of them. What it says is masked unless it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub name: String,
    pub description: String,
    /// A text; of a connection its fields. Masked: `***`, and of a connection what is no secret. Null: it
    /// cannot be opened, and `trouble` says why; or a secret in a list.
    pub value: Value,
    pub masked: bool,
    pub trouble: Option<String>,
    pub updated_at: Time,
    pub updated_by: String,
}

/// `PUT`: makes or replaces one.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptPut {
    /// A text; of a connection its URI or its fields.
    pub value: Value,
    /// Null: it stays.
    #[serde(default)]
    pub description: Option<String>,
}

impl std::fmt::Debug for KeptPut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeptPut(***)")
    }
}

/// The query of a list or of one: `reveal` needs the permission `secret:reveal`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptQuery {
    pub limit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    pub reveal: bool,
}

/// What a test of a connection found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionTest {
    pub name: String,
    pub ok: bool,
    pub message: String,
}

/// What sealing anew did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotated {
    pub resealed: u32,
    /// Names of those that no key here opens.
    pub unreadable: Vec<String>,
}
