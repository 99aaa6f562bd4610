//! The entries of a mapping: keys, repeats, merge keys.

use super::{Content, Entry, Node};
use crate::diagnostic::{Findings, Place, quoted};
use std::collections::{BTreeMap, BTreeSet};

/// A key that waits for its value; without a name if it is not text.
pub(super) struct Key {
    name: Option<String>,
    place: Place,
    is_plain: bool,
    is_mapping: bool,
}

impl Key {
    /// The key that a node is, in a file.
    pub(super) fn of(node: Node, file: &str) -> Self {
        let Content::Scalar(scalar) = node.content else {
            let is_mapping = matches!(node.content, Content::Map(_));
            return Self { name: None, place: node.place, is_plain: false, is_mapping };
        };
        let first = file.as_bytes().get(scalar.source.start);
        let is_plain = !matches!(first, Some(b'"' | b'\''));
        Self { name: Some(scalar.text), place: node.place, is_plain, is_mapping: false }
    }
}

/// Adds a key with its value, unless the key is no text or was there.
pub(super) fn add_entry(
    entries: &mut Vec<Entry>,
    lines: &mut BTreeMap<String, u32>,
    (key, value): (Key, Node),
    findings: &mut Findings,
) {
    let Some(name) = key.name else {
        if key.is_mapping {
            // `{{`: reported when the outer mapping ends.
            return;
        }
        let message = "a key must be text, not a list or a mapping";
        findings.error(key.place, "bad-key", message, "write it on one line, quoted");
        return;
    };
    if let Some(first) = lines.insert(name.clone(), key.place.line) {
        lines.insert(name.clone(), first);
        let message = format!("{} is given twice", quoted(&name));
        findings.error(key.place, "duplicate-key", message, format!("it is first on line {first}"));
        return;
    }
    entries.push(Entry { key: name, key_place: key.place, value, is_plain: key.is_plain });
}

/// Puts in what `<<` brings; a key's own value goes before a merged one.
pub(super) fn merge(mut entries: Vec<Entry>, findings: &mut Findings) -> Vec<Entry> {
    let Some(at) = entries.iter().position(|entry| entry.is_plain && entry.key == "<<") else {
        return entries;
    };
    let merged = entries.remove(at);
    let (place, bases) = match merged.value.content {
        Content::List(items) => (merged.value.place, items),
        Content::Scalar(_) | Content::Map(_) => (merged.value.place, vec![merged.value]),
    };
    let mut own: BTreeSet<String> = entries.iter().map(|entry| entry.key.clone()).collect();
    for base in bases {
        let Content::Map(more) = base.content else {
            let message = format!("`<<` merges a mapping, not {}", base.description());
            findings.error(place, "bad-merge", message, "write `<<: *anchor`");
            continue;
        };
        for entry in more {
            if own.insert(entry.key.clone()) {
                entries.push(entry);
            }
        }
    }
    entries
}
