//! DAGs, their versions, their coming slots and the files that could not be read.

use super::{Time, Word};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A DAG in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dag {
    pub dag_id: String,
    pub description: String,
    pub owner: String,
    pub tags: Vec<String>,
    pub is_paused: bool,
    /// False: its file is gone; its runs go on, no new ones start.
    pub is_active: bool,
    /// As people read it: `0 5 * * *`, `@daily`, `every 15m`; null: only when triggered.
    pub schedule: Option<String>,
    pub timezone: String,
    /// The newest version, from 1.
    pub version: u32,
    /// The file that it was read from, relative to the DAG folder.
    pub file: String,
    /// When the next slot is due; null: paused, inactive or manual only.
    pub next_due_at: Option<Time>,
    /// The last runs, newest first, at most 20.
    pub last_runs: Vec<RunDot>,
    /// Its file as it is now could not be read; the last good version goes on.
    pub has_import_error: bool,
}

/// A run as one dot of a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDot {
    pub run_id: String,
    pub state: Word,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
}

/// `GET /dags/{dag_id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DagDetail {
    #[serde(flatten)]
    pub dag: Dag,
    pub doc_md: String,
    pub timetable: Word,
    pub start_date: Option<Time>,
    pub end_date: Option<Time>,
    /// `all`, `newest`, `next`: what `catchup` says.
    pub catchup: Word,
    pub max_active_runs: u32,
    pub max_active_tasks: u32,
    pub dagrun_timeout_ms: Option<u64>,
    pub fail_fast: bool,
    pub params: Vec<Param>,
    /// In the order of the file.
    pub tasks: Vec<DagTask>,
    /// Each after the one that it stands in.
    #[serde(default)]
    pub task_groups: Vec<DagTaskGroup>,
    /// Runs that have not ended.
    pub active_runs: u32,
}

/// A parameter of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    pub name: String,
    pub default: Value,
    pub description: String,
    /// JSON Schema.
    pub schema: Value,
}

/// A node of the DAG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagTask {
    pub task_id: String,
    /// `run`, `command`, `noop`.
    pub action: Word,
    pub depends_on: Vec<String>,
    pub trigger_rule: Word,
    /// Mapped with `expand`.
    pub is_mapped: bool,
    pub pool: String,
    pub queue: String,
    pub retries: u32,
    pub infra_retries: u32,
}

/// A group of tasks of the DAG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagTaskGroup {
    pub group_id: String,
    pub tooltip: String,
    /// The group that it stands in.
    pub parent: Option<String>,
    /// The tasks that stand in it and in none of its own groups.
    pub tasks: Vec<String>,
}

/// Filters of `GET /dags`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DagQuery {
    pub limit: Option<u32>,
    pub cursor: Option<String>,
    /// DAGs with this tag.
    pub tag: Option<String>,
    pub is_paused: Option<bool>,
    /// Also those whose file is gone.
    pub inactive: Option<bool>,
}

/// `PATCH /dags/{dag_id}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagPatch {
    pub is_paused: Option<bool>,
}

/// The answer to [`DagPatch`], also with `?dry_run=true`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseEffect {
    pub dag_id: String,
    pub is_paused: bool,
    /// It was so already.
    pub unchanged: bool,
    /// Slots that are due already and start at once.
    pub due_runs: u64,
    /// Logical dates of the first and the last of them.
    pub first_logical_date: Option<Time>,
    pub last_logical_date: Option<Time>,
}

/// A version of a DAG in a list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagVersion {
    pub dag_id: String,
    pub version: u32,
    /// SHA-256 of its content, hexadecimal.
    pub hash: String,
    pub created_at: Time,
    pub is_current: bool,
    /// Runs pinned to it.
    pub runs: u64,
}

/// `GET /dags/{dag_id}/versions/{version}`; `latest` is the newest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DagVersionDetail {
    #[serde(flatten)]
    pub version: DagVersion,
    /// The file as it was.
    pub source: String,
}

/// A slot of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    pub due_at: Time,
    pub logical_date: Time,
    pub data_interval_start: Time,
    pub data_interval_end: Time,
}

/// `GET /dags/{dag_id}/next?n=5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SlotQuery {
    /// How many; default 5, at most 1,000.
    pub n: Option<u32>,
}

/// `GET /schedule`: what comes next, one row for each DAG that has a schedule, soonest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextRun {
    pub dag_id: String,
    pub is_paused: bool,
    pub schedule: Option<String>,
    pub timezone: String,
    pub next: Option<Slot>,
    pub last: Option<RunDot>,
}

/// A file of the DAG folder that could not be read as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportError {
    pub file: String,
    /// The DAG whose last good version goes on, if there is one.
    pub dag_id: Option<String>,
    /// Since when.
    pub at: Time,
    pub diagnostics: Vec<Diagnostic>,
}

/// A mistake in a DAG file, as `fencepost validate` says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub line: u32,
    pub column: u32,
    /// `error` or `warn`.
    pub severity: Word,
    pub code: String,
    pub message: String,
    pub hint: Option<String>,
}
