//! The tree of a JSON value, so that a stored form is read by the validation of files.

use super::locate::Source;
use super::scalar::Kind;
use super::{Content, DEPTH_MAX, Entry, LEAF, NODES_MAX, Node, Scalar};
use crate::diagnostic::Place;
use serde_json::Value;

/// The tree of a JSON value; `None` if it is over the budgets.
///
/// A stored form says everything, so it may be larger than the file was.
pub(super) fn from_json(value: &Value) -> Option<Node> {
    node(value, DEPTH_MAX + 2, &mut NODES_MAX.saturating_mul(10))
}

fn node(value: &Value, depth: u32, left: &mut u32) -> Option<Node> {
    *left = left.checked_sub(1)?;
    let depth = depth.checked_sub(1)?;
    let scalar =
        |kind, text: String| Content::Scalar(Scalar { text, kind, source: Source::NOWHERE });
    let content = match value {
        Value::Null => scalar(Kind::Null, "null".into()),
        Value::Bool(flag) => scalar(Kind::Flag(*flag), flag.to_string()),
        Value::Number(number) => scalar(Kind::Number(number.clone()), number.to_string()),
        Value::String(text) => scalar(Kind::Text, text.clone()),
        Value::Array(items) => {
            Content::List(items.iter().map(|item| node(item, depth, left)).collect::<Option<_>>()?)
        }
        Value::Object(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map {
                let value = node(value, depth, left)?;
                let key = key.clone();
                entries.push(Entry { key, key_place: Place::FILE, value, is_plain: false });
            }
            Content::Map(entries)
        }
    };
    Some(Node { place: Place::FILE, content, size: LEAF })
}
