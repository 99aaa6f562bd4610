//! Why it is not running: the gates in their order.

use super::{Time, Word};
use serde::{Deserialize, Serialize};

/// `GET …/tasks/{task_id}/explain`, `GET …/runs/{run_id}/explain` and `GET /dags/{dag_id}/explain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explain {
    pub dag_id: String,
    /// Null: about the DAG, which makes no run.
    pub run_id: Option<String>,
    /// Null: about the run itself, or the DAG.
    pub task_id: Option<String>,
    pub map_index: i32,
    pub state: Word,
    pub since: Option<Time>,
    /// One sentence: `load waits for a slot of pool warehouse`.
    pub summary: String,
    /// In the order in which they are looked at; at most one is blocking.
    pub gates: Vec<Gate>,
    /// What a person can do, or null.
    pub next: Option<String>,
}

/// One condition between a task instance and its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// `import_error`, `dag_paused`, `not_due`, `assets_missing`, `run_paused`, `upstream_not_done`,
    /// `trigger_rule_unmet`, `depends_on_past`, `pool_full`, `pool_missing`, `pool_too_small`, `dag_task_limit`, `task_limit`, `workers_full`, `queue_without_worker`,
    /// `retry_delay`, `previous_attempt_not_released`, `held`, `held_lost`, `scheduler_down`,
    /// `epoch_reconciling`, `recovery_ramp`, `run_queued_max_active_runs`, ...
    pub code: Word,
    pub status: GateStatus,
    /// With its numbers: `pool warehouse 8/8 slots; needs 2`.
    pub text: String,
    /// Who holds what it waits for, one line each.
    #[serde(default)]
    pub holders: Vec<String>,
}

/// What became of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateStatus {
    Passed,
    Blocking,
    /// Not looked at, because one before it blocks.
    NotReached,
}
