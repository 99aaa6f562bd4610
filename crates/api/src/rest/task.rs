//! Task instances, their outputs (XCom) and their rendered fields.

use super::{Evidence, Time, TokenText, Word};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One task instance. In a path it is `task_id`, or `task_id;map_index` when mapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInstance {
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    /// -1: not mapped.
    pub map_index: i32,
    /// What `map_index_template` rendered to.
    pub map_label: Option<String>,
    pub state: Word,
    /// Why, where the state alone does not say it (`cancelled`, `upstream_failed: extract`).
    pub reason: Option<String>,
    pub try_number: u32,
    /// 1 + `retries`.
    pub max_tries: u32,
    pub infra_used: u32,
    pub infra_retries: u32,
    /// Dispatches so far.
    pub attempt_count: u32,
    /// Of the newest attempt.
    pub token: Option<TokenText>,
    pub attempt_id: Option<String>,
    pub worker: Option<String>,
    pub pool: String,
    pub pool_slots: u32,
    pub queue: String,
    pub priority_weight: i32,
    pub trigger_rule: Word,
    pub depends_on: Vec<String>,
    /// When it entered its state.
    pub since: Option<Time>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// When its next try is due (`up_for_retry`).
    pub next_try_at: Option<Time>,
}

/// A row of `GET /held`: nothing happens to it before a person, or evidence, decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldTask {
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    /// -1: not mapped.
    pub map_index: i32,
    pub map_label: Option<String>,
    pub state: Word,
    /// `awaiting_person`, `awaiting_evidence`, `poison`.
    pub reason: Option<String>,
    /// When it became held.
    pub since: Option<Time>,
    pub try_number: u32,
    pub attempt_count: u32,
    /// Of the newest attempt.
    pub token: Option<TokenText>,
    pub attempt_id: Option<String>,
    pub worker: Option<String>,
    /// How the end of that attempt is known, or why somebody concluded it; null: it asked to be held.
    #[serde(default)]
    pub evidence: Option<Evidence>,
}

/// Filters of `GET …/tasks`. In topological order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    /// States, separated by commas.
    pub state: Option<String>,
    /// All instances of one task.
    pub task_id: Option<String>,
}

/// `GET …/tasks/{task_id}/outputs`: accepted outputs only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outputs {
    pub task_id: String,
    pub map_index: i32,
    /// Of the attempt that they come from; null: none yet.
    pub token: Option<TokenText>,
    pub outputs: Vec<Output>,
}

/// One output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub name: String,
    pub value: Value,
}

/// `GET …/tasks/{task_id}/rendered`: templates as the newest attempt got them, or as the next
/// attempt would.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rendered {
    pub task_id: String,
    pub map_index: i32,
    /// Of the attempt that got them; null: not yet dispatched.
    pub token: Option<TokenText>,
    pub fields: Vec<RenderedField>,
}

/// One field, or why it cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderedField {
    /// `run`, `command[1]`, `env.PGAPPNAME`.
    pub field: String,
    pub text: Option<String>,
    pub error: Option<String>,
}
