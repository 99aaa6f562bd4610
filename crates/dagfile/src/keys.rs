//! The one table of keys: it drives the validation and the JSON schema, so they cannot differ.

mod dag;
mod group;
mod task;

const SECRETS: &str =
    "Environment variables with secrets: store:NAME, env:NAME, file:/PATH, exec:COMMAND.";

/// One key of the DAG file.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) level: Level,
    pub(crate) shape: Shape,
    /// Its text is a Jinja template.
    pub(crate) is_template: bool,
    /// The default as JSON; empty if there is none.
    pub(crate) default: &'static str,
    pub(crate) doc: &'static str,
}

/// Where a key may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Dag,
    /// At a task group.
    Group,
    Task,
    /// At a task and in `default_args`.
    TaskOrDefault,
}

/// What a key's value must look like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    Text,
    /// The name of a DAG, a pool or a queue.
    Name,
    Flag,
    Whole {
        least: i64,
        greatest: i64,
    },
    Duration,
    /// A date or an instant.
    Date,
    /// One of `values`; those of `later` are known and refused.
    Choice {
        values: &'static [&'static str],
        later: &'static [&'static str],
    },
    /// A list of text.
    Texts,
    /// A list of text, numbers and flags, taken as written.
    Words,
    /// A list of exit codes.
    Codes,
    /// Names of tasks.
    TaskNames,
    Env,
    /// Variables and where their values come from.
    Secrets,
    Version,
    Schedule,
    TimeZone,
    Catchup,
    Params,
    Tasks,
    TaskGroups,
    DefaultArgs,
    Expand,
    Outputs,
    /// Names or URIs of assets.
    Assets,
    RetryPolicy,
    /// `cpu` and `memory`.
    Resources,
    /// A program with arguments, as text or as a list.
    Program,
    /// The name of a DAG, or what its run is like.
    TriggerDag,
    /// A URL, or a request.
    Http,
    /// What a deferred task waits for.
    Wait,
    /// A list of callbacks.
    Callbacks,
    /// When a run should have finished, and who hears if it has not.
    Deadline,
    /// Only `true`.
    True,
    /// Known, refused by name.
    Later,
}

impl Shape {
    pub(crate) fn is_later(self) -> bool {
        matches!(self, Self::Later)
    }
}

impl Key {
    const fn new(name: &'static str, level: Level, shape: Shape, doc: &'static str) -> Self {
        Self { name, level, shape, is_template: false, default: "", doc }
    }
    const fn or(mut self, default: &'static str) -> Self {
        self.default = default;
        self
    }
    const fn template(mut self) -> Self {
        self.is_template = true;
        self
    }
    fn is_at(&self, level: Level) -> bool {
        self.level == level || (self.level == Level::TaskOrDefault && level == Level::Task)
    }
}

/// The keys that may stand at a level.
pub(crate) fn at(level: Level) -> impl Iterator<Item = &'static Key> {
    all().filter(move |key| key.is_at(level))
}

/// Every key; a name may come at two levels.
pub(crate) fn all() -> impl Iterator<Item = &'static Key> {
    dag::KEYS.iter().chain(task::KEYS).chain(group::KEYS)
}

/// The key of that name at that level.
pub(crate) fn find(name: &str, level: Level) -> Option<&'static Key> {
    at(level).find(|key| key.name == name)
}

/// The keys of which a task has exactly one: what it does.
pub(crate) const ACTIONS: [&str; 9] =
    ["run", "command", "python", "http", "sql", "container", "wait", "trigger_dag", "noop"];

/// Largest number of anything that is counted.
const MANY: i64 = 1_000_000;
