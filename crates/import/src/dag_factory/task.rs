//! The tasks of a DAG, each in its group.

use super::groups::Tree;
use super::operators::Task;
use super::{args, by_name, name};
use crate::dag::Draft;
use crate::report::Notes;
use crate::yaml::{Field, Fields};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Adds the tasks and groups to a DAG.
pub(super) fn read(
    field: Option<Field<'_>>,
    before: u32,
    tree: &Tree,
    draft: &mut Draft,
    notes: &mut Notes,
) {
    let found = field.map(|field| by_name(&field, "task_id", before, notes)).unwrap_or_default();
    let mut places: BTreeMap<String, String> = BTreeMap::new();
    for (task, _, fields) in &found {
        let group = fields
            .clone()
            .take(&["task_group_name"])
            .and_then(|field| field.value.text().map(str::to_owned));
        places.insert(task.clone(), tree.id(group.as_deref(), task));
    }
    let resolve = |wanted: &str| match places.get(wanted) {
        Some(id) => id.clone(),
        None if tree.has(wanted) => tree.group_id(wanted),
        None => name(wanted),
    };
    let mut grouped: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    let mut arguments = Vec::new();
    for (task, line, fields) in found {
        let (group, keys, own) = convert(&task, line, fields, (draft, &resolve), notes);
        arguments.extend(own.into_iter().map(|own| (line, own)));
        let tasks = match group.filter(|group| tree.has(group)) {
            Some(group) => grouped.entry(group).or_default(),
            None => &mut draft.tasks,
        };
        tasks.insert(name(&task), Value::Object(keys));
    }
    as_params(arguments, draft, notes);
    draft.groups = tree.write(&mut grouped, &resolve);
}

type Arguments = Vec<(String, Value)>;
type World<'a> = (&'a Draft, &'a dyn Fn(&str) -> String);

fn convert(
    id: &str,
    line: u32,
    fields: Fields<'_>,
    (draft, resolve): World<'_>,
    notes: &mut Notes,
) -> (Option<String>, Map<String, Value>, Arguments) {
    let mut task =
        Task { name: id, line, fields, keys: Map::new(), arguments: Vec::new(), uses: Vec::new() };
    let group = task
        .fields
        .take(&["task_group_name"])
        .and_then(|field| field.value.text().map(str::to_owned));
    task.fields.take(&["task_id"]);
    let mut dependencies =
        task.fields.take(&["dependencies"]).map(|field| field.texts()).unwrap_or_default();
    let operator = task.fields.take(&["operator", "decorator"]);
    let what = operator.as_ref().map_or_else(|| "no operator".to_owned(), Field::shown);
    let is_known = operator.as_ref().is_some_and(|operator| task.act(operator, notes));
    if is_known {
        if let Some(why) = mistake(&task.keys, draft) {
            notes.needs(
                line,
                format!("{id}: {what}"),
                format!("it was written as a task that fails: {why}"),
                "write the task anew",
            );
            task.refuse(&what);
        } else {
            notes.converted(line, format!("{id}: {what}"), "a task");
        }
    } else {
        let why = "nothing here is like it; it was written as a task that fails";
        notes.needs(line, format!("{id}: {what}"), why, "write it as run, command, python or wait");
        task.refuse(&what);
    }
    for used in std::mem::take(&mut task.uses) {
        if !dependencies.contains(&used) {
            dependencies.push(used);
        }
    }
    let ups: Vec<String> = dependencies.iter().map(|name| resolve(name)).collect();
    if !ups.is_empty() {
        task.keys.insert("depends_on".into(), json!(ups));
    }
    outputs(&mut task.keys, resolve);
    let mut shared = Map::new();
    args::read(&mut task.fields, &mut shared, notes);
    args::rest(task.fields, notes);
    task.keys.extend(shared);
    (group, task.keys, task.arguments)
}

/// `{from: TASK}` in `expand` becomes what that task returned.
fn outputs(keys: &mut Map<String, Value>, resolve: &dyn Fn(&str) -> String) {
    let lists = keys.get_mut("expand").and_then(Value::as_object_mut);
    for (_, list) in lists.into_iter().flatten() {
        if let Some(task) = list.get("from").and_then(Value::as_str) {
            *list = json!(format!("{{{{ outputs[\"{}\"].return_value }}}}", resolve(task)));
        }
    }
}

/// What the reader of DAG files says of a task on its own: of templates, most of all.
fn mistake(keys: &Map<String, Value>, draft: &Draft) -> Option<String> {
    let mut alone = keys.clone();
    let lists = alone.get_mut("expand").and_then(Value::as_object_mut);
    for (_, list) in lists.into_iter().flatten().filter(|(_, list)| list.get("from").is_some()) {
        *list = json!([1]);
    }
    let mut dag = Map::from_iter([("dag_id".to_owned(), json!("alone"))]);
    if let Some(params) = draft.keys.get("params") {
        dag.insert("params".into(), params.clone());
    }
    dag.insert("tasks".into(), json!({ "alone": alone }));
    let text = Value::Object(dag).to_string();
    let parsed = fencepost_dagfile::parse(text.as_bytes(), "alone.yaml");
    if parsed.dag.is_some() {
        return None;
    }
    let first =
        parsed.diagnostics.into_iter().find(|d| d.severity == fencepost_dagfile::Severity::Error);
    first.map(|mistake| format!("{} ({})", mistake.message, mistake.hint))
}

/// Constant arguments as params, where no two tasks want another value.
fn as_params(arguments: Vec<(u32, (String, Value))>, draft: &mut Draft, notes: &mut Notes) {
    let mut params =
        draft.keys.get("params").and_then(Value::as_object).cloned().unwrap_or_default();
    for (line, (name, value)) in arguments {
        let wanted = if value.is_object() {
            json!({ "type": "object", "default": value })
        } else {
            value.clone()
        };
        match params.get(&name) {
            Some(known) if *known != wanted => {
                let todo = "give the functions arguments of different names";
                notes.needs(
                    line,
                    format!("{name}: {value}"),
                    "a param of that name has another value",
                    todo,
                );
            }
            Some(_) => {}
            None => {
                notes.converted(
                    line,
                    format!("{name}: {value}"),
                    "a param: functions get them by name",
                );
                params.insert(name, wanted);
            }
        }
    }
    draft.set_some("params", params);
}
