//! `handlerOn`: what runs at the end of a run, as teardowns: they do not decide how it ends.

use super::step::Step;
use super::steps::Shared;
use crate::dag::Draft;
use crate::report::Notes;
use crate::yaml::{Field, Fields};
use serde_json::{Value, json};
use std::collections::BTreeMap;

type Graph<'a> = (&'a [String], &'a BTreeMap<String, Vec<String>>);

/// Adds the handlers.
pub(super) fn read(
    field: &Field<'_>,
    (shared, before): (&Shared, u32),
    (ids, ups): Graph<'_>,
    draft: &mut Draft,
    notes: &mut Notes,
) {
    let is_last = |id: &&String| !ups.values().flatten().any(|up| up == *id);
    let last: Vec<String> = ids.iter().filter(is_last).cloned().collect();
    let mut ends: Vec<String> = Vec::new();
    for (kind, rule) in
        [("success", "all_success"), ("failure", "one_failed"), ("exit", "all_done")]
    {
        let Some(entry) = field.value.entries().iter().find(|entry| entry.key == kind) else {
            continue;
        };
        let line = before.saturating_add(entry.place.line);
        let mut id = format!("on_{kind}");
        while draft.tasks.contains_key(&id) {
            id.push('_');
        }
        let mut fields = Fields::of(entry.value.entries(), before);
        for key in ["name", "id"] {
            super::text(&mut fields, key);
        }
        let step = Step { id: &id, line, fields, shorthand: entry.value.text(), shared, before };
        let mut keys = step.convert(notes).keys;
        // A failure anywhere; for the others the last steps know.
        let mut depends = if kind == "failure" { ids.to_vec() } else { last.clone() };
        if kind == "exit" {
            depends.extend(ends.clone());
        }
        keys.insert("depends_on".into(), json!(depends));
        keys.insert("teardown".into(), json!(true));
        keys.insert("trigger_rule".into(), json!(rule));
        draft.tasks.insert(id.clone(), Value::Object(keys));
        ends.push(id);
    }
    for entry in field
        .value
        .entries()
        .iter()
        .filter(|entry| !["success", "failure", "exit"].contains(&entry.key.as_str()))
    {
        let line = before.saturating_add(entry.place.line);
        let what = crate::yaml::shown(&entry.key, &entry.value);
        notes.needs(
            line,
            what,
            "nothing runs at that moment",
            "make it a task: before the others, or at the end",
        );
    }
}
