//! JSON values as YAML: block style, strings plain only where nobody could read them as anything
//! else (JSON strings are YAML strings).

use serde_json::Value;

/// The document, with a line end.
pub(crate) fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    block(value, 0, &mut out);
    out
}

/// A value from the start of a line on.
fn block(value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    if let Value::Array(items) = value
        && !items.is_empty()
    {
        for item in items {
            let mut inner = String::new();
            block(item, depth + 1, &mut inner);
            // A nested list begins on its own line, everything else on the line of its dash.
            if is_block(item) && item.is_array() {
                out.push_str(&format!("{indent}-\n{inner}"));
            } else {
                out.push_str(&format!("{indent}- {}", inner.trim_start()));
            }
        }
    } else if let Value::Object(map) = value
        && !map.is_empty()
    {
        for (key, item) in map {
            let gap = if is_block(item) { "\n" } else { " " };
            out.push_str(&format!("{indent}{}:{gap}", string(key)));
            block(item, depth + 1, out);
        }
    } else {
        out.push_str(&value.as_str().map_or_else(|| value.to_string(), string));
        out.push('\n');
    }
}

/// Whether a value takes lines of its own.
fn is_block(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty())
        || value.as_object().is_some_and(|map| !map.is_empty())
}

fn string(text: &str) -> String {
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '/';
    let inside = |c: char| c.is_ascii_alphanumeric() || "_-./+@ ".contains(c);
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(starts)
        && text.chars().all(inside)
        && !text.ends_with(' ')
        && !reserved.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.into() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_values_read_well() {
        let value = json!([
            {"dag_id": "sales", "tags": ["a", "no"], "next": null, "more": {"x": 1, "e": {}}},
            "2026-09-22T05:00:00.000Z"
        ]);
        insta::assert_snapshot!(to_yaml(&value), @r#"
        - dag_id: sales
          tags:
            - a
            - "no"
          next: null
          more:
            x: 1
            e: {}
        - "2026-09-22T05:00:00.000Z"
        "#);
        assert_eq!(to_yaml(&json!([])), "[]\n");
        assert_eq!(to_yaml(&json!("a: b\n")), "\"a: b\\n\"\n");
        assert_eq!(to_yaml(&json!({"a": true})), "a: true\n");
    }
}
