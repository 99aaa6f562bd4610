//! How a line of the journal looks.

use fencepost_core::time::Timestamp;
use fencepost_store::query::event::Event;
use serde_json::{Map, Value, json};

/// A line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) at: Timestamp,
    pub(super) level: &'static str,
    pub(super) role: &'static str,
    pub(super) kind: &'a str,
    pub(super) text: &'a str,
    pub(super) fields: Map<String, Value>,
}

impl Line<'_> {
    /// For people: one line, whatever the texts contain.
    pub(super) fn text(&self) -> String {
        let Self { at, level, role, kind, text, fields } = self;
        let mut line = format!("{at} {level:5} {role} {kind}");
        if !text.is_empty() {
            line += &format!(": {}", plain(text));
        }
        for (place, (name, value)) in fields.iter().enumerate() {
            let gap = if place == 0 { "  " } else { " " };
            let value = value.as_str().map_or_else(|| value.to_string(), plain);
            line += &format!("{gap}{name}={value}");
        }
        line + "\n"
    }

    /// For machines.
    pub(super) fn json(mut self) -> String {
        let mut line = Map::new();
        line.insert("at".into(), self.at.to_string().into());
        line.insert("level".into(), self.level.into());
        line.insert("role".into(), self.role.into());
        line.insert("kind".into(), self.kind.into());
        line.insert("message".into(), self.text.into());
        line.append(&mut self.fields);
        Value::Object(line).to_string() + "\n"
    }
}

/// Control characters would end a line, or paint a terminal.
fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
                .chars()
                .collect::<Vec<_>>()
        })
        .collect()
}

/// What a line of the log says beside its reason.
pub(super) fn fields(event: &Event) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.into(), value);
        }
    };
    add("actor", (!event.actor.is_empty()).then(|| json!(event.actor)));
    add("dag_id", event.dag_id.as_ref().map(|dag| json!(dag)));
    add("task_id", event.task_id.as_ref().map(|task| json!(task)));
    add("token", event.token.map(|token| json!(token.to_string())));
    let known = |key: &str| event.evidence.as_ref().map(|known| known[key].clone());
    add("evidence", known("kind").filter(|kind| !kind.is_null()));
    for key in ["job", "worker", "host", "incident", "epoch", "pool", "rate"] {
        add(key, known(key).filter(|value| !value.is_null()));
    }
    add("to", event.to.map(|to| json!(to)));
    fields
}
