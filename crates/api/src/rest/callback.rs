//! Callbacks: what is told to the outside.

use super::{Time, TokenText, Word};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One callback.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Callback {
    /// The receiver knows it by this: `Idempotency-Key`, or the mail's `Message-ID`.
    pub id: String,
    pub dag_id: String,
    pub run_id: String,
    /// Null: it is about the run.
    pub task_id: Option<String>,
    pub map_index: i32,
    pub token: Option<TokenText>,
    /// `success`, `failure`, `retry`, `lost`, `skipped`, `deadline`.
    pub occasion: Word,
    /// `webhook`, `slack`, `email`, `trigger_dag`.
    pub kind: Word,
    /// The host or connection that it goes to.
    pub target: String,
    /// `due`, `delivered`, `dead`.
    pub state: Word,
    pub tries: u32,
    pub created_at: Time,
    /// When it is tried next.
    pub due_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub last_error: Option<String>,
    /// What happened.
    pub told: Value,
}

/// `GET /callbacks`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallbackQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    pub state: Option<Word>,
    pub dag_id: Option<String>,
}
