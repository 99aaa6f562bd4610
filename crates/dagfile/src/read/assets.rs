//! Assets: `inlets`, `outlets`, and the condition of `schedule: {assets: ...}`.

use super::fields::{Fields, item_type};
use crate::diagnostic::{Findings, quoted};
use crate::suggest::did_you_mean;
use crate::yaml::{Entry, Node};
use fencepost_core::asset::{Condition, check_name};

const WORDS: [&str; 2] = ["all", "any"];

/// The assets of `inlets` or `outlets`, in the order of the file.
pub(super) fn names(fields: &Fields<'_>, key: &str, findings: &mut Findings) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for item in fields.list(key, findings).unwrap_or_default() {
        let Some(name) = name(key, item, findings) else { continue };
        if names.contains(&name) {
            let message = format!("{} is in `{key}` twice", quoted(&name));
            findings.error(item.place, "bad-value", message, "leave one of them out");
        } else {
            names.push(name);
        }
    }
    names
}

fn name(key: &str, item: &Node, findings: &mut Findings) -> Option<String> {
    let Some(text) = item.as_text() else {
        item_type(key, item, "the name or URI of an asset", findings);
        return None;
    };
    if let Err(error) = check_name(text) {
        findings.error(
            item.place,
            "bad-name",
            error.to_string(),
            "such as orders or s3://sales/orders",
        );
        return None;
    }
    Some(text.to_owned())
}

/// `[a, b]`: all of them; `{all: [...]}` and `{any: [...]}`, within each other as well.
pub(super) fn condition(value: &Node, findings: &mut Findings) -> Option<Condition> {
    if let Some(entries) = value.as_map() {
        return of_map(value, entries, findings);
    }
    match value.as_list() {
        Some(items) => parts(value, items, findings).map(Condition::All),
        None => name("assets", value, findings).map(Condition::Asset),
    }
}

fn of_map(value: &Node, entries: &[Entry], findings: &mut Findings) -> Option<Condition> {
    const FORM: &str = "write {all: [a, b]} or {any: [a, b]}";
    let [entry] = entries else {
        let message = "a condition over assets has one key, `all` or `any`";
        findings.error(value.place, "bad-value", message, FORM);
        return None;
    };
    let of: fn(Vec<Condition>) -> Condition = match entry.key.as_str() {
        "all" => Condition::All,
        "any" => Condition::Any,
        other => {
            let hint = match other {
                "and" | "AND" | "&" => "did you mean `all`?".to_owned(),
                "or" | "OR" | "|" => "did you mean `any`?".to_owned(),
                _ => did_you_mean(other, WORDS.into_iter()),
            };
            let hint = if hint.is_empty() { FORM.to_owned() } else { hint };
            let message = format!("unknown key {}", quoted(other));
            findings.error(entry.key_place, "unknown-key", message, hint);
            return None;
        }
    };
    let Some(items) = entry.value.as_list() else {
        item_type(&entry.key, &entry.value, "a list of assets", findings);
        return None;
    };
    parts(&entry.value, items, findings).map(of)
}

fn parts(list: &Node, items: &[Node], findings: &mut Findings) -> Option<Vec<Condition>> {
    if items.is_empty() {
        let hint = "name at least one, or write schedule: null";
        findings.error(list.place, "bad-value", "a condition over no assets", hint);
        return None;
    }
    let before = findings.error_count();
    let parts = items.iter().filter_map(|item| condition(item, findings)).collect();
    (findings.error_count() == before).then_some(parts)
}
