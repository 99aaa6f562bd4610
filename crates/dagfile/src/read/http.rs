//! `http`: the request of a task. The core says what is right; here it gets its place.

use super::fields::Fields;
use super::templates::{Template, TemplateKind};
use crate::diagnostic::{Findings, quoted};
use crate::suggest::did_you_mean;
use fencepost_core::dag::Action;
use fencepost_core::http_task::{HttpTaskError, KEYS, check};

/// The request as it is written.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<Action> {
    let field = fields.written("http")?;
    let node = &field.entry.value;
    let written = match node.to_json() {
        Ok(written) => written,
        Err(place) => {
            super::expand::not_json(place, findings);
            return None;
        }
    };
    let Err(error) = check(&written) else { return Some(Action::Http(written)) };
    let entries = node.as_map().unwrap_or_default();
    let entry = entries.iter().find(|entry| error.key() == Some(entry.key.as_str()));
    match (&error, entry) {
        (HttpTaskError::Unknown(key), Some(entry)) => {
            let near = did_you_mean(key, KEYS.iter().map(|(name, _)| *name));
            let message = format!("unknown key {}", quoted(key));
            findings.error(entry.key_place, "unknown-key", message, near);
        }
        (_, Some(entry)) => {
            findings.error(entry.value.place, "bad-http", format!("`http`: {error}"), "");
        }
        (_, None) => {
            let hint = "write http: https://host/path, or {url: ..., json: {...}}";
            findings.error(field.entry.value.place, "bad-http", format!("`http`: {error}"), hint);
        }
    }
    None
}

/// Every text of it is a template.
pub(super) fn templates<'a>(fields: &Fields<'a>) -> Vec<Template<'a>> {
    let mut out = Vec::new();
    if let Some(field) = fields.get("http") {
        super::wait::collect("http", &field.entry.value, TemplateKind::Text, &mut out);
    }
    out
}
