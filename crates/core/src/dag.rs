//! A workflow definition after validation: what the DAG file said, with every default filled in.
//!
//! `Dag::new` is the only way to make one: names are unique, edges point at tasks of the DAG, and
//! the graph has no cycle. Tasks are kept in the order of the file; an edge is a pair of indexes.
//! Templates (Jinja) are kept as text: they are rendered when an attempt is claimed.

mod graph;

pub use graph::{DagError, priority_weights, topological_order};

use crate::id::{DagId, PoolName, QueueName, TaskId};
use crate::retry::{RetryPolicy, RetryRule};
use crate::schedule::Timing;
use crate::time::Span;
use crate::trigger_rule::TriggerRule;
use serde_json::Value;

/// The place of a task in its DAG, from 0 in the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskIndex(pub u32);

/// A validated workflow definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Dag {
    pub dag_id: DagId,
    pub description: String,
    pub doc_md: String,
    pub owner: String,
    pub tags: Vec<String>,
    /// When it runs by itself; `timing.schedule` is `Schedule::Manual` for `schedule: null`.
    pub timing: Timing,
    pub is_paused_upon_creation: bool,
    pub limits: DagLimits,
    /// The whole run, from its start.
    pub dagrun_timeout: Option<Span>,
    /// The first failed task stops the rest of the run.
    pub fail_fast: bool,
    pub params: Vec<Param>,
    /// Variables of every task's environment, as templates, in the order of the file.
    pub env: Vec<(String, String)>,
    /// Keep ended runs this long (`retention`); `None`: the installation's setting.
    pub retention: Option<Span>,
    pub tasks: Vec<Task>,
}

/// How much of a DAG may be active at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DagLimits {
    pub max_active_runs: u32,
    /// Task instances of this DAG over all its runs.
    pub max_active_tasks: u32,
}

/// A parameter of a run: its default and what a value must look like.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    pub name: String,
    pub default: Value,
    pub description: String,
    /// JSON Schema of the value as written in the file (`type`, `enum`, `items`, `minimum`, ...).
    /// For the short form `{"type": <type of the default>}`; empty for a null default.
    pub schema: Value,
}

/// A node of the DAG.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub task_id: TaskId,
    pub action: Action,
    /// Upstream tasks, ascending, without repeats.
    pub depends_on: Vec<TaskIndex>,
    pub trigger_rule: TriggerRule,
    /// A Jinja expression; false: the task is skipped.
    pub when: Option<String>,
    /// Literal lists to map over, in the order of the file; several keys: their cross product.
    pub expand: Vec<(String, Vec<Value>)>,
    pub map_index_template: Option<String>,
    pub depends_on_past: bool,
    pub limits: TaskLimits,
    pub retry: RetryPolicy,
    /// First match wins, before `retry`.
    pub retry_rules: Vec<RetryRule>,
    pub infra_retries: u32,
    pub on_lost: OnLost,
    pub times: TaskTimes,
    pub containment: Containment,
    /// Exit codes that count as success after our own stop signal.
    pub graceful_exit_codes: Vec<u8>,
    /// Exit codes that end the task as skipped (default 99).
    pub skip_exit_codes: Vec<u8>,
    /// Templates, in the order of the file; they go over those of the DAG.
    pub env: Vec<(String, String)>,
    /// Declared outputs and their types; empty: any.
    pub outputs: Vec<(String, OutputType)>,
    /// A template; `None`: the attempt's own work directory.
    pub working_dir: Option<String>,
    /// The interpreter of `run`; default `bash -euo pipefail`.
    pub shell: Vec<String>,
    pub run_as_user: Option<String>,
}

/// What a task does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A shell script (a template).
    Run(String),
    /// A program and its arguments (templates), without a shell.
    Command(Vec<String>),
    /// Nothing: it succeeds when its turn comes, without an attempt.
    Noop,
}

/// Where a task may run, and how many of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskLimits {
    pub queue: QueueName,
    pub pool: PoolName,
    pub pool_slots: u32,
    pub priority_weight: i32,
    pub weight_rule: WeightRule,
    pub max_active_tis_per_dag: Option<u32>,
    pub max_active_tis_per_dagrun: Option<u32>,
}

/// How a task's effective priority follows from the weights around it, as in Airflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightRule {
    /// Its own weight and those of all its descendants.
    Downstream,
    /// Its own weight and those of all its ancestors.
    Upstream,
    /// Its own weight.
    Absolute,
}

/// What happens when an attempt that had started is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLost {
    Retry,
    Fail,
}

/// The clocks that run over one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskTimes {
    /// One attempt, from start to exit.
    pub execution_timeout: Option<Span>,
    /// From queued to claimed.
    pub queued_timeout: Span,
    /// No output, CPU or checkpoint for that long.
    pub stall_timeout: Option<Span>,
    /// From SIGTERM to SIGKILL; `None`: the worker's.
    pub kill_grace: Option<Span>,
}

/// How the process tree of an attempt is contained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Containment {
    /// The strongest that the machine allows.
    Auto,
    Pidns,
    Cgroup,
    Group,
}

/// The declared type of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputType {
    String,
    Integer,
    Number,
    Boolean,
    Array,
    Object,
}
