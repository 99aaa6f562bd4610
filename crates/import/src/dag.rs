//! A DAG under construction, and the file that it becomes.

use crate::print;
use crate::report::Notes;
use serde_json::{Map, Value, json};

/// A DAG file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DagFile {
    /// Its id, and the file's name without `.yaml`.
    pub dag_id: String,
    pub text: String,
    /// It is written paused, and says at its head what is open.
    pub needs_person: bool,
}

/// A DAG under construction.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) dag_id: String,
    /// Where it comes from, for its first line.
    origin: String,
    /// The line of the source where it begins.
    line: u32,
    /// Everything but its tasks.
    pub(crate) keys: Map<String, Value>,
    pub(crate) tasks: Map<String, Value>,
    pub(crate) groups: Map<String, Value>,
}

impl Draft {
    /// A DAG without tasks. `origin`: `line 3 of crontab`.
    pub(crate) fn new(dag_id: &str, origin: impl Into<String>, line: u32) -> Self {
        let keys = Map::from_iter([("dag_id".to_owned(), json!(dag_id))]);
        let (tasks, groups) = (Map::new(), Map::new());
        Self { dag_id: dag_id.to_owned(), origin: origin.into(), line, keys, tasks, groups }
    }

    /// The same DAG once more, for another schedule.
    pub(crate) fn copy(&self) -> Self {
        Self {
            dag_id: self.dag_id.clone(),
            origin: self.origin.clone(),
            line: self.line,
            keys: self.keys.clone(),
            tasks: self.tasks.clone(),
            groups: self.groups.clone(),
        }
    }

    pub(crate) fn rename(&mut self, dag_id: &str) {
        dag_id.clone_into(&mut self.dag_id);
        self.set("dag_id", dag_id);
    }

    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.keys.insert(key.to_owned(), value.into());
    }

    /// A value unless it is empty text or an empty mapping or list.
    pub(crate) fn set_some(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        let is_empty = match &value {
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(map) => map.is_empty(),
            Value::Null => true,
            Value::Bool(_) | Value::Number(_) => false,
        };
        if !is_empty {
            self.keys.insert(key.to_owned(), value);
        }
    }

    /// The file; or a note, if the reader of DAG files finds a mistake in it: a source that asks for what a
    /// DAG file cannot say, and was not found out before.
    pub(crate) fn finish(mut self, notes: &mut Notes) -> Option<DagFile> {
        let open = notes.open_points(&self.dag_id);
        if !open.is_empty() {
            self.set("is_paused_upon_creation", true);
        }
        let mut text = format!("# Imported from {}.\n", self.origin);
        for point in &open {
            text.push_str(&format!("# Needs a person: {point}\n"));
        }
        for (key, map) in [("tasks", self.tasks), ("task_groups", self.groups)] {
            if !map.is_empty() {
                self.keys.insert(key.to_owned(), Value::Object(map));
            }
        }
        text.push_str(&print::document(&ordered(self.keys)));
        let parsed = fencepost_dagfile::parse(text.as_bytes(), &format!("{}.yaml", self.dag_id));
        if parsed.dag.is_some() {
            return Some(DagFile { dag_id: self.dag_id, text, needs_person: !open.is_empty() });
        }
        let is_error =
            |d: &&fencepost_dagfile::Diagnostic| d.severity == fencepost_dagfile::Severity::Error;
        for mistake in parsed.diagnostics.iter().filter(is_error) {
            let why = format!("no file was written: {}", mistake.message);
            notes.dag_id.clone_from(&self.dag_id);
            notes.needs(self.line, &self.dag_id, why, &mistake.hint);
        }
        None
    }
}

/// Keys in the order in which people write them.
const ORDER: [&str; 24] = [
    "dag_id",
    "description",
    "doc_md",
    "owner",
    "tags",
    "compat",
    "schedule",
    "timezone",
    "timetable",
    "start_date",
    "end_date",
    "catchup",
    "is_paused_upon_creation",
    "max_active_runs",
    "overlap",
    "max_active_tasks",
    "dagrun_timeout",
    "retention",
    "params",
    "env",
    "secrets",
    "default_args",
    "tasks",
    "task_groups",
];

fn ordered(mut keys: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for key in ORDER {
        if let Some(value) = keys.shift_remove(key) {
            out.insert(key.to_owned(), value);
        }
    }
    out.extend(keys);
    for key in ["tasks", "task_groups"] {
        if let Some(map) = out.get_mut(key).and_then(Value::as_object_mut) {
            for (_, entry) in map {
                if let Some(keys) = entry.as_object_mut() {
                    let sorted = if key == "tasks" {
                        task(std::mem::take(keys))
                    } else {
                        ordered(std::mem::take(keys))
                    };
                    *keys = sorted;
                }
            }
        }
    }
    out
}

/// What a task does, after what, and then its limits.
const TASK_ORDER: [&str; 14] = [
    "depends_on",
    "trigger_rule",
    "teardown",
    "expand",
    "run",
    "command",
    "python",
    "wait",
    "trigger_dag",
    "noop",
    "shell",
    "working_dir",
    "env",
    "outputs",
];

fn task(mut keys: Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    for key in TASK_ORDER {
        if let Some(value) = keys.shift_remove(key) {
            out.insert(key.to_owned(), value);
        }
    }
    out.extend(keys);
    out
}
