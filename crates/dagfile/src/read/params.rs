//! `params`: the short form `name: default` and the long one with JSON Schema keywords.

use super::expand::not_json;
use super::fields::Fields;
use super::identifiers::Identifiers;
use crate::diagnostic::{Findings, quoted};
use crate::params::{KEYWORDS, TYPES, check_schema, is_type, type_of};
use crate::suggest::did_you_mean;
use crate::yaml::Entry;
use fencepost_core::dag::Param;
use fencepost_core::params::check;
use fencepost_core::schedule::Schedule;
use serde_json::{Map, Value, json};

/// The params in the order of the file.
pub(super) fn read(
    fields: &Fields<'_>,
    schedule: &Schedule,
    findings: &mut Findings,
) -> Vec<Param> {
    let mut params = Vec::new();
    let mut names = Identifiers::of("a param");
    for entry in fields.map("params", findings).unwrap_or_default() {
        if !names.accept(entry, findings) {
            continue;
        }
        let param = match entry.value.as_map() {
            Some(keywords) => long(entry, keywords, schedule, findings),
            None => short(entry, findings),
        };
        params.extend(param);
    }
    params
}

fn short(entry: &Entry, findings: &mut Findings) -> Option<Param> {
    let default = entry.value.to_json().map_err(|place| not_json(place, findings)).ok()?;
    let schema = match type_of(&default) {
        "null" => json!({}),
        name => json!({ "type": name }),
    };
    Some(Param { name: entry.key.clone(), default, description: String::new(), schema })
}

fn long(
    entry: &Entry,
    keywords: &[Entry],
    schedule: &Schedule,
    findings: &mut Findings,
) -> Option<Param> {
    let before = findings.error_count();
    let mut schema = Map::new();
    let (mut default, mut description) = (None, String::new());
    for keyword in keywords {
        let value = keyword.value.to_json().map_err(|place| not_json(place, findings)).ok()?;
        match keyword.key.as_str() {
            "default" => default = Some((value, keyword.value.place)),
            "description" => match value.as_str() {
                Some(text) => text.clone_into(&mut description),
                None => wrong_keyword(keyword, "text", findings),
            },
            "type" => {
                check_type(keyword, &value, findings);
                schema.insert("type".into(), value);
            }
            known if KEYWORDS.contains(&known) => {
                schema.insert(known.into(), value);
            }
            _ => report_unknown(keyword, findings),
        }
    }
    if let Err(error) = check_schema(&Value::Object(schema.clone()))
        && findings.error_count() == before
    {
        let place = keywords.iter().find(|k| k.key == error.keyword).map(|k| k.value.place);
        let place = place.unwrap_or(entry.value.place);
        findings.error(place, "bad-param", error.to_string(), "");
    }
    if findings.error_count() > before {
        return None;
    }
    let schema = Value::Object(schema);
    let name = entry.key.clone();
    let Some((default, place)) = default else {
        if *schedule != Schedule::Manual && check(&Value::Null, &schema).is_err() {
            let message = format!("`{name}` has no default, and the DAG runs by schedule");
            findings.error(entry.key_place, "no-default", message, "give it a `default`");
        }
        return Some(Param { name, default: Value::Null, description, schema });
    };
    if let Err(misfit) = check(&default, &schema) {
        let message = format!("the default of `{name}` does not fit: {misfit}");
        findings.error(place, "bad-param", message, "");
        return None;
    }
    Some(Param { name, default, description, schema })
}

fn check_type(keyword: &Entry, value: &Value, findings: &mut Findings) {
    if !is_type(value) {
        let word = value.as_str().unwrap_or_default();
        let near = did_you_mean(word, TYPES.into_iter());
        let hint = if near.is_empty() { format!("one of {}", TYPES.join(", ")) } else { near };
        let message = format!("a param's type cannot be {}", keyword.value.description());
        findings.error(keyword.value.place, "bad-value", message, hint);
    }
}

fn wrong_keyword(keyword: &Entry, expected: &str, findings: &mut Findings) {
    let message =
        format!("`{}` must be {expected}, not {}", keyword.key, keyword.value.description());
    findings.error(keyword.value.place, "wrong-type", message, "");
}

fn report_unknown(keyword: &Entry, findings: &mut Findings) {
    let known = KEYWORDS.into_iter().chain(["type", "default", "description"]);
    let near = did_you_mean(&keyword.key, known);
    let hint = if near.is_empty() {
        "a mapping is the long form; write a default that is one as `default: {...}`".into()
    } else {
        near
    };
    let message = format!("unknown keyword {}", quoted(&keyword.key));
    findings.error(keyword.key_place, "unknown-key", message, hint);
}
