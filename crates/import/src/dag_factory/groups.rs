//! Task groups: dag-factory names the parent at each, ours stand in each other.

use super::{args, by_name, name, object};
use crate::report::Notes;
use crate::yaml::{Field, Fields};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A group as dag-factory has it.
struct Group {
    parent: Option<String>,
    is_prefix: bool,
    /// Names of tasks and groups.
    dependencies: Vec<String>,
    keys: Map<String, Value>,
}

/// The groups of a DAG by the names that dag-factory gives them.
pub(super) struct Tree {
    groups: BTreeMap<String, Group>,
    order: Vec<String>,
}

impl Tree {
    pub(super) fn read(field: Option<Field<'_>>, before: u32, notes: &mut Notes) -> Self {
        let mut tree = Self { groups: BTreeMap::new(), order: Vec::new() };
        let found =
            field.map(|field| by_name(&field, "group_name", before, notes)).unwrap_or_default();
        let known: Vec<String> = found.iter().map(|(name, ..)| name.clone()).collect();
        for (name, _, fields) in found {
            let group = group(&name, before, fields, &known, notes);
            tree.order.push(name.clone());
            tree.groups.insert(name, group);
        }
        tree.cut_circles(notes);
        tree
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.groups.contains_key(name)
    }

    /// A parent's parent that is the group itself.
    fn cut_circles(&mut self, notes: &mut Notes) {
        for name in self.order.clone() {
            if self.path(&name).is_none() {
                let why = "its parents lead back to it; it is written without a parent";
                notes.needs(1, &name, why, "dag-factory refuses it too; mend it");
                if let Some(group) = self.groups.get_mut(&name) {
                    group.parent = None;
                }
            }
        }
    }

    /// The groups that lead to one, the outermost first, with it; `None` if they go in a circle.
    fn path(&self, name: &str) -> Option<Vec<&Group>> {
        let mut path = Vec::new();
        let mut at = Some(name);
        while let Some(group) = at.and_then(|name| self.groups.get(name)) {
            if path.len() > self.groups.len() {
                return None;
            }
            path.push(group);
            at = group.parent.as_deref();
        }
        path.reverse();
        Some(path)
    }

    fn names(&self, of: &str) -> Vec<String> {
        let mut names = vec![of.to_owned()];
        while let Some(parent) = names.last().and_then(|name| self.groups.get(name)?.parent.clone())
        {
            names.push(parent);
        }
        names.reverse();
        names
    }

    /// The full id of something in a group.
    pub(super) fn id(&self, group: Option<&str>, own: &str) -> String {
        let prefix = group.and_then(|group| {
            let inner = self.groups.get(group)?;
            if inner.is_prefix { Some(self.group_id(group)) } else { None }
        });
        prefix.map_or_else(|| name(own), |prefix| format!("{prefix}.{}", name(own)))
    }

    /// The full id of a group.
    pub(super) fn group_id(&self, group: &str) -> String {
        let parent = self.groups.get(group).and_then(|group| group.parent.as_deref());
        self.id(parent, group)
    }

    /// The groups as keys of a DAG file, each with its tasks. `resolve` gives the full id of a name.
    pub(super) fn write(
        &self,
        tasks: &mut BTreeMap<String, Map<String, Value>>,
        resolve: &dyn Fn(&str) -> String,
    ) -> Map<String, Value> {
        let mut out = Map::new();
        for group_name in &self.order {
            let Some(group) = self.groups.get(group_name) else { continue };
            let mut keys = group.keys.clone();
            let dependencies: Vec<String> =
                group.dependencies.iter().map(|name| resolve(name)).collect();
            if !dependencies.is_empty() {
                keys.insert("depends_on".into(), json!(dependencies));
            }
            if let Some(tasks) = tasks.remove(group_name).filter(|tasks| !tasks.is_empty()) {
                keys.insert("tasks".into(), object(tasks));
            } else if !self.groups.values().any(|other| other.parent.as_ref() == Some(group_name)) {
                // What leads to an empty group leads through it.
                keys.insert("tasks".into(), json!({ "empty": { "noop": true } }));
            }
            place(&mut out, &self.names(group_name), keys);
        }
        out
    }
}

/// Puts a group where its path leads.
fn place(out: &mut Map<String, Value>, path: &[String], keys: Map<String, Value>) {
    let Some((first, rest)) = path.split_first() else { return };
    let entry = out.entry(name(first)).or_insert_with(|| json!({}));
    let Some(group) = entry.as_object_mut() else { return };
    if rest.is_empty() {
        // Its own groups may be there already.
        let inner = group.remove("task_groups");
        *group = keys;
        group.extend(inner.map(|inner| ("task_groups".to_owned(), inner)));
        return;
    }
    let inner = group.entry("task_groups").or_insert_with(|| json!({}));
    if let Some(inner) = inner.as_object_mut() {
        place(inner, rest, keys);
    }
}

fn group(
    name: &str,
    before: u32,
    mut fields: Fields<'_>,
    known: &[String],
    notes: &mut Notes,
) -> Group {
    let mut keys = Map::new();
    if let Some(tooltip) =
        fields.take(&["tooltip"]).and_then(|field| field.value.text().map(str::to_owned))
    {
        keys.insert("tooltip".into(), json!(tooltip));
    }
    let is_prefix = fields.take(&["prefix_group_id"]).is_none_or(|field| field.is_true());
    if !is_prefix {
        keys.insert("prefix_group_id".into(), json!(false));
    }
    let parent = fields.take(&["parent_group_name"]).and_then(|field| {
        let parent = field.value.text().unwrap_or_default().to_owned();
        if known.contains(&parent) {
            return Some(parent);
        }
        notes.needs(
            field.line,
            field.shown(),
            "there is no such group",
            "dag-factory refuses it too; mend it",
        );
        None
    });
    if let Some(field) = fields.take(&["default_args"]) {
        let mut own = Fields::of(field.value.entries(), before);
        let mut shared = Map::new();
        args::read(&mut own, &mut shared, notes);
        args::rest(own, notes);
        if !shared.is_empty() {
            keys.insert("default_args".into(), object(shared));
        }
    }
    let dependencies =
        fields.take(&["dependencies"]).map(|field| field.texts()).unwrap_or_default();
    for field in fields.rest() {
        match field.key {
            "ui_color" | "ui_fgcolor" | "add_suffix_on_collision" | "group_id" => {
                notes.ignored(field.line, field.shown(), "it changes nothing here");
            }
            _ => notes.needs(
                field.line,
                field.shown(),
                format!("no key of a task group is like it (`{name}`)"),
                "look whether its tasks depend on it",
            ),
        }
    }
    Group { parent, is_prefix, dependencies, keys }
}
