//! Task groups: tasks are stored flat, under their full ids and with edges of tasks; beside them stand
//! the groups under `groups`, each with the full ids of its members. A file has no such key.

use super::IrError;
use fencepost_core::dag::{Dag, TaskGroup, TaskIndex};
use fencepost_core::id::TaskId;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

const KEY: &str = "groups";

/// Nothing for a DAG without groups: what was stored before there were any keeps its hash.
pub(super) fn write(dag: &Dag, out: &mut Map<String, Value>) {
    if dag.groups.is_empty() {
        return;
    }
    let name = |index: &TaskIndex| Some(json!(dag.task(*index)?.task_id.as_str()));
    let group = |group: &TaskGroup| {
        let parent = group.parent.and_then(|parent| dag.groups.get(parent));
        json!({
            "group_id": group.group_id.as_str(),
            "tooltip": group.tooltip,
            "parent": parent.map(|parent| parent.group_id.as_str()),
            "tasks": group.tasks.iter().filter_map(name).collect::<Vec<_>>(),
        })
    };
    out.insert(KEY.into(), dag.groups.iter().map(group).collect());
}

/// A stored form without its groups, and those.
pub(super) fn split(stored: &Value) -> (Cow<'_, Value>, Option<Value>) {
    if stored.get(KEY).is_none() {
        return (Cow::Borrowed(stored), None);
    }
    let mut stored = stored.clone();
    let groups = stored.as_object_mut().and_then(|map| map.shift_remove(KEY));
    (Cow::Owned(stored), groups)
}

/// The DAG with its groups, checked.
pub(super) fn read(stored: &Value, dag: Dag) -> Result<Dag, IrError> {
    let wrong = |what: &str| IrError(format!("`groups` has {what}"));
    let tasks: BTreeMap<&str, usize> =
        dag.tasks.iter().enumerate().map(|(at, task)| (task.task_id.as_str(), at)).collect();
    let mut groups: Vec<TaskGroup> = Vec::new();
    for group in stored.as_array().ok_or_else(|| wrong("no list"))? {
        let id = group["group_id"].as_str().and_then(|id| TaskId::new(id).ok());
        let parent = match group["parent"].as_str() {
            None => None,
            Some(parent) => {
                let known = groups.iter().position(|group| group.group_id.as_str() == parent);
                Some(known.ok_or_else(|| wrong("a parent that does not come before"))?)
            }
        };
        let members = group["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let index = |name: &Value| tasks.get(name.as_str()?).copied().map(TaskIndex::new);
        let members: Option<Vec<TaskIndex>> = members.iter().map(index).collect();
        groups.push(TaskGroup {
            group_id: id.ok_or_else(|| wrong("no id"))?,
            tooltip: group["tooltip"].as_str().unwrap_or_default().to_owned(),
            parent,
            tasks: members.ok_or_else(|| wrong("a task that does not exist"))?,
        });
    }
    Dag::new(Dag { groups, ..dag }).map_err(|error| IrError(error.to_string()))
}
