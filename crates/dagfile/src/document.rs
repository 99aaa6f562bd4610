//! A YAML document as a plain tree with places, for readers of other formats than the DAG file's.
//!
//! Read as DAG files are: YAML 1.2, budgets, anchors and merge keys resolved, repeated keys refused.

use crate::diagnostic::{Diagnostic, Findings, Place};
use crate::yaml::{self, Kind};
use serde_json::{Map, Value};

/// A value with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub place: Place,
    pub content: Content,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A single value: its text as written, and what YAML makes of it.
    Scalar {
        text: String,
        value: Value,
    },
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub key: String,
    pub place: Place,
    pub value: Node,
}

/// Reads one document; all of its mistakes if there are some.
pub fn read(text: &str) -> Result<Node, Vec<Diagnostic>> {
    let mut findings = Findings::default();
    let root = yaml::read(text, &mut findings);
    match root {
        Some(root) if findings.error_count() == 0 => Ok(Node::of(&root)),
        _ => Err(findings.finish()),
    }
}

impl Node {
    fn of(node: &yaml::Node) -> Self {
        let content = match &node.content {
            yaml::Content::Scalar(scalar) => {
                let value = match &scalar.kind {
                    Kind::Null => Value::Null,
                    Kind::Flag(flag) => Value::Bool(*flag),
                    Kind::Number(number) => Value::Number(number.clone()),
                    Kind::Text | Kind::NotJson => Value::String(scalar.text.clone()),
                };
                Content::Scalar { text: scalar.text.clone(), value }
            }
            yaml::Content::List(items) => Content::List(items.iter().map(Self::of).collect()),
            yaml::Content::Map(entries) => {
                let entry = |entry: &yaml::Entry| Entry {
                    key: entry.key.clone(),
                    place: entry.key_place,
                    value: Self::of(&entry.value),
                };
                Content::Map(entries.iter().map(entry).collect())
            }
        };
        Self { place: node.place, content }
    }

    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { value: Value::Null, .. })
    }

    /// The text of a single value as written, but not of null.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } if !self.is_null() => Some(text),
            Content::Scalar { .. } | Content::List(_) | Content::Map(_) => None,
        }
    }

    /// The items of a list; of anything else none.
    pub fn items(&self) -> &[Self] {
        match &self.content {
            Content::List(items) => items,
            Content::Scalar { .. } | Content::Map(_) => &[],
        }
    }

    /// The entries of a mapping; of anything else none.
    pub fn entries(&self) -> &[Entry] {
        match &self.content {
            Content::Map(entries) => entries,
            Content::Scalar { .. } | Content::List(_) => &[],
        }
    }

    pub fn is_map(&self) -> bool {
        matches!(&self.content, Content::Map(_))
    }

    pub fn is_list(&self) -> bool {
        matches!(&self.content, Content::List(_))
    }

    /// The value of a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The whole as JSON; a number that JSON cannot hold as its text.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Scalar { value, .. } => value.clone(),
            Content::List(items) => items.iter().map(Self::to_json).collect(),
            Content::Map(entries) => {
                let pair = |entry: &Entry| (entry.key.clone(), entry.value.to_json());
                Value::Object(entries.iter().map(pair).collect::<Map<_, _>>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_a_tree_with_places_or_all_of_its_mistakes() {
        let node = read("a: &x [1, 0755, ~]\nb: {c: *x}\n").unwrap();
        assert_eq!(
            node.to_json().to_string(),
            r#"{"a":[1,"0755",null],"b":{"c":[1,"0755",null]}}"#
        );
        assert_eq!(node.get("b").unwrap().get("c").unwrap().items()[0].text(), Some("1"));
        assert_eq!(
            (node.entries()[1].place.line, node.is_map(), node.get("a").unwrap().is_list()),
            (2, true, true)
        );
        let mistakes = read("a: 1\na: 2\nb: 1\nb: 2\n").unwrap_err();
        assert_eq!(mistakes.iter().map(|d| d.line).collect::<Vec<_>>(), [2, 4]);
    }
}
