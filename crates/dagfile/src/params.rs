//! Params beyond one value: the keywords that a schema may have, and the params of a whole run.
//!
//! Whether a value fits a schema is decided in one place, `fencepost_core::params`.

use crate::suggest::did_you_mean;
use fencepost_core::dag::{Dag, Param};
use fencepost_core::params::{check, pattern};
use serde_json::{Map, Value};

/// Keywords of a long form besides `type`, `default` and `description`.
pub(crate) const KEYWORDS: [&str; 26] = [
    "title",
    "format",
    "examples",
    "enum",
    "const",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "anyOf",
    "oneOf",
    "allOf",
    "not",
];

/// The types of JSON Schema.
pub(crate) const TYPES: [&str; 7] =
    ["string", "integer", "number", "boolean", "array", "object", "null"];

/// A keyword whose own value is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{keyword}` must be {expected}")]
pub(crate) struct SchemaError {
    pub(crate) keyword: String,
    expected: &'static str,
}

/// Why the params given for a run are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    #[error("there is no param `{name}`{}", after_semicolon(.hint))]
    Unknown { name: String, hint: String },
    #[error("param `{name}` does not fit: {reason}")]
    Misfit { name: String, reason: String },
    #[error("param `{0}` is required")]
    Required(String),
}

fn after_semicolon(hint: &str) -> String {
    if hint.is_empty() { String::new() } else { format!("; {hint}") }
}

/// The params of a run: the defaults with `given` over them, checked, in the order of the file.
pub fn resolve(
    dag: &Dag,
    given: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<ParamError>> {
    let mut errors = Vec::new();
    for name in given.keys() {
        if dag.params.iter().all(|param| param.name != *name) {
            let hint = did_you_mean(name, dag.params.iter().map(|param| param.name.as_str()));
            errors.push(ParamError::Unknown { name: name.clone(), hint });
        }
    }
    let mut values = Map::new();
    for param in &dag.params {
        let name = param.name.clone();
        let value = given.get(&name).unwrap_or(&param.default);
        match check(value, &param.schema) {
            Ok(()) => drop(values.insert(name, value.clone())),
            Err(_) if value.is_null() => errors.push(ParamError::Required(name)),
            Err(misfit) => errors.push(ParamError::Misfit { name, reason: misfit.to_string() }),
        }
    }
    if errors.is_empty() { Ok(values) } else { Err(errors) }
}

/// The value that `-p name=text` means: text for a param of type string, else JSON, else text.
pub fn value_from_text(param: &Param, text: &str) -> Value {
    let as_text = || Value::String(text.to_owned());
    if param.schema.get("type").and_then(Value::as_str) == Some("string") {
        return as_text();
    }
    serde_json::from_str(text).unwrap_or_else(|_| as_text())
}

/// The name of a JSON value's type.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether the keywords have values of their kind, down to the bottom.
pub(crate) fn check_schema(schema: &Value) -> Result<(), SchemaError> {
    let Some(entries) = schema.as_object() else {
        return Err(SchemaError { keyword: "items".into(), expected: "a mapping of keywords" });
    };
    entries.iter().try_for_each(|(keyword, value)| {
        let expected = expected(keyword, value);
        expected.map_or(Ok(()), |expected| Err(SchemaError { keyword: keyword.clone(), expected }))
    })
}

/// What the value of a keyword should have been.
fn expected(keyword: &str, value: &Value) -> Option<&'static str> {
    let is_schema = |value: &Value| value.is_boolean() || is_nested_schema(value);
    let all = |list: &Value, sound: fn(&Value) -> bool| {
        list.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(sound))
    };
    let (is_sound, expected) = match keyword {
        "enum" => (all(value, |_| true), "a list with values"),
        "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties" => {
            (value.is_u64(), "a whole number from 0 up")
        }
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            (value.is_number(), "a number")
        }
        "multipleOf" => (value.as_f64().is_some_and(|step| step > 0.0), "a number over 0"),
        "uniqueItems" => (value.is_boolean(), "true or false"),
        "pattern" => {
            let is_pattern = value.as_str().is_some_and(|text| pattern(text).is_ok());
            (is_pattern, "a regular expression (without look-around and back-references)")
        }
        "items" => (is_nested_schema(value), "a mapping of keywords"),
        "not" | "additionalProperties" => (is_schema(value), "a mapping of keywords"),
        "properties" => {
            let is_sound = value.as_object().is_some_and(|inner| inner.values().all(is_schema));
            (is_sound, "a mapping of names to mappings of keywords")
        }
        "required" => (all(value, Value::is_string), "a list of names"),
        "anyOf" | "oneOf" | "allOf" => {
            (all(value, is_nested_schema), "a list of mappings of keywords")
        }
        _ => (true, ""),
    };
    (!is_sound).then_some(expected)
}

/// A schema within another: nothing in it is passed over in silence.
fn is_nested_schema(schema: &Value) -> bool {
    let is_known = |key: &String| {
        KEYWORDS.contains(&key.as_str())
            || ["type", "default", "description"].contains(&key.as_str())
    };
    let has_sound_type = schema.get("type").is_none_or(is_type);
    schema.as_object().is_some_and(|entries| entries.keys().all(is_known))
        && has_sound_type
        && check_schema(schema).is_ok()
}

/// Whether it names a type, or several.
pub(crate) fn is_type(value: &Value) -> bool {
    let is_name = |value: &Value| value.as_str().is_some_and(|name| TYPES.contains(&name));
    match value.as_array() {
        Some(names) => !names.is_empty() && names.iter().all(is_name),
        None => is_name(value),
    }
}
