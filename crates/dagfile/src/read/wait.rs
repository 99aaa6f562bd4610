//! `wait`: what a deferred task waits for. The core says what is right; here it gets its place.

use super::fields::{Fields, wrong_type};
use super::templates::{Template, TemplateKind};
use crate::diagnostic::{Findings, quoted};
use crate::suggest::did_you_mean;
use crate::yaml::{Content, Node};
use fencepost_core::dag::Action;
use fencepost_core::wait::{KEYS, WaitError, Waiting};

/// The wait as it is written.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<Action> {
    let field = fields.written("wait")?;
    let node = &field.entry.value;
    let Some(entries) = node.as_map() else {
        let hint = "write {interval: 5m}, {file: PATH} or {http: URL}";
        wrong_type(field, "a mapping", hint, findings);
        return None;
    };
    let written = match node.to_json() {
        Ok(written) => written,
        Err(place) => {
            super::expand::not_json(place, findings);
            return None;
        }
    };
    let Err(error) = Waiting::check(&written) else { return Some(Action::Wait(written)) };
    let entry = entries.iter().find(|entry| error.key() == Some(entry.key.as_str()));
    match (&error, entry) {
        (WaitError::Unknown(key), Some(entry)) => {
            let near = did_you_mean(key, KEYS.iter().map(|(name, _)| *name));
            let message = format!("unknown key {}", quoted(key));
            findings.error(entry.key_place, "unknown-key", message, near);
        }
        (WaitError::Two(..), Some(entry)) => {
            let message = format!("`wait`: {error}");
            findings.error(entry.key_place, "bad-wait", message, "use two tasks");
        }
        (_, Some(entry)) => {
            let message = format!("`wait`: {error}");
            findings.error(entry.value.place, "bad-wait", message, "");
        }
        (_, None) => {
            findings.error(field.entry.key_place, "bad-wait", format!("`wait`: {error}"), "");
        }
    }
    None
}

/// Every text of a wait is a template.
pub(super) fn templates<'a>(fields: &Fields<'a>) -> Vec<Template<'a>> {
    let mut out = Vec::new();
    if let Some(field) = fields.get("wait") {
        collect("wait", &field.entry.value, TemplateKind::Text, &mut out);
    }
    out
}

/// Every text below a node.
pub(super) fn collect<'a>(
    name: &str,
    node: &'a Node,
    kind: TemplateKind,
    out: &mut Vec<Template<'a>>,
) {
    match &node.content {
        Content::Scalar(_) if node.as_text().is_some() => {
            out.push(Template { field: name.to_owned(), node, kind });
        }
        Content::Scalar(_) => {}
        Content::List(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(&format!("{name}[{index}]"), item, kind, out);
            }
        }
        Content::Map(entries) => {
            for entry in entries {
                collect(&format!("{name}.{}", entry.key), &entry.value, kind, out);
            }
        }
    }
}
