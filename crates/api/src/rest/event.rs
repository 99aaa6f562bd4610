//! The transition log.

use super::{Evidence, Time, TokenText, Word};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Rises; where to go on reading.
    pub seq: i64,
    pub at: Time,
    /// `ti_state`, `run_state`, `attempt_lost`, `write_refused`, `reattached`, ...
    pub kind: Word,
    pub dag_id: Option<String>,
    pub run_id: Option<String>,
    pub task_id: Option<String>,
    /// -1: not mapped; null: not about a task instance.
    pub map_index: Option<i32>,
    pub token: Option<TokenText>,
    /// The job or person: `scheduler`, `worker w-1`, `anna`.
    pub actor: String,
    pub from: Option<Word>,
    pub to: Option<Word>,
    pub reason: Option<String>,
    pub evidence: Option<Evidence>,
    /// What the kind adds.
    pub detail: Option<Value>,
}

/// `GET /events`, oldest first.
///
/// With `wait_ms` and nothing after `after`, the answer comes with the first event or when that
/// time is over (a long poll). `next_cursor` is null when nothing more is there at present; go on
/// with the `seq` of the last item.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventQuery {
    pub limit: Option<u32>,
    /// Events with a higher `seq`.
    pub after: Option<i64>,
    pub dag_id: Option<String>,
    pub run_id: Option<String>,
    pub task_id: Option<String>,
    pub map_index: Option<i32>,
    /// An attempt's id or token.
    pub attempt: Option<String>,
    /// Kinds, separated by commas.
    pub kind: Option<String>,
    /// At most 30,000.
    pub wait_ms: Option<u32>,
}
