//! Mapped tasks: lists, templates that give lists, and their cross product.

use super::fields::Fields;
use super::identifiers::Identifiers;
use crate::diagnostic::Findings;
use crate::template;
use crate::yaml::{Entry, Node};
use fencepost_core::dag::{Elements, INSTANCES_MAX};
use serde_json::Value;

/// What `expand` maps over, in the order of the file.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Vec<(String, Elements)> {
    let mut lists = Vec::new();
    let mut names = Identifiers::of("a mapped value");
    for entry in fields.map("expand", findings).unwrap_or_default() {
        if !names.accept(entry, findings) {
            continue;
        }
        if template::is_top_level(&entry.key) {
            let message = format!("`{}` has a meaning in templates already", entry.key);
            findings.error(entry.key_place, "bad-name", message, "choose another name");
            continue;
        }
        if let Some(elements) = elements(entry, findings) {
            lists.push((entry.key.clone(), elements));
        }
    }
    let size = |elements: &Elements| match elements {
        Elements::List(values) => values.len() as u64,
        Elements::Template(_) => 1,
    };
    let instances = lists.iter().fold(1_u64, |n, (_, of)| n.saturating_mul(size(of)));
    if let Some(field) = fields.get("expand").filter(|_| instances > INSTANCES_MAX) {
        let message = format!("`expand` makes {instances} instances");
        let hint = format!("the most is {INSTANCES_MAX}");
        findings.error(field.entry.key_place, "too-many-instances", message, hint);
    }
    lists
}

fn elements(entry: &Entry, findings: &mut Findings) -> Option<Elements> {
    let is_template = |node: &Node| node.as_text().is_some_and(|text| text.contains("{{"));
    let Some(items) = entry.value.as_list() else {
        if let Some(text) = entry.value.as_text().filter(|text| text.contains("{{")) {
            // Text around it would make a text of the list.
            if template::is_expression(text) {
                return Some(Elements::Template(text.to_owned()));
            }
            let message = format!("`{}` must be one template and nothing else", entry.key);
            let hint = "write \"{{ params.regions }}\" or \"{{ outputs.task.name }}\"";
            findings.error(entry.value.place, "bad-value", message, hint);
            return None;
        }
        let message = format!("`{}` must be a list, not {}", entry.key, entry.value.description());
        findings.error(entry.value.place, "wrong-type", message, "write [a, b, c]");
        return None;
    };
    if items.is_empty() {
        let message = format!("`{}` is an empty list, so there would be no instance", entry.key);
        findings.error(entry.value.place, "bad-value", message, "leave `expand` out, or fill it");
        return None;
    }
    if let Some(item) = items.iter().find(|item| is_template(item)) {
        let message = "an element of a list cannot be a template";
        let hint = "write one template that gives the whole list: \"{{ [a, b] }}\"";
        findings.error(item.place, "bad-value", message, hint);
        return None;
    }
    let values: Result<Vec<Value>, _> = items.iter().map(Node::to_json).collect();
    values.map_err(|place| not_json(place, findings)).ok().map(Elements::List)
}

/// A number that JSON has no word for.
pub(super) fn not_json(place: crate::diagnostic::Place, findings: &mut Findings) {
    let message = "this number cannot be passed on";
    findings.error(
        place,
        "bad-value",
        message,
        "not .inf, .nan or beyond 64 bits; quote it as text",
    );
}
