//! Dag runs.

use super::{Time, Word};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One dag run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    pub dag_id: String,
    pub run_id: String,
    /// `scheduled`, `manual`, `backfill`, `asset_triggered`.
    pub run_type: Word,
    pub state: Word,
    /// Nothing new of it starts until it is resumed.
    pub paused: bool,
    pub logical_date: Option<Time>,
    pub data_interval_start: Option<Time>,
    pub data_interval_end: Option<Time>,
    pub queued_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// The DAG version that it is pinned to.
    pub version: u32,
    /// Who or what made it: `scheduler`, a token's name.
    pub triggered_by: String,
    /// Why it is in this state, where there is more to say (`cancelled by anna`).
    pub reason: Option<String>,
    pub note: Option<String>,
    /// The parameters as the run uses them, defaults included.
    pub params: Map<String, Value>,
    pub conf: Value,
    /// Task instances by state; states that none is in are left out.
    pub task_counts: BTreeMap<Word, u32>,
    /// The highest event number of the run: where to start following it.
    pub last_event_seq: i64,
}

/// Filters of `GET /dags/{dag_id}/runs` (the last due or triggered first) and `GET /runs` (the last
/// made first).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    /// States, separated by commas.
    pub state: Option<String>,
    /// `scheduled`, `manual`, ...
    pub run_type: Option<String>,
    /// Run ids that begin so.
    pub run_id_prefix: Option<String>,
    /// Logical dates from this instant on ...
    pub from: Option<Time>,
    /// ... and before this one.
    pub to: Option<Time>,
}

/// `POST /dags/{dag_id}/runs`: 202 and the [`Run`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TriggerRun {
    /// Null: made by the server.
    pub run_id: Option<String>,
    /// An instant; `none`: a run without one; null: the instant of the trigger.
    pub logical_date: Option<String>,
    /// Typed values of declared params.
    pub params: Map<String, Value>,
    pub conf: Value,
    pub note: Option<String>,
}

/// `PATCH /dags/{dag_id}/runs/{run_id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunPatch {
    /// An empty text removes the note.
    pub note: Option<String>,
}
