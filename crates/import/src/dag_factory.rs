//! dag-factory (astronomer/dag-factory): YAML that describes Airflow DAGs, one DAG per top-level key.
//!
//! `default` is merged into each. What an operator does becomes a task's action where there is one
//! (Bash, Python, Empty, TriggerDagRun, a few sensors); any other becomes a task that fails and says
//! so. Templates stay what they are, if the names in them exist here.

mod args;
mod groups;
mod operators;
mod schedule;
mod task;
mod values;

use crate::dag::{DagFile, Draft};
use crate::names::Names;
use crate::report::{Imported, Notes};
use crate::yaml::{self, Fields};
use crate::{Source, text_of};
use fencepost_dagfile::document::{Content, Entry, Node};
use serde_json::{Map, Value, json};

/// The DAG files of a file of dag-factory.
pub fn dag_factory(source: &Source<'_>) -> Imported {
    let mut notes = Notes::of(source.name);
    let mut files = Vec::new();
    let text = text_of(source, &mut notes).unwrap_or_default();
    let mut names = Names::default();
    for (before, root) in yaml::documents(text, &mut notes) {
        if !root.is_map() {
            notes.unreadable(
                before + 1,
                "it is no mapping of DAGs by name",
                "give a file of dag-factory",
            );
        }
        let default = root.get("default").cloned();
        for entry in root.entries().iter().filter(|entry| entry.key != "default") {
            files.extend(dag(source, before, entry, default.as_ref(), &mut names, &mut notes));
        }
    }
    Imported { files, notes: notes.finish() }
}

#[expect(clippy::too_many_arguments, reason = "what a DAG's entry stands in")]
fn dag(
    source: &Source<'_>,
    before: u32,
    entry: &Entry,
    default: Option<&Node>,
    names: &mut Names,
    notes: &mut Notes,
) -> Option<DagFile> {
    let line = before.saturating_add(entry.place.line);
    notes.dag_id.clear();
    if !entry.value.is_map() {
        notes.needs(
            line,
            yaml::shown(&entry.key, &entry.value),
            "it is no DAG",
            "look whether something reads it",
        );
        return None;
    }
    let merged =
        default.map_or_else(|| entry.value.clone(), |default| merge(&entry.value, default));
    let dag_id = names.give(&entry.key, "dag");
    notes.dag_id.clone_from(&dag_id);
    if dag_id != entry.key {
        notes.needs(
            line,
            &entry.key,
            format!("its name became {dag_id}"),
            "look whether something names the DAG",
        );
    }
    let mut draft = Draft::new(&dag_id, format!("{} in {}", entry.key, source.name), line);
    // Scripts that were written for Airflow may read its variables.
    draft.set("compat", "airflow");
    let mut fields = Fields::of(merged.entries(), before);
    head(&mut fields, before, &mut draft, notes);
    let groups = fields.take(&["task_groups"]);
    let tasks = fields.take(&["tasks"]);
    rest(fields, &mut draft, notes);
    let tree = groups::Tree::read(groups, before, notes);
    task::read(tasks, before, &tree, &mut draft, notes);
    notes.converted(line, &entry.key, format!("{dag_id}.yaml"));
    draft.finish(notes)
}

/// A mapping over another, level by level.
fn merge(own: &Node, default: &Node) -> Node {
    let mut entries = own.entries().to_vec();
    for entry in default.entries() {
        match entries.iter_mut().find(|known| known.key == entry.key) {
            Some(known) if known.value.is_map() && entry.value.is_map() => {
                known.value = merge(&known.value, &entry.value);
            }
            Some(_) => {}
            None => entries.push(entry.clone()),
        }
    }
    Node { place: own.place, content: Content::Map(entries) }
}

/// Everything of a DAG that is no task.
fn head(fields: &mut Fields<'_>, before: u32, draft: &mut Draft, notes: &mut Notes) {
    for (from, to) in
        [("description", "description"), ("doc_md", "doc_md"), ("timezone", "timezone")]
    {
        if let Some(text) =
            fields.take(&[from]).and_then(|field| field.value.text().map(str::to_owned))
        {
            draft.set_some(to, text);
        }
    }
    if let Some(tags) = fields.take(&["tags"]) {
        draft.set_some("tags", tags.texts());
    }
    for (names, to) in [
        (["max_active_runs", ""], "max_active_runs"),
        (["max_active_tasks", "concurrency"], "max_active_tasks"),
    ] {
        let number = fields.take(&names).and_then(|field| values::whole(&field, to, 1, notes));
        if let Some(number) = number {
            draft.set(to, number);
        }
    }
    let timeout = fields.take(&["dagrun_timeout", "dagrun_timeout_sec"]);
    let span = timeout.and_then(|field| values::duration(&field, notes));
    if let Some(span) = span.filter(|span| span != "0s") {
        draft.set("dagrun_timeout", span);
    }
    for (names, to) in [
        (["is_paused_upon_creation", ""], "is_paused_upon_creation"),
        (["fail_fast", "fail_stop"], "fail_fast"),
    ] {
        if fields.take(&names).is_some_and(|field| field.is_true()) {
            draft.set(to, true);
        }
    }
    if let Some(params) = fields.take(&["params"]) {
        draft.set_some("params", values::params(&params, notes));
    }
    let defaults = fields.take(&["default_args"]);
    let mut args =
        Fields::of(defaults.map(|field| field.value.entries()).unwrap_or_default(), before);
    schedule::read(fields, &mut args, draft, notes);
    if let Some(owner) =
        args.take(&["owner"]).and_then(|field| field.value.text().map(str::to_owned))
    {
        draft.set_some("owner", owner);
    }
    let mut shared = Map::new();
    args::read(&mut args, &mut shared, notes);
    args::rest(args, notes);
    draft.set_some("default_args", shared);
}

/// Keys of a DAG that are about Airflow's pages, and nothing else.
const PAGES: [&str; 7] = [
    "default_view",
    "orientation",
    "dag_display_name",
    "render_template_as_native_obj",
    "owner_links",
    "dagfactory",
    "auto_register",
];

fn rest(fields: Fields<'_>, draft: &mut Draft, notes: &mut Notes) {
    for field in fields.rest() {
        let (line, what) = (field.line, field.shown());
        match field.key {
            key if PAGES.contains(&key) => {
                notes.ignored(line, what, "it is about Airflow's own pages and processes");
            }
            key if args::is_callback(key) => {
                notes.needs(
                    line,
                    what,
                    "callbacks in Python are not called",
                    "write a callback of ours, or a task with a trigger_rule",
                );
            }
            "template_searchpath" => notes.needs(
                line,
                what,
                "templates are read from the DAG file alone",
                "put the text into the tasks",
            ),
            _ => notes.needs(
                line,
                what,
                "no key of a DAG file is like it",
                "look whether the DAG depends on it",
            ),
        }
    }
    if draft.keys.get("tags").is_none() {
        draft.set("tags", json!(["dagfactory"]));
    }
}

/// A name as dag-factory has it, as one of ours.
fn name(text: &str) -> String {
    crate::names::clean(text).unwrap_or_else(|| "unnamed".to_owned())
}

/// Task or group configurations by name: a mapping, or a list in which each says its name.
fn by_name<'a>(
    field: &yaml::Field<'a>,
    key: &str,
    before: u32,
    notes: &mut Notes,
) -> Vec<(String, u32, Fields<'a>)> {
    let mut found = Vec::new();
    for entry in field.value.entries() {
        found.push((
            entry.key.clone(),
            before.saturating_add(entry.place.line),
            Fields::of(entry.value.entries(), before),
        ));
    }
    for item in field.value.items() {
        let line = before.saturating_add(item.place.line);
        let mut fields = Fields::of(item.entries(), before);
        match fields.take(&[key]).and_then(|field| field.value.text().map(str::to_owned)) {
            Some(name) => found.push((name, line, fields)),
            None => notes.needs(
                line,
                yaml::shown(field.key, item),
                format!("it has no {key}"),
                "dag-factory refuses it too; mend it",
            ),
        }
    }
    found
}

/// A mapping as a value.
fn object(map: Map<String, Value>) -> Value {
    Value::Object(map)
}
