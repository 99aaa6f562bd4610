//! YAML files of other tools: documents, fields that are looked at one by one, spans of time.

use crate::report::Notes;
use fencepost_dagfile::document::{self, Content, Entry, Node};

/// The documents of a text, each with the number of lines before it. Its mistakes are noted.
pub(crate) fn documents(text: &str, notes: &mut Notes) -> Vec<(u32, Node)> {
    let mut parts: Vec<(u32, String)> = vec![(0, String::new())];
    for (number, line) in (1_u32..).zip(text.lines()) {
        let is_end = line == "---" || line.starts_with("--- ") || line == "...";
        if is_end {
            parts.push((number, line.strip_prefix("---").unwrap_or_default().to_owned() + "\n"));
        } else if let Some((_, part)) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    let mut found = Vec::new();
    for (before, part) in parts {
        match document::read(&part) {
            Ok(node) if node.is_null() => {}
            Ok(node) => found.push((before, node)),
            Err(mistakes) => {
                for mistake in mistakes {
                    notes.unreadable(
                        before.saturating_add(mistake.line),
                        mistake.message,
                        mistake.hint,
                    );
                }
            }
        }
    }
    found
}

/// The entries of a mapping; what nobody took is told at the end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields<'a> {
    left: Vec<(&'a str, u32, &'a Node)>,
}

/// A field with its line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) key: &'a str,
    pub(crate) line: u32,
    pub(crate) value: &'a Node,
}

impl<'a> Fields<'a> {
    /// Those of entries; null counts as not there. `before`: lines before the document.
    pub(crate) fn of(entries: &'a [Entry], before: u32) -> Self {
        let field = |entry: &'a Entry| {
            (entry.key.as_str(), before.saturating_add(entry.place.line), &entry.value)
        };
        Self { left: entries.iter().filter(|entry| !entry.value.is_null()).map(field).collect() }
    }

    /// With those of other entries behind them.
    pub(crate) fn and(mut self, entries: impl Iterator<Item = &'a Entry>, before: u32) -> Self {
        let field = |entry: &'a Entry| {
            (entry.key.as_str(), before.saturating_add(entry.place.line), &entry.value)
        };
        self.left.extend(entries.filter(|entry| !entry.value.is_null()).map(field));
        self
    }

    /// Takes a field, under the first of its names that is there.
    pub(crate) fn take(&mut self, names: &[&str]) -> Option<Field<'a>> {
        let found =
            names.iter().find_map(|name| self.left.iter().position(|(key, ..)| key == name));
        let (key, line, value) = self.left.remove(found?);
        Some(Field { key, line, value })
    }

    /// What is left, in the order of the file.
    pub(crate) fn rest(self) -> impl Iterator<Item = Field<'a>> {
        self.left.into_iter().map(|(key, line, value)| Field { key, line, value })
    }
}

impl Field<'_> {
    /// `key: value` for the report.
    pub(crate) fn shown(&self) -> String {
        shown(self.key, self.value)
    }

    /// Whether it says yes, in YAML 1.1 or 1.2.
    pub(crate) fn is_true(&self) -> bool {
        let text = self.value.text().unwrap_or_default().to_ascii_lowercase();
        ["true", "yes", "on", "1"].contains(&text.as_str())
    }

    /// Text items of a list, of a single value, or of a list in a text.
    pub(crate) fn texts(&self) -> Vec<String> {
        match &self.value.content {
            Content::List(items) => {
                items.iter().filter_map(|item| item.text().map(str::to_owned)).collect()
            }
            Content::Scalar { text, .. } => vec![text.clone()],
            Content::Map(_) => Vec::new(),
        }
    }
}

/// `key: value` for the report.
pub(crate) fn shown(key: &str, value: &Node) -> String {
    let json = value.to_json();
    json.as_str().map_or_else(|| format!("{key}: {json}"), |text| format!("{key}: {text}"))
}

/// Whole seconds as a duration of DAG files.
pub(crate) fn seconds(seconds: u64) -> String {
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let parts = [(hours, 'h'), (minutes, 'm'), (rest, 's')];
    let given = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}"));
    let text = given.collect::<Vec<_>>().concat();
    if text.is_empty() { "0s".into() } else { text }
}
