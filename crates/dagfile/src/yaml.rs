//! A YAML document as a tree with places, read under budgets. The parser is known only here.
//!
//! YAML 1.2 core schema (`no`, `on` and `0755` are text), one document, text keys, no repeated
//! keys; anchors, aliases and merge keys are resolved. A mistake of syntax ends the reading; a
//! repeated key and the like do not. Nothing here knows what a DAG is.

mod entries;
mod json;
mod locate;
mod scalar;
mod tree;

pub(crate) use locate::place_in;
pub(crate) use scalar::Kind;
pub(crate) use tree::read;

use crate::diagnostic::Place;
use serde_json::{Map, Value};

/// Deepest nesting.
pub(crate) const DEPTH_MAX: u32 = 64;
/// Most nodes, each use of an alias counted with all that it stands for.
pub(crate) const NODES_MAX: u32 = 200_000;
/// Most text, aliases counted likewise.
const TEXT_MAX: usize = 4 << 20;

/// A value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) content: Content,
    size: Size,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_place: Place,
    pub(crate) value: Node,
    /// Written without quotes: only then `<<` merges.
    is_plain: bool,
}

/// A single value: its text as written (after unquoting) and what the core schema makes of it.
#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    source: locate::Source,
}

/// How much a node and all below it weigh.
#[derive(Debug, Clone, Copy)]
struct Size {
    nodes: u32,
    text: usize,
    depth: u32,
}

const LEAF: Size = Size { nodes: 1, text: 0, depth: 1 };

impl Node {
    /// The text of a value that the schema reads as text.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(Scalar { text, kind: Kind::Text, .. }) => Some(text),
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => None,
        }
    }

    /// The text of any single value as written: `1.10`, `no`, `12:30`. Not of null.
    pub(crate) fn as_written(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(scalar) if scalar.kind != Kind::Null => Some(&scalar.text),
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(Scalar { kind: Kind::Null, .. }))
    }

    pub(crate) fn as_list(&self) -> Option<&[Node]> {
        match &self.content {
            Content::List(items) => Some(items),
            Content::Scalar(_) | Content::Map(_) => None,
        }
    }

    pub(crate) fn as_map(&self) -> Option<&[Entry]> {
        match &self.content {
            Content::Map(entries) => Some(entries),
            Content::Scalar(_) | Content::List(_) => None,
        }
    }

    /// What it is, for messages: `a list`, `the number 3`.
    pub(crate) fn description(&self) -> String {
        match &self.content {
            Content::List(_) => "a list".into(),
            Content::Map(_) => "a mapping".into(),
            Content::Scalar(scalar) => match &scalar.kind {
                Kind::Null => "nothing".into(),
                Kind::Flag(flag) => format!("{flag}"),
                Kind::Number(number) => format!("the number {number}"),
                Kind::NotJson => format!("the number {}", scalar.text),
                Kind::Text => format!("the text {}", crate::diagnostic::quoted(&scalar.text)),
            },
        }
    }

    /// The value as JSON; fails at the first thing that JSON has no word for.
    pub(crate) fn to_json(&self) -> Result<Value, Place> {
        Ok(match &self.content {
            Content::Scalar(scalar) => match &scalar.kind {
                Kind::Null => Value::Null,
                Kind::Flag(flag) => Value::Bool(*flag),
                Kind::Number(number) => Value::Number(number.clone()),
                Kind::Text => Value::String(scalar.text.clone()),
                Kind::NotJson => return Err(self.place),
            },
            Content::List(items) => {
                Value::Array(items.iter().map(Self::to_json).collect::<Result<_, _>>()?)
            }
            Content::Map(entries) => {
                let pair = |entry: &Entry| Ok((entry.key.clone(), entry.value.to_json()?));
                Value::Object(entries.iter().map(pair).collect::<Result<Map<_, _>, _>>()?)
            }
        })
    }

    /// The same tree from JSON, every place 1:1; `None` if it is over the budgets.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        json::from_json(value)
    }
}
