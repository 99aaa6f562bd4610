//! Names that become part of environment variables and of template expressions.

use crate::diagnostic::{Findings, quoted};
use crate::yaml::Entry;
use std::collections::BTreeMap;

/// The names of one mapping as they are read.
pub(super) struct Identifiers<'a> {
    what: &'static str,
    /// By the form that they take in a variable's name.
    seen: BTreeMap<String, &'a str>,
}

impl<'a> Identifiers<'a> {
    /// For names of that kind: `a param`.
    pub(super) fn of(what: &'static str) -> Self {
        Self { what, seen: BTreeMap::new() }
    }

    /// Whether a key is a name of its own; else reports it.
    pub(super) fn accept(&mut self, entry: &'a Entry, findings: &mut Findings) -> bool {
        if !check_identifier(self.what, entry, findings) {
            return false;
        }
        let Some(first) = self.seen.insert(entry.key.to_ascii_uppercase(), &entry.key) else {
            return true;
        };
        let message = format!("`{first}` and `{}` would be one environment variable", entry.key);
        findings.error(entry.key_place, "bad-name", message, "choose another name");
        false
    }
}

/// Whether a key is an identifier; else reports it.
pub(super) fn check_identifier(what: &str, entry: &Entry, findings: &mut Findings) -> bool {
    if is_identifier(&entry.key) {
        return true;
    }
    let message = format!("{} is not a name for {what}", quoted(&entry.key));
    let hint = "letters, digits and _, not beginning with a digit";
    findings.error(entry.key_place, "bad-name", message, hint);
    false
}

fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.len() <= 200
}
