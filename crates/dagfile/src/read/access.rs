//! `secrets` and `connections`: what tasks are given of what the installation keeps.

use super::fields::{Fields, item_type};
use super::identifiers::check_identifier;
use crate::diagnostic::{Findings, quoted};
use crate::yaml::Entry;
use fencepost_core::dag::Access;
use fencepost_core::kept::{SecretSource, SourceError};
use std::collections::BTreeMap;

/// Backends that are planned.
const LATER: [&str; 1] = ["vault"];

/// What the two fields give.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Access {
    let mut access = Access::default();
    for entry in fields.map("secrets", findings).unwrap_or_default() {
        access.secrets.extend(secret(entry, fields, findings));
    }
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for item in fields.list("connections", findings).unwrap_or_default() {
        let Some(name) = item.as_written() else {
            item_type("connections", item, "the name of a connection", findings);
            continue;
        };
        if !is_name(name) {
            let message = format!("a connection cannot be {}", quoted(name));
            findings.error(item.place, "bad-name", message, "see  fencepost connections list");
        } else if let Some(first) = variables.insert(variable(name), name.to_owned()) {
            let message = format!("`{first}` and `{name}` would be one environment variable");
            findings.error(item.place, "bad-name", message, "leave one of them out");
        } else {
            access.connections.push(name.to_owned());
        }
    }
    access
}

fn secret(
    entry: &Entry,
    fields: &Fields<'_>,
    findings: &mut Findings,
) -> Option<(String, SecretSource)> {
    if !check_identifier("a variable", entry, findings) {
        return None;
    }
    let name = entry.key.as_str();
    let env = fields.get("env").and_then(|field| field.entry.value.as_map());
    if name.starts_with("FENCEPOST_") {
        let message = format!("`{name}` is set by Fencepost itself");
        findings.error(entry.key_place, "bad-name", message, "choose another name");
        return None;
    }
    if env.is_some_and(|env| env.iter().any(|other| other.key == name)) {
        let message = format!("`{name}` is in `env` and in `secrets`");
        findings.error(entry.key_place, "bad-name", message, "leave one of them out");
        return None;
    }
    let Some(text) = entry.value.as_text() else {
        item_type("secrets", &entry.value, "text such as store:NAME", findings);
        return None;
    };
    match SecretSource::parse(text) {
        Ok(source) => Some((name.to_owned(), source)),
        Err(error) => {
            report(entry, &error, findings);
            None
        }
    }
}

/// The text itself is not repeated: somebody may have written the secret there.
fn report(entry: &Entry, error: &SourceError, findings: &mut Findings) {
    let (name, place) = (&entry.key, entry.value.place);
    const HINT: &str = "write store:NAME, env:NAME, file:/PATH or exec:COMMAND";
    if let SourceError::Unknown(backend) = error
        && LATER.contains(&backend.as_str())
    {
        let message = format!("`{backend}:` in `secrets` is not supported yet");
        return findings.error(entry.key_place, "not-supported-yet", message, HINT);
    }
    let message = match error {
        // What comes before a colon may be the beginning of a secret, too.
        SourceError::Unknown(_) => format!("secret `{name}`: it begins with no known backend"),
        SourceError::NoBackend
        | SourceError::Nothing(_)
        | SourceError::Relative
        | SourceError::Own => format!("secret `{name}`: {error}"),
    };
    findings.error(place, "bad-value", message, HINT);
}

fn is_name(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (1..=200).contains(&name.len()) && name.chars().all(is_letter)
}

/// What its variables are called.
fn variable(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}
