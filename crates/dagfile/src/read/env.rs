//! Environment variables: names checked, values taken as they are written.

use super::fields::{Fields, item_type};
use super::identifiers::check_identifier;
use super::templates::{Template, TemplateKind};
use crate::diagnostic::Findings;
use crate::yaml::{Content, Node};

/// The variables of `env`, in the order of the file. A value is the text of its scalar: `no`,
/// `1.10` and `12:30` stay what they are.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for entry in fields.map("env", findings).unwrap_or_default() {
        if !check_identifier("a variable", entry, findings) {
            continue;
        }
        if entry.key.starts_with("FENCEPOST_") {
            let message = format!("`{}` is set by Fencepost itself", entry.key);
            findings.error(entry.key_place, "bad-name", message, "choose another name");
            continue;
        }
        match written(&entry.value) {
            Some(text) => variables.push((entry.key.clone(), text.to_owned())),
            None => item_type("env", &entry.value, "text", findings),
        }
    }
    variables
}

/// `over` laid over `under`: a variable of both keeps the place of the first and takes the value
/// of the second.
pub(super) fn overlay(
    under: Vec<(String, String)>,
    over: Vec<(String, String)>,
) -> Vec<(String, String)> {
    let mut variables = under;
    for (name, value) in over {
        match variables.iter_mut().find(|(known, _)| *known == name) {
            Some(known) => known.1 = value,
            None => variables.push((name, value)),
        }
    }
    variables
}

/// The templates of `env`.
pub(super) fn templates<'a>(fields: &Fields<'a>) -> Vec<Template<'a>> {
    let entries = fields.get("env").and_then(|field| field.entry.value.as_map());
    let template = |entry: &'a crate::yaml::Entry| Template {
        field: format!("env.{}", entry.key),
        node: &entry.value,
        kind: TemplateKind::Text,
    };
    entries.unwrap_or_default().iter().map(template).collect()
}

fn written(value: &Node) -> Option<&str> {
    match &value.content {
        Content::Scalar(scalar) => Some(&scalar.text),
        Content::List(_) | Content::Map(_) => None,
    }
}
