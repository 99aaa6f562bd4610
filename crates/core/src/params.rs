//! Values of a run's params against the schema in the DAG file: JSON Schema (2020-12) without references.
//! `format`, `title` and `examples` describe, they do not check. A `pattern` is searched for anywhere in
//! the text, as JSON Schema has it, by the `regex` crate: without look-around and back-references.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

/// Largest compiled pattern.
const PATTERN_MAX: usize = 1 << 20;

/// Why a value does not fit; names the place within it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}{what}")]
pub struct Misfit {
    place: String,
    what: String,
}

/// Checks a value. A schema that is no object allows everything, but `false`.
pub fn check(value: &Value, schema: &Value) -> Result<(), Misfit> {
    check_at(value, schema, "")
}

/// The pattern of a schema; why it is none.
pub fn pattern(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text).size_limit(PATTERN_MAX).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large".to_owned(),
        other @ (regex::Error::Syntax(_) | _) => {
            other.to_string().lines().last().unwrap_or_default().to_owned()
        }
    })
}

fn check_at(value: &Value, schema: &Value, place: &str) -> Result<(), Misfit> {
    let misfit = |what: String| {
        let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
        Err(Misfit { place, what })
    };
    let Value::Object(schema) = schema else {
        return if *schema == Value::Bool(false) {
            misfit("is not allowed".into())
        } else {
            Ok(())
        };
    };
    let whole = [wrong_type, wrong_choice, bounds, text, number, list, names];
    if let Some(what) = whole.iter().find_map(|rule| rule(value, schema)) {
        return misfit(what);
    }
    if let Some(what) = combined(value, schema) {
        return misfit(what);
    }
    if let (Value::Array(list), Some(items)) = (value, schema.get("items")) {
        for (index, item) in list.iter().enumerate() {
            check_at(item, items, &format!("{place}[{index}]"))?;
        }
    }
    let Value::Object(entries) = value else { return Ok(()) };
    for (name, inner) in entries {
        if let Some(schema) = property(schema, name) {
            let dot = if place.is_empty() { "" } else { "." };
            check_at(inner, schema, &format!("{place}{dot}{name}"))?;
        }
    }
    Ok(())
}

type Schema = Map<String, Value>;

/// What a property must fit.
fn property<'a>(schema: &'a Schema, name: &str) -> Option<&'a Value> {
    let own = schema.get("properties").and_then(|properties| properties.get(name));
    own.or_else(|| schema.get("additionalProperties"))
}

fn wrong_type(value: &Value, schema: &Schema) -> Option<String> {
    let wanted = schema.get("type").filter(|wanted| !type_fits(value, wanted))?;
    Some(format!("must be {}, is {}", type_text(wanted), type_of(value)))
}

fn wrong_choice(value: &Value, schema: &Schema) -> Option<String> {
    if let Some(only) = schema.get("const").filter(|only| !is_same(only, value)) {
        return Some(format!("must be {only}"));
    }
    let allowed = schema.get("enum").and_then(Value::as_array)?;
    if allowed.iter().any(|one| is_same(one, value)) {
        return None;
    }
    let list: Vec<String> = allowed.iter().map(ToString::to_string).collect();
    Some(format!("must be one of {}", list.join(", ")))
}

/// 1 and 1.0 are one value.
fn is_same(a: &Value, b: &Value) -> bool {
    let both = (a.as_f64().filter(|_| a.is_f64() != b.is_f64()), b.as_f64());
    a == b || matches!(both, (Some(a), Some(b)) if a.total_cmp(&b).is_eq())
}

fn text(value: &Value, schema: &Schema) -> Option<String> {
    let (text, written) = (value.as_str()?, schema.get("pattern")?.as_str()?);
    match pattern(written) {
        Ok(pattern) if pattern.is_match(text) => None,
        Ok(_) => Some(format!("does not match the pattern {written}")),
        Err(why) => Some(format!("cannot be checked: the pattern {written}: {why}")),
    }
}

fn number(value: &Value, schema: &Schema) -> Option<String> {
    let number = value.as_f64()?;
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if bound("exclusiveMinimum").is_some_and(|bound| number <= bound) {
        return Some("is not over its exclusiveMinimum".into());
    }
    if bound("exclusiveMaximum").is_some_and(|bound| number >= bound) {
        return Some("is not under its exclusiveMaximum".into());
    }
    let step = schema.get("multipleOf")?;
    let is_multiple = match (value.as_i64(), step.as_i64()) {
        (Some(number), Some(step)) if step > 0 => number % step == 0,
        _ => {
            // 0.3 is a multiple of 0.1, though not in binary.
            let times = number / step.as_f64()?;
            (times - times.round()).abs() <= times.abs().max(1.0) * f64::EPSILON * 4.0
        }
    };
    (!is_multiple).then(|| format!("is no multiple of {step}"))
}

fn list(value: &Value, schema: &Schema) -> Option<String> {
    let list =
        value.as_array().filter(|_| schema.get("uniqueItems") == Some(&Value::Bool(true)))?;
    let repeats = |(at, item): (usize, &Value)| list[..at].iter().any(|other| is_same(other, item));
    let place = list.iter().enumerate().position(repeats)?;
    Some(format!("[{place}] is there twice"))
}

fn names(value: &Value, schema: &Schema) -> Option<String> {
    let entries = value.as_object()?;
    let required = schema.get("required").and_then(Value::as_array)?;
    let missing =
        required.iter().filter_map(Value::as_str).find(|name| !entries.contains_key(*name))?;
    Some(format!("`{missing}` is missing"))
}

/// Schemas of which all, some, one or none must fit.
fn combined(value: &Value, schema: &Schema) -> Option<String> {
    let fitting = |key: &str| {
        let list = schema.get(key).and_then(Value::as_array)?;
        let fits = list.iter().filter(|schema| check(value, schema).is_ok()).count();
        Some((fits, list.len()))
    };
    if let Some(wrong) = schema
        .get("allOf")
        .and_then(Value::as_array)
        .and_then(|list| list.iter().find_map(|schema| check(value, schema).err()))
    {
        return Some(wrong.to_string());
    }
    if let Some((0, _)) = fitting("anyOf") {
        return Some("fits none of its `anyOf`".into());
    }
    if let Some((fits, all)) = fitting("oneOf")
        && fits != 1
    {
        return Some(format!("fits {fits} of its {all} `oneOf`, not one"));
    }
    let excluded = schema.get("not").is_some_and(|schema| check(value, schema).is_ok());
    excluded.then(|| "is excluded by its `not`".into())
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
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(is_whole),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => type_of(value) == other,
    }
}

fn is_whole(number: f64) -> bool {
    number.fract() == 0.0
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
        Value::Object(entries) => Some(("minProperties", "maxProperties", entries.len() as f64)),
        Value::Number(n) => Some(("minimum", "maximum", n.as_f64()?)),
        Value::Null | Value::Bool(_) => None,
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

    fn refusals(schema: &Value, values: &[(Value, &str)]) {
        for (value, why) in values {
            let found =
                check(value, schema).map_or_else(|misfit| misfit.to_string(), |()| "ok".into());
            assert_eq!(found, *why, "{value} against {schema}");
        }
    }

    #[test]
    fn texts_numbers_and_lists_are_checked_as_json_schema_has_it() {
        refusals(
            &json!({"pattern": "^[a-z]+-[0-9]+$"}),
            &[
                (json!("ab-1"), "ok"),
                (json!("AB"), "does not match the pattern ^[a-z]+-[0-9]+$"),
                (json!(1), "ok"),
            ],
        );
        refusals(
            &json!({"exclusiveMinimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.1}),
            &[
                (json!(0.3), "ok"),
                (json!(0), "is not over its exclusiveMinimum"),
                (json!(1), "is not under its exclusiveMaximum"),
                (json!(0.25), "is no multiple of 0.1"),
            ],
        );
        refusals(
            &json!({"multipleOf": 7}),
            &[(json!(21), "ok"), (json!(22), "is no multiple of 7")],
        );
        refusals(
            &json!({"uniqueItems": true}),
            &[(json!([1, 2]), "ok"), (json!([1, 2, 1.0]), "[2] is there twice")],
        );
        refusals(&json!({"const": 3}), &[(json!(3.0), "ok"), (json!("3"), "must be 3")]);
        refusals(
            &json!({"type": "integer"}),
            &[(json!(2.0), "ok"), (json!(2.5), "must be integer, is number")],
        );
    }

    #[test]
    fn objects_are_checked_to_the_bottom_and_name_the_place() {
        let schema = json!({
            "type": "object",
            "required": ["table"],
            "properties": {
                "table": {"type": "string"},
                "keys": {"type": "array", "items": {"type": "object", "properties": {"n": {"minimum": 1}}}},
            },
            "additionalProperties": false,
            "maxProperties": 2,
        });
        refusals(
            &schema,
            &[
                (json!({"table": "t", "keys": [{"n": 1}]}), "ok"),
                (json!({}), "`table` is missing"),
                (json!({"table": 1}), "table: must be string, is integer"),
                (
                    json!({"table": "t", "keys": [{"n": 1}, {"n": 0}]}),
                    "keys[1].n: is under its minimum",
                ),
                (json!({"table": "t", "x": 1}), "x: is not allowed"),
                (json!({"table": "t", "x": 1, "y": 2}), "is over its maxProperties"),
            ],
        );
    }

    #[test]
    fn schemas_are_combined() {
        let (low, high) = (json!({"maximum": 5}), json!({"minimum": 3}));
        refusals(
            &json!({"allOf": [low, high]}),
            &[(json!(4), "ok"), (json!(6), "is over its maximum")],
        );
        refusals(
            &json!({"oneOf": [low, high]}),
            &[(json!(6), "ok"), (json!(4), "fits 2 of its 2 `oneOf`, not one")],
        );
        refusals(
            &json!({"anyOf": [{"type": "null"}, high]}),
            &[(json!(null), "ok"), (json!(4), "ok"), (json!(2), "fits none of its `anyOf`")],
        );
        refusals(&json!({"not": low}), &[(json!(6), "ok"), (json!(4), "is excluded by its `not`")]);
    }

    #[test]
    fn a_pattern_that_is_none_says_why() {
        assert!(pattern("(").unwrap_err().contains("unclosed group"));
        assert!(pattern("(?=x)").unwrap_err().contains("look-around"));
        assert_eq!(pattern("(a{1000}){1000}").unwrap_err(), "it is too large");
    }
}
