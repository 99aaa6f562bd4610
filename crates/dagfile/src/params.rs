//! Params beyond one value: the keywords that a schema may have, and the params of a whole run.
//!
//! Whether a value fits a schema is decided in one place, `fencepost_core::params`.

use crate::suggest::did_you_mean;
use fencepost_core::dag::{Dag, Param};
use fencepost_core::params::check;
use serde_json::{Map, Value};

/// Keywords of a long form besides `type`, `default` and `description`.
pub(crate) const KEYWORDS: [&str; 11] = [
    "title",
    "format",
    "examples",
    "enum",
    "items",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
];

/// Keywords of JSON Schema that would have to be checked and are not yet.
pub(crate) const LATER: [&str; 13] = [
    "pattern",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "uniqueItems",
    "multipleOf",
    "exclusiveMinimum",
    "exclusiveMaximum",
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
    pub(crate) keyword: &'static str,
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

/// Whether the keywords have values of their kind.
pub(crate) fn check_schema(schema: &Value) -> Result<(), SchemaError> {
    let Some(schema) = schema.as_object() else {
        return Err(SchemaError { keyword: "items", expected: "a mapping of keywords" });
    };
    let check = |keyword, expected, is_sound: fn(&Value) -> bool| match schema.get(keyword) {
        Some(value) if !is_sound(value) => Err(SchemaError { keyword, expected }),
        _ => Ok(()),
    };
    check("enum", "a list with values", |v| v.as_array().is_some_and(|list| !list.is_empty()))?;
    for keyword in ["minItems", "maxItems", "minLength", "maxLength"] {
        check(keyword, "a whole number from 0 up", Value::is_u64)?;
    }
    for keyword in ["minimum", "maximum"] {
        check(keyword, "a number", Value::is_number)?;
    }
    check("items", "a mapping of keywords", |v| check_schema(v).is_ok())
}
