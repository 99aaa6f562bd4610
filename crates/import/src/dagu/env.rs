//! Variables: constants become `env`, what a shell has to evaluate becomes lines before each script.

use crate::names::is_variable;
use crate::report::Notes;
use crate::script;
use crate::yaml::Fields;
use fencepost_dagfile::document::{Content, Node};
use serde_json::{Map, Value, json};

/// The variables of a workflow or a step.
#[derive(Debug, Default, Clone)]
pub(super) struct Env {
    pub(super) constants: Map<String, Value>,
    /// `export NAME="value"`, in their order.
    pub(super) exports: Vec<String>,
    /// `set -- ...`: what $1 and its like are.
    pub(super) arguments: Option<String>,
}

impl Env {
    /// Takes `env`: a mapping, or a list of mappings and `NAME=value`.
    pub(super) fn read(&mut self, fields: &mut Fields<'_>, before: u32, notes: &mut Notes) {
        let Some(field) = fields.take(&["env"]) else { return };
        let mut pairs = Vec::new();
        collect(field.value, &mut pairs);
        if pairs.is_empty() {
            notes.needs(field.line, field.shown(), "there are no variables in it", "write `env`");
        }
        for (name, value, line) in pairs {
            self.add(&name, &value, before.saturating_add(line), notes);
        }
    }

    pub(super) fn add(&mut self, name: &str, value: &str, line: u32, notes: &mut Notes) {
        if !is_variable(name) || name.starts_with("FENCEPOST_") {
            notes.needs(
                line,
                format!("{name}={value}"),
                "no task can have a variable of that name",
                "rename it",
            );
        } else if value.contains(['$', '`']) {
            // The shell's rules within double quotes are those by which Dagu evaluates it.
            self.exports.push(format!(
                "export {name}=\"{}\"",
                value.replace('\\', "\\\\").replace('"', "\\\"")
            ));
        } else if self.exports.is_empty() {
            self.constants.insert(name.to_owned(), json!(script::literal_value(value)));
        } else {
            // After one that is evaluated, so that the last one of a name wins.
            self.exports.push(format!("export {name}={}", script::quote(value)));
        }
    }
}

fn collect(node: &Node, pairs: &mut Vec<(String, String, u32)>) {
    match &node.content {
        Content::Scalar { text, .. } => {
            if let Some((name, value)) = text.split_once('=') {
                pairs.push((name.trim().to_owned(), value.to_owned(), node.place.line));
            }
        }
        Content::List(items) => items.iter().for_each(|item| collect(item, pairs)),
        Content::Map(entries) => {
            for entry in entries {
                let value = entry.value.text().unwrap_or_default().to_owned();
                pairs.push((entry.key.clone(), value, entry.place.line));
            }
        }
    }
}
