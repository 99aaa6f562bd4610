//! `-p name=value`: text into the type that the DAG declares.

use crate::error::{CliError, Outcome};
use crate::nearest::nearest;
use fencepost_api::rest::Param;
use serde_json::{Map, Value};

/// The typed values of the flags, checked against what the DAG declares.
pub(crate) fn read(declared: &[Param], flags: &[String]) -> Outcome<Map<String, Value>> {
    let mut params = Map::new();
    for flag in flags {
        let Some((name, text)) = flag.split_once('=') else {
            return Err(CliError::usage(format!("`-p {flag}`: write -p name=value")));
        };
        let Some(param) = declared.iter().find(|param| param.name == name) else {
            let error = CliError::usage(format!("the DAG has no param `{name}`"));
            let names = declared.iter().map(|param| param.name.as_str());
            return Err(match nearest(name, names) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            });
        };
        params.insert(name.into(), typed(param, text)?);
    }
    Ok(params)
}

/// Text stays text for a string; else it is JSON, or text where no type is declared.
fn typed(param: &Param, text: &str) -> Outcome<Value> {
    let declared = &param.schema["type"];
    let several = declared.as_array().map(Vec::as_slice).unwrap_or_default();
    let types: Vec<&str> =
        several.iter().chain(std::iter::once(declared)).filter_map(Value::as_str).collect();
    let as_json = serde_json::from_str::<Value>(text);
    let is_text = types.contains(&"string");
    match as_json {
        Ok(value) if types.iter().any(|name| fits(name, &value)) && !is_text => Ok(value),
        Ok(Value::Null) if types.contains(&"null") => Ok(Value::Null),
        _ if is_text => Ok(text.into()),
        Ok(value) if types.is_empty() => Ok(value),
        Err(_) if types.is_empty() => Ok(text.into()),
        _ => Err(CliError::usage(format!(
            "`-p {}={text}`: the param must be {}",
            param.name,
            types.join(" or ")
        ))),
    }
}

fn fits(name: &str, value: &Value) -> bool {
    match name {
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_becomes_the_declared_type() {
        let param = |name: &str, schema: Value| Param {
            name: name.into(),
            default: Value::Null,
            description: String::new(),
            schema,
        };
        let declared = [
            param("s", json!({"type": "string"})),
            param("b", json!({"type": "boolean"})),
            param("i", json!({"type": "integer"})),
            param("a", json!({"type": "array"})),
            param("any", json!({})),
            param("maybe", json!({"type": ["string", "null"]})),
        ];
        for (flag, want) in [
            ("s=1.10", Some(json!("1.10"))),
            ("s=", Some(json!(""))),
            ("s=a=b", Some(json!("a=b"))),
            ("b=true", Some(json!(true))),
            ("b=yes", None),
            ("i=3", Some(json!(3))),
            ("i=3.5", None),
            ("a=[\"emea\"]", Some(json!(["emea"]))),
            ("a=emea", None),
            ("any=3", Some(json!(3))),
            ("any=x y", Some(json!("x y"))),
            ("maybe=null", Some(json!(null))),
            ("maybe=7", Some(json!("7"))),
            ("x=1", None),
            ("s", None),
        ] {
            let read = read(&declared, &[flag.into()]);
            let value = read.ok().and_then(|mut map| map.values_mut().next().map(Value::take));
            assert_eq!(value, want, "{flag}");
        }
    }
}
