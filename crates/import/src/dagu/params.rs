//! Parameters: named ones become params, and variables of every task, as Dagu has them.

use super::env::Env;
use crate::dag::Draft;
use crate::names::is_variable;
use crate::report::Notes;
use crate::yaml::Fields;
use fencepost_dagfile::document::{Content, Node};
use serde_json::{Map, Value, json};

/// Takes `params`.
pub(super) fn read(fields: &mut Fields<'_>, draft: &mut Draft, env: &mut Env, notes: &mut Notes) {
    let Some(field) = fields.take(&["params"]) else { return };
    let mut found: Vec<(String, Value)> = Vec::new();
    let mut odd: Vec<String> = Vec::new();
    collect(field.value, &mut found, &mut odd);
    let is_constant = |text: &String| !text.contains(['$', '`']);
    if found.is_empty() && !odd.is_empty() && odd.iter().all(is_constant) {
        // None has a name: $1 and its like are what Dagu makes of them.
        let names: Vec<String> = (1..=odd.len()).map(|place| format!("ARG_{place}")).collect();
        let words: Vec<String> = names.iter().map(|name| format!("\"${name}\"")).collect();
        env.arguments = Some(format!("set -- {}", words.join(" ")));
        found.extend(names.into_iter().zip(std::mem::take(&mut odd).into_iter().map(Value::from)));
    }
    for text in odd {
        let why = "params have names here, and are no $1";
        notes.needs(field.line, text, why, "give it a name, and use $NAME in the steps");
    }
    let mut params = Map::new();
    for (name, value) in found {
        let default = value.get("default").unwrap_or(&value);
        let is_evaluated = default.as_str().is_some_and(|text| text.contains(['$', '`']));
        if !is_variable(&name) || is_evaluated {
            let why = if is_evaluated {
                "the default of a param is a constant"
            } else {
                "no param can have that name"
            };
            notes.needs(field.line, format!("{name}: {value}"), why, "write the param anew");
            continue;
        }
        // Scalars only: others have no text of their own.
        let is_plain = !default.is_array() && !default.is_object();
        if is_plain {
            env.constants.insert(name.clone(), json!(format!("{{{{ params.{name} }}}}")));
        }
        params.insert(name, value);
    }
    if !params.is_empty() {
        notes.converted(field.line, "params", "params, and variables of every task");
    }
    draft.set_some("params", params);
}

fn collect(node: &Node, found: &mut Vec<(String, Value)>, odd: &mut Vec<String>) {
    match &node.content {
        Content::Scalar { text, .. } => {
            for word in words(text) {
                match word.split_once('=') {
                    Some((name, value)) => found.push((name.to_owned(), json!(value))),
                    None => odd.push(word),
                }
            }
        }
        Content::List(items) => {
            for item in items {
                match (item.get("name").and_then(Node::text), item.text()) {
                    (Some(name), _) => found.push((name.to_owned(), declared(item))),
                    (None, Some(text)) if text.contains('=') => collect(item, found, odd),
                    (None, Some(text)) => odd.push(text.to_owned()),
                    (None, None) => collect(item, found, odd),
                }
            }
        }
        Content::Map(entries) if node.get("schema").is_some() => {
            odd.extend(entries.iter().map(|entry| crate::yaml::shown(&entry.key, &entry.value)));
        }
        Content::Map(entries) => {
            for entry in entries {
                let value = if entry.value.is_map() {
                    declared(&entry.value)
                } else {
                    entry.value.to_json()
                };
                // An empty default is text.
                found.push((entry.key.clone(), if value.is_null() { json!("") } else { value }));
            }
        }
    }
}

/// A param with its type and the like, in the words of JSON Schema.
fn declared(node: &Node) -> Value {
    const SAME: [&str; 10] = [
        "type",
        "default",
        "description",
        "enum",
        "minimum",
        "maximum",
        "pattern",
        "items",
        "minLength",
        "maxLength",
    ];
    let pair = |entry: &fencepost_dagfile::document::Entry| {
        let key = match entry.key.as_str() {
            "min_length" => "minLength",
            "max_length" => "maxLength",
            other => other,
        };
        SAME.contains(&key).then(|| (key.to_owned(), entry.value.to_json()))
    };
    Value::Object(node.entries().iter().filter_map(pair).collect())
}

/// Words of a line; quotes hold one together.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote, mut is_word) = (String::new(), None, false);
    for c in text.chars() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('"' | '\'' | '`', None) => (quote, is_word) = (Some(c), true),
            (c, None) if c.is_whitespace() => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (c, _) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_held_together_by_quotes() {
        assert_eq!(words("a B=c  D=\"e f\" ''"), ["a", "B=c", "D=e f", ""]);
    }
}
