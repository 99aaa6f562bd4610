//! What a step may take, how often it is tried, and what goes on after it.

use super::super::script::Forgiven;
use super::{Done, Step};
use crate::report::Notes;
use crate::yaml::seconds;
use fencepost_dagfile::document::{Content, Node};
use serde_json::{Map, Value, json};

impl Step<'_, '_> {
    /// `timeoutSec`, `retryPolicy`.
    pub(super) fn limits(&mut self, keys: &mut Map<String, Value>, notes: &mut Notes) {
        if let Some(field) = self.fields.take(&["timeout_sec"])
            && let Some(span) =
                field.value.text().and_then(|text| text.parse::<u64>().ok()).filter(|n| *n > 0)
        {
            keys.insert("execution_timeout".into(), json!(seconds(span)));
        }
        let Some(field) = self.fields.take(&["retry_policy"]) else { return };
        let number = |key: &str| {
            field.value.get(key).and_then(Node::text).and_then(|text| text.parse::<u64>().ok())
        };
        let Some(limit) = number("limit").filter(|limit| *limit <= 1_000_000) else {
            notes.needs(field.line, field.shown(), "its limit is no number", "write `retries`");
            return;
        };
        keys.insert("retries".into(), json!(limit));
        keys.insert("retry_delay".into(), json!(seconds(number("interval_sec").unwrap_or(0))));
        if let Some(backoff) =
            field.value.get("backoff").and_then(Node::text).filter(|text| *text != "false")
        {
            keys.insert("retry_exponential_backoff".into(), json!(true));
            if !["true", "2", "2.0"].contains(&backoff) {
                notes.needs(
                    field.line,
                    format!("backoff: {backoff}"),
                    "the wait doubles each time",
                    "choose another `retry_delay`",
                );
            }
        }
        if let Some(most) = number("max_interval_sec").filter(|n| *n > 0) {
            keys.insert("max_retry_delay".into(), json!(seconds(most)));
        }
        let codes = |node: &Node| {
            node.items()
                .iter()
                .filter_map(|item| item.text()?.parse::<u8>().ok())
                .filter(|code| *code > 0)
                .collect::<Vec<u8>>()
        };
        if let Some(codes) =
            field.value.get("exit_code").map(codes).filter(|codes| !codes.is_empty())
        {
            let others: Vec<u8> = (1..=255).filter(|code| !codes.contains(code)).collect();
            keys.insert("retry_policy".into(), json!([{ "exit_codes": others, "action": "fail", "reason": "not among the exit codes that are tried again" }]));
        }
    }

    /// `continueOn`.
    pub(super) fn goes(&mut self, done: &mut Done, notes: &mut Notes) {
        let Some(field) = self.fields.take(&["continue_on"]) else { return };
        let is = |key: &str| field.value.get(key).and_then(Node::text) == Some("true");
        let word = field.value.text();
        done.goes.after_failure = is("failure") || word == Some("failed");
        done.goes.after_skip = is("skipped") || word == Some("skipped");
        let numbers = |node: &Node| match &node.content {
            Content::List(items) => {
                items.iter().filter_map(|item| item.text()?.parse::<u8>().ok()).collect()
            }
            Content::Scalar { text, .. } => text.parse::<u8>().into_iter().collect(),
            Content::Map(_) => Vec::new(),
        };
        let codes: Vec<u8> = field.value.get("exit_code").map(numbers).unwrap_or_default();
        let codes: Vec<u8> = codes.into_iter().filter(|code| *code != 0).collect();
        if is("mark_success") && done.goes.after_failure {
            done.goes.forgiven = Some(Forgiven::All);
            done.goes.after_failure = false;
        } else if !codes.is_empty() {
            done.goes.forgiven = Some(Forgiven::Codes(codes));
            if !is("mark_success") {
                notes.converted(
                    field.line,
                    field.shown(),
                    "those exit codes are success here, where Dagu shows a failure and goes on",
                );
            }
        }
        if field.value.get("output").is_some() {
            notes.needs(
                field.line,
                field.shown(),
                "what a step prints decides nothing",
                "test it in the script",
            );
        }
    }
}
