//! Values of a run's params against the schema in the DAG file: the part of JSON Schema that a
//! form needs (`type`, `enum`, `items`, bounds, lengths). Other keywords describe, they do not check.

use serde_json::{Map, Value};

/// Why a value does not fit; names the place within it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{what}")]
pub struct Misfit {
    place: String,
    what: String,
}

/// Checks a value. A schema that is no object allows everything.
pub fn check(value: &Value, schema: &Value) -> Result<(), Misfit> {
    check_at(value, schema, "")
}

fn check_at(value: &Value, schema: &Value, place: &str) -> Result<(), Misfit> {
    let Value::Object(schema) = schema else { return Ok(()) };
    let misfit = |what: String| {
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        Err(Misfit { place, what })
    };
    if let Some(wanted) = schema.get("type")
        && !type_fits(value, wanted)
    {
        return misfit(format!("must be {}, is {}", type_text(wanted), type_of(value)));
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        return misfit(format!("must be one of {}", list.join(", ")));
    }
    if let Some(what) = bounds(value, schema) {
        return misfit(what);
    }
    if let (Value::Array(list), Some(items)) = (value, schema.get("items")) {
        for (index, item) in list.iter().enumerate() {
            check_at(item, items, &format!("{place}[{index}]"))?;
        }
    }
    Ok(())
}

fn type_fits(value: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::String(one) => type_is(value, one),
        Value::Array(any) => any.iter().any(|one| type_fits(value, one)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}

fn type_is(value: &Value, name: &str) -> bool {
    match name {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => type_of(value) == other,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn type_text(wanted: &Value) -> String {
    match wanted {
        Value::String(one) => one.clone(),
        Value::Array(any) => any.iter().map(type_text).collect::<Vec<_>>().join(" or "),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => wanted.to_string(),
    }
}

fn bounds(value: &Value, schema: &Map<String, Value>) -> Option<String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let size = match value {
        Value::String(text) => Some(("minLength", "maxLength", text.chars().count() as f64)),
        Value::Array(list) => Some(("minItems", "maxItems", list.len() as f64)),
        Value::Number(n) => Some(("minimum", "maximum", n.as_f64()?)),
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    };
    let (low, high, size) = size?;
    if bound(low).is_some_and(|bound| size < bound) {
        return Some(format!("is under its {low}"));
    }
    bound(high).is_some_and(|bound| size > bound).then(|| format!("is over its {high}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_checked_against_the_schema() {
        let regions = json!({"type": "array", "items": {"type": "string", "enum": ["emea"]}});
        assert!(check(&json!(["emea"]), &regions).is_ok());
        let text = check(&json!(["emea", "x"]), &regions).unwrap_err().to_string();
        assert_eq!(text, "[1]: must be one of \"emea\"");
        let text = check(&json!("emea"), &regions).unwrap_err().to_string();
        assert_eq!(text, "must be array, is string");
        let small = json!({"type": "integer", "minimum": 1, "maximum": 3});
        assert!(check(&json!(2), &small).is_ok());
        assert!(check(&json!(4), &small).is_err() && check(&json!(2.5), &small).is_err());
    }
}
