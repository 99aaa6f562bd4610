//! Backfills.

use super::{Time, Word};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `POST /backfills` and `POST /backfills:preview`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackfillCreate {
    pub dag_id: String,
    /// First logical date: an instant, or a date or local time in the DAG's zone.
    pub from_date: String,
    /// Last logical date, inclusive; a date is its whole day.
    pub to_date: String,
    /// What becomes of slots that have a run: `none` (it stays; the default), `failed` (it runs again
    /// if it failed or was cancelled), `completed` (it runs again if it is over).
    pub reprocess_behavior: Option<Word>,
    /// Default 10; the DAG's own `max_active_runs` does not count here.
    pub max_active_runs: Option<u32>,
    /// The newest slot first.
    pub run_backwards: bool,
    pub params: Map<String, Value>,
    pub conf: Value,
}

/// One backfill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backfill {
    pub id: u64,
    pub dag_id: String,
    /// `running`, `cancelling`, `completed` or `cancelled`.
    pub state: Word,
    pub paused: bool,
    pub from_date: Time,
    pub to_date: Time,
    pub reprocess_behavior: Word,
    pub max_active_runs: u32,
    pub run_backwards: bool,
    pub params: Value,
    pub progress: BackfillProgress,
    pub created_at: Time,
    pub created_by: String,
    pub ended_at: Option<Time>,
}

/// How far a backfill is, in slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillProgress {
    pub slots: u64,
    /// Slots that got a new run.
    pub created: u64,
    /// Slots whose run was cleared.
    pub rerun: u64,
    /// Slots whose run was left as it was, because it is over or because it was under way.
    pub kept: u64,
    /// Of the new and the cleared runs, by their states now.
    pub queued: u64,
    pub running: u64,
    pub success: u64,
    pub failed: u64,
    pub cancelled: u64,
}

/// What a backfill would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillPreview {
    pub slots: u64,
    pub existing: Vec<BackfillExisting>,
    /// Slots without a run.
    pub missing: u64,
    /// How many runs it would start.
    pub runs: u64,
    /// The same in a sentence.
    pub text: String,
}

/// Slots that have a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackfillExisting {
    pub state: Word,
    /// `kept`, `rerun` or `in_flight`.
    pub action: Word,
    pub count: u64,
}

/// `GET /backfills`, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BackfillQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    /// Only those of this DAG.
    pub dag_id: Option<String>,
    /// Only those that are not over.
    pub open: bool,
}
