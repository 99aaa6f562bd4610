//! What people do to runs and task instances: stop, clear, mark; and what that would change.

use super::Word;
use serde::{Deserialize, Serialize};

/// The body of cancel, kill, pause, resume, confirm-dead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Action {
    /// Kept with the event, beside who did it.
    pub reason: Option<String>,
}

/// The body of `…/runs/{run_id}:clear` and `…/tasks/{task_id}:clear` (which ignores `tasks`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clear {
    /// `task_id` (all its instances) or `task_id;map_index`; empty: every task of the run.
    pub tasks: Vec<String>,
    /// Also everything after them.
    pub downstream: bool,
    /// Also everything before them.
    pub upstream: bool,
    /// Also in the DAG's runs of earlier logical dates.
    pub past: bool,
    /// Also in its runs of later ones.
    pub future: bool,
    /// Of these only what is failed, upstream_failed or held.
    pub only_failed: bool,
    /// New idempotency keys for all, not only for those that had succeeded.
    pub new_keys: bool,
    /// With the newest version of the DAG instead of the run's own.
    pub latest_version: bool,
    pub reason: Option<String>,
}

/// The body of `…/tasks/{task_id}:mark`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// `success`, `failed` or `skipped`.
    pub state: Word,
    #[serde(default)]
    pub downstream: bool,
    #[serde(default)]
    pub upstream: bool,
    /// Also in the DAG's runs of earlier logical dates.
    #[serde(default)]
    pub past: bool,
    /// Also in its runs of later ones.
    #[serde(default)]
    pub future: bool,
    #[serde(default)]
    pub reason: Option<String>,
}

/// The body of `/held/{attempt}:resolve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolve {
    /// `success`, `failed` or `rerun`.
    #[serde(rename = "as")]
    pub decision: Word,
    /// Nothing of the attempt runs any more: whoever asks vouches for that.
    #[serde(default)]
    pub confirm_dead: bool,
    #[serde(default)]
    pub reason: Option<String>,
}

/// The answer to clear and mark, also with `?dry_run=true`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangePlan {
    pub dag_id: String,
    pub run_id: String,
    /// True: nothing was changed.
    pub dry_run: bool,
    /// The DAG version that the run goes on with, and the newest.
    pub version: u32,
    pub latest_version: u32,
    pub changes: Vec<Change>,
}

/// One task instance in a [`ChangePlan`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The run that it is of: with `past` and `future` there are several.
    pub run_id: String,
    pub task_id: String,
    pub map_index: i32,
    pub from: Word,
    /// Null: it stays as it is, and `reason` says why.
    pub to: Option<Word>,
    /// Its next attempt gets a new idempotency key.
    pub new_key: bool,
    pub reason: Option<String>,
}
