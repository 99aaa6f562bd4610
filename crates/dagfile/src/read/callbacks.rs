//! `on_..._callback` and `deadline`. The core says what is right; here it gets its place.

use super::fields::{Field, Fields, wrong_type};
use super::templates::{Template, TemplateKind};
use super::wait;
use crate::diagnostic::{Findings, Place, quoted};
use crate::keys::Level;
use crate::suggest::did_you_mean;
use crate::yaml::Node;
use fencepost_core::callback::{
    Callback, CallbackError, Callbacks, DEADLINE_KEYS, Deadline, KINDS, Occasion, check_deadline,
    keys_of,
};
use serde_json::Value;

/// The callbacks of a DAG or a task.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Callbacks {
    let mut out = Callbacks::default();
    for occasion in Occasion::ALL {
        if occasion == Occasion::Deadline {
            continue;
        }
        let Some(field) = fields.get(occasion.key()) else { continue };
        let list = list(field, &field.entry.value, findings);
        if !list.is_empty() {
            out.0.insert(occasion, list);
        }
    }
    out
}

fn list(field: Field<'_>, value: &Node, findings: &mut Findings) -> Vec<Value> {
    let Some(items) = value.as_list() else {
        let hint = "write - webhook: {url: https://...}";
        wrong_type(field, "a list of callbacks", hint, findings);
        return Vec::new();
    };
    items.iter().filter_map(|item| one(field.key.name, item, findings)).collect()
}

fn one(name: &str, item: &Node, findings: &mut Findings) -> Option<Value> {
    let written = match item.to_json() {
        Ok(written) => written,
        Err(place) => {
            super::expand::not_json(place, findings);
            return None;
        }
    };
    match Callback::check(&written) {
        Ok(()) => Some(written),
        Err(error) => {
            report(name, item, &error, findings);
            None
        }
    }
}

fn report(name: &str, item: &Node, error: &CallbackError, findings: &mut Findings) {
    let (key_place, value_place) = places(item, error.key());
    let message = format!("`{name}`: {error}");
    let kind = item.as_map().and_then(|entries| entries.first()).map(|entry| entry.key.as_str());
    match error {
        CallbackError::NoKind(kind) => {
            let near = did_you_mean(kind, KINDS.iter().map(|(known, _)| *known));
            let hint = if near.is_empty() { kinds() } else { near };
            findings.error(key_place, "unknown-key", message, hint);
        }
        CallbackError::Unknown(key) => {
            let known = keys_of(kind.unwrap_or_default());
            let near = did_you_mean(key, known.iter().copied());
            let hint = if near.is_empty() { format!("one of {}", known.join(", ")) } else { near };
            let message = format!("unknown key {}", quoted(key));
            findings.error(key_place, "unknown-key", message, hint);
        }
        CallbackError::Two(_) => {
            findings.error(key_place, "bad-callback", message, "write each as an item of its own");
        }
        CallbackError::NoObject | CallbackError::TooLarge => {
            findings.error(item.place, "bad-callback", message, kinds());
        }
        CallbackError::Bad(..) => findings.error(value_place, "bad-callback", message, ""),
    }
}

fn kinds() -> String {
    let names: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
    format!("one of {}", names.join(", "))
}

/// Where a key of a callback stands, and its value; the callback itself where there is none.
fn places(item: &Node, key: Option<&str>) -> (Place, Place) {
    let outer = item.as_map().unwrap_or_default();
    let inner = outer.iter().filter_map(|entry| entry.value.as_map()).flatten();
    let found = inner.chain(outer).find(|entry| Some(entry.key.as_str()) == key);
    let kind = outer.first().map_or(item.place, |entry| entry.key_place);
    found.map_or((kind, kind), |entry| (entry.key_place, entry.value.place))
}

/// `deadline`.
pub(super) fn deadline(fields: &Fields<'_>, findings: &mut Findings) -> Option<Deadline> {
    let field = fields.get("deadline")?;
    let node = &field.entry.value;
    let Some(entries) = node.as_map() else {
        let hint = "write {at: \"07:30\", callback: [...]} or {after: 2h, callback: [...]}";
        wrong_type(field, "a mapping", hint, findings);
        return None;
    };
    let written = node.to_json().map_err(|place| super::expand::not_json(place, findings)).ok()?;
    let when = match check_deadline(&written) {
        Ok(when) => when,
        Err(error) => {
            let entry = entries.iter().find(|entry| Some(entry.key.as_str()) == error.key());
            let place = entry.map_or(field.entry.key_place, |entry| entry.value.place);
            if let (CallbackError::Unknown(key), Some(entry)) = (&error, entry) {
                let near = did_you_mean(key, DEADLINE_KEYS.iter().map(|(known, _)| *known));
                let message = format!("unknown key {}", quoted(key));
                findings.error(entry.key_place, "unknown-key", message, near);
            } else {
                findings.error(place, "bad-callback", format!("`deadline`: {error}"), "");
            }
            return None;
        }
    };
    let called = entries.iter().find(|entry| entry.key == "callback")?;
    let callbacks = list(field, &called.value, findings);
    Some(Deadline { when, callbacks })
}

/// Every text of a callback is a template.
pub(super) fn templates<'a>(fields: &Fields<'a>, level: Level) -> Vec<Template<'a>> {
    let mut out = Vec::new();
    for occasion in Occasion::ALL {
        if let Some(field) = fields.get(occasion.key()) {
            // A run's callbacks speak of no task.
            let about_runs = level == Level::Dag && occasion.is_of_runs();
            let kind = if about_runs { TemplateKind::OfRun } else { TemplateKind::Callback };
            let called = match occasion {
                Occasion::Deadline => {
                    let entries = field.entry.value.as_map().unwrap_or_default();
                    let called = entries.iter().find(|entry| entry.key == "callback");
                    called.map(|entry| &entry.value)
                }
                Occasion::Success
                | Occasion::Failure
                | Occasion::Retry
                | Occasion::Lost
                | Occasion::Skipped => Some(&field.entry.value),
            };
            if let Some(called) = called {
                wait::collect(occasion.key(), called, kind, &mut out);
            }
        }
    }
    out
}
