//! What tasks do.

use serde_json::Value;

/// What a task does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A shell script (a template).
    Run(String),
    /// A program and its arguments (templates), without a shell.
    Command(Vec<String>),
    /// A Python function, `module:function`.
    Python(String),
    /// A request, as the file wrote it (its texts are templates); see [`crate::http_task`].
    Http(Value),
    /// A run of another DAG, made in the commit in which the task succeeds.
    TriggerDag(TriggerDag),
    /// A wait, as the file wrote it (its texts are templates); see [`crate::wait`].
    Wait(Value),
    /// Nothing: it succeeds when its turn comes, without an attempt.
    Noop,
}

/// The run that a task triggers; all text is a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriggerDag {
    pub dag_id: String,
    /// `None`: an id of its own, as for a person's trigger.
    pub run_id: Option<String>,
    /// `None`: the instant at which it is made.
    pub logical_date: Option<String>,
    /// Values; one that is an expression in `{{ }}` keeps the type of what it gives.
    pub params: Vec<(String, Value)>,
}
