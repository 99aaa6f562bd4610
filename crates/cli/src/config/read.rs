//! The configuration file as a flat list of `section.key` with its place.

use super::keys::{KEYS, Key, SECTIONS};
use super::{ConfigError, Place};
use crate::nearest::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Most bytes of a configuration file.
const LARGEST: usize = 1 << 20;

/// A value as the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileValue {
    pub(super) key: &'static Key,
    pub(super) text: String,
    pub(super) place: Place,
}

/// Reads the file's text; all mistakes at once.
pub(super) fn read(path: &str, text: &str) -> (Vec<FileValue>, Vec<ConfigError>) {
    let mut reader = Reader { path, text, values: Vec::new(), errors: Vec::new() };
    if text.len() > LARGEST {
        reader.refuse(0, "the file is larger than 1 MiB".into(), None);
        return (reader.values, reader.errors);
    }
    match DeTable::parse(text) {
        Ok(table) => reader.sections(table.get_ref()),
        Err(error) => {
            let at = error.span().map_or(0, |span| span.start);
            reader.refuse(at, error.message().replace('\n', "; "), None);
        }
    }
    reader.errors.sort_by_key(|error| match error.place {
        Place::File { line, column, .. } => (line, column),
        Place::Flag(_) | Place::Variable(_) | Place::Default => (0, 0),
    });
    (reader.values, reader.errors)
}

struct Reader<'a> {
    path: &'a str,
    text: &'a str,
    values: Vec<FileValue>,
    errors: Vec<ConfigError>,
}

impl Reader<'_> {
    fn sections(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let (section, at) = (name.get_ref().as_ref(), name.span().start);
            if !SECTIONS.contains(&section) {
                let hint = nearest(section, SECTIONS.iter().copied());
                let hint = hint.map(|near| format!("did you mean [{near}]?"));
                self.refuse(at, format!("unknown section [{section}]"), hint);
                continue;
            }
            match value.get_ref().as_table() {
                Some(keys) => self.keys(section, keys),
                None => {
                    self.refuse(at, format!("`{section}` is a section: write [{section}]"), None);
                }
            }
        }
    }

    fn keys(&mut self, section: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let full = format!("{section}.{}", name.get_ref());
            if let Some(key) = Key::find(&full) {
                self.value(key, value);
            } else {
                let (message, hint) = unknown_key(&full);
                self.refuse(name.span().start, message, hint);
            }
        }
    }

    fn value(&mut self, key: &'static Key, value: &Spanned<DeValue<'_>>) {
        let at = value.span().start;
        let Some(text) = scalar(value.get_ref()) else {
            let message = format!("{} must be {}", key.name, key.kind.in_words());
            return self.refuse(at, message, None);
        };
        match key.kind.check(&text) {
            Ok(()) => self.values.push(FileValue { key, text, place: self.place(at) }),
            Err(wrong) => self.refuse(at, format!("{}: {wrong}", key.name), None),
        }
    }

    fn refuse(&mut self, at: usize, message: String, hint: Option<String>) {
        self.errors.push(ConfigError { place: self.place(at), message, hint });
    }

    fn place(&self, at: usize) -> Place {
        let before = self.text.get(..at).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        Place::File {
            path: self.path.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// What to say of a key that does not exist; with its section if that helps.
pub(super) fn unknown_key(full: &str) -> (String, Option<String>) {
    let last = full.rsplit('.').next().unwrap_or(full);
    let elsewhere =
        || KEYS.iter().map(|key| key.name).find(|name| name.split('.').nth(1) == Some(last));
    let near = nearest(full, KEYS.iter().map(|key| key.name)).or_else(elsewhere);
    (format!("unknown key `{full}`"), near.map(|near| format!("did you mean `{near}`?")))
}

/// A scalar, or an array of strings joined by commas, as text.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| item.get_ref().as_str());
            texts.collect::<Option<Vec<_>>>().map(|texts| texts.join(","))
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}
