//! Mapped tasks: literal lists and their cross product.

use super::fields::{Fields, NOT_YET};
use super::identifiers::Identifiers;
use crate::diagnostic::Findings;
use crate::template;
use crate::yaml::{Entry, Node};
use fencepost_core::dag::INSTANCES_MAX;
use serde_json::Value;

/// The lists of `expand`, in the order of the file.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Vec<(String, Vec<Value>)> {
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
        if let Some(values) = values(entry, findings) {
            lists.push((entry.key.clone(), values));
        }
    }
    let sizes = lists.iter().map(|(_, values)| values.len() as u64);
    let instances = sizes.fold(1, u64::saturating_mul);
    if let Some(field) = fields.get("expand").filter(|_| instances > INSTANCES_MAX) {
        let message = format!("`expand` makes {instances} instances");
        let hint = format!("the most is {INSTANCES_MAX}");
        findings.error(field.entry.key_place, "too-many-instances", message, hint);
    }
    lists
}

fn values(entry: &Entry, findings: &mut Findings) -> Option<Vec<Value>> {
    let is_template = |node: &Node| node.as_text().is_some_and(|text| text.contains("{{"));
    let refuse = |node: &Node, findings: &mut Findings| {
        let message = "`expand` over a template is not supported yet";
        findings.error(node.place, NOT_YET, message, "write the list itself: [a, b, c]");
    };
    let Some(items) = entry.value.as_list() else {
        if is_template(&entry.value) {
            refuse(&entry.value, findings);
        } else {
            let message =
                format!("`{}` must be a list, not {}", entry.key, entry.value.description());
            findings.error(entry.value.place, "wrong-type", message, "write [a, b, c]");
        }
        return None;
    };
    if items.is_empty() {
        let message = format!("`{}` is an empty list, so there would be no instance", entry.key);
        findings.error(entry.value.place, "bad-value", message, "leave `expand` out, or fill it");
        return None;
    }
    if let Some(item) = items.iter().find(|item| is_template(item)) {
        refuse(item, findings);
        return None;
    }
    let values: Result<Vec<Value>, _> = items.iter().map(Node::to_json).collect();
    values.map_err(|place| not_json(place, findings)).ok()
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
