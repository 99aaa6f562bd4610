//! What failures mean: `retry_policy` and the lists of exit codes.

use super::fields::{Fields, item_type, read_duration, whole_number};
use crate::diagnostic::{Findings, quoted};
use crate::suggest::did_you_mean;
use crate::yaml::{Entry, Node};
use fencepost_core::retry::{RetryAction, RetryRule};

/// The rules of `retry_policy`.
pub(super) fn policy(fields: &Fields<'_>, findings: &mut Findings) -> Vec<RetryRule> {
    let items = fields.list("retry_policy", findings).unwrap_or_default();
    items.iter().filter_map(|item| rule(item, findings)).collect()
}

/// A list of exit codes from `least` to 255.
pub(super) fn codes(
    fields: &Fields<'_>,
    name: &str,
    least: i64,
    findings: &mut Findings,
) -> Option<Vec<u8>> {
    let items = fields.list(name, findings)?;
    Some(items.iter().filter_map(|item| code(name, item, least, findings)).collect())
}

fn code(name: &str, item: &Node, least: i64, findings: &mut Findings) -> Option<u8> {
    let wrong = |_: &str, findings: &mut Findings| {
        item_type(name, item, "an exit code", findings);
    };
    let number = whole_number(item, wrong, findings)?;
    let code = u8::try_from(number).ok().filter(|code| i64::from(*code) >= least);
    if code.is_none() {
        let message = format!("{number} is no exit code for `{name}`");
        findings.error(item.place, "out-of-range", message, format!("from {least} to 255"));
    }
    code
}

const KEYS: [&str; 4] = ["exit_codes", "action", "delay", "reason"];

fn rule(item: &Node, findings: &mut Findings) -> Option<RetryRule> {
    let Some(entries) = item.as_map() else {
        item_type(
            "retry_policy",
            item,
            "a mapping such as {exit_codes: [2], action: fail}",
            findings,
        );
        return None;
    };
    let before = findings.error_count();
    for entry in entries.iter().filter(|entry| !KEYS.contains(&entry.key.as_str())) {
        let near = did_you_mean(&entry.key, KEYS.into_iter());
        let hint = if near.is_empty() { format!("one of {}", KEYS.join(", ")) } else { near };
        let message = format!("unknown key {}", quoted(&entry.key));
        findings.error(entry.key_place, "unknown-key", message, hint);
    }
    let get = |name| entries.iter().find(|entry| entry.key == name);
    let exit_codes = exit_codes(get("exit_codes"), findings);
    let delay = get("delay").and_then(|entry| read_duration("delay", &entry.value, findings));
    let reason = match get("reason").map(|entry| (entry, entry.value.as_written())) {
        Some((_, Some(text))) => text.to_owned(),
        Some((entry, None)) => {
            item_type("reason", &entry.value, "text", findings);
            String::new()
        }
        None => String::new(),
    };
    let action = get("action").map(|entry| (entry, entry.value.as_written()));
    let action = match action {
        Some((_, Some("fail"))) => Some(RetryAction::Fail),
        Some((_, Some("retry"))) => Some(RetryAction::Retry { delay }),
        Some((entry, _)) => {
            let message = format!("`action` cannot be {}", entry.value.description());
            findings.error(entry.value.place, "bad-value", message, "one of fail, retry");
            None
        }
        None => None,
    };
    if let (Some(RetryAction::Fail), Some(entry)) = (action, get("delay")) {
        let message = "a `delay` with `action: fail`";
        findings.error(entry.key_place, "bad-value", message, "leave the delay out");
    }
    if findings.error_count() == before && (get("action").is_none() || exit_codes.is_empty()) {
        let message = "a rule needs `exit_codes` and an `action`";
        findings.error(item.place, "missing-key", message, "{exit_codes: [2], action: fail}");
    }
    Some(RetryRule { exit_codes, action: action?, reason })
}

fn exit_codes(entry: Option<&Entry>, findings: &mut Findings) -> Vec<u8> {
    let Some(entry) = entry else { return Vec::new() };
    let Some(items) = entry.value.as_list() else {
        item_type("exit_codes", &entry.value, "in a list such as [2, 64]", findings);
        return Vec::new();
    };
    items.iter().filter_map(|item| code("exit_codes", item, 1, findings)).collect()
}
