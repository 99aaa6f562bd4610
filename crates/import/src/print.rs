//! A DAG file's text: block style, scripts as `|` blocks, short lists on one line, and plain text only where
//! nobody could read it as anything else.

use serde_json::{Map, Value};

/// The document of a mapping.
pub(crate) fn document(map: &Map<String, Value>) -> String {
    let mut out = String::new();
    for (key, value) in map {
        if matches!(key.as_str(), "tasks" | "task_groups") {
            out.push('\n');
        }
        entry(key, value, 0, &mut out);
    }
    out
}

fn entry(key: &str, value: &Value, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    out.push_str(&format!("{indent}{}:", string(key)));
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            for (key, value) in map {
                entry(key, value, depth + 1, out);
            }
        }
        Value::Array(items) if items.iter().any(is_wide) || line_of(items).len() > 100 => {
            out.push('\n');
            for item in items {
                out.push_str(&format!("{indent}  - {}\n", inline(item)));
            }
        }
        Value::String(text) if is_block(text) => block(text, depth + 1, out),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            out.push_str(&format!(" {}\n", inline(value)));
        }
    }
}

fn is_wide(value: &Value) -> bool {
    value.is_array() || value.is_object()
}

fn line_of(items: &[Value]) -> String {
    let items: Vec<String> = items.iter().map(inline).collect();
    format!("[{}]", items.join(", "))
}

/// A value on one line.
fn inline(value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => string(text),
        Value::Array(items) => line_of(items),
        Value::Object(map) => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", string(key), inline(value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// Whether a text can stand as a `|` block: lines of printable text, the first not indented.
fn is_block(text: &str) -> bool {
    let is_odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || "\u{85}\u{2028}\u{2029}\u{feff}".contains(c)
    };
    text.trim_end_matches('\n').contains('\n')
        && !text.ends_with("\n\n")
        && !text.starts_with([' ', '\t', '\n'])
        && !text.contains(is_odd)
        // A line of blanks alone would lose or gain some.
        && text.lines().all(|line| line.is_empty() || !line.trim().is_empty())
}

fn block(text: &str, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in text.lines() {
        if line.is_empty() { out.push('\n') } else { out.push_str(&format!("{indent}{line}\n")) }
    }
}

fn string(text: &str) -> String {
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '/';
    let inside = |c: char| c.is_ascii_alphanumeric() || "_-./+@ ".contains(c);
    let reserved = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_plain = text.starts_with(starts)
        && text.chars().all(inside)
        && !text.ends_with(' ')
        && !reserved.contains(&text.to_ascii_lowercase().as_str());
    if is_plain { text.to_owned() } else { Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_reads_well() {
        let value = json!({
            "dag_id": "a", "schedule": ["0 5 * * *"], "env": {"A": "no", "B": "x: y"}, "limit": 1, "none": null, "e": {},
            "tasks": {"t": {"run": "a\n\n  b\n", "u": "one\ntwo", "command": ["a", "1", "it's"], "l": [{"a": "b"}]}},
        });
        insta::assert_snapshot!(document(value.as_object().unwrap()), @r#"
        dag_id: a
        schedule: ["0 5 * * *"]
        env:
          A: "no"
          B: "x: y"
        limit: 1
        none: null
        e: {}

        tasks:
          t:
            run: |
              a

                b
            u: |-
              one
              two
            command: [a, "1", "it's"]
            l:
              - {a: b}
        "#);
    }

    #[test]
    fn any_text_comes_back_through_the_reader_of_dag_files() {
        let texts = [
            "a\nb",
            "a\nb\n",
            "a\nb\n\n",
            " a\nb",
            "\na",
            "a\n \nb",
            "a\r\nb",
            "a\tb\nc",
            "no",
            "1e3",
            "~",
            "",
            "#x",
            "a: b\nc",
            "- a\n- b",
            "a\u{85}b\nc",
            "é\nü",
            "'",
            "\"\\n",
            "{{ x }}\n{% y %}",
            "a\n#b\n",
            "%a\n---\n...\n",
            "x \ny",
        ];
        for text in texts {
            let document = document(
                json!({"description": text, "tasks": {"t": {"noop": true}}}).as_object().unwrap(),
            );
            let parsed = fencepost_dagfile::parse(document.as_bytes(), "x.yaml");
            assert_eq!(parsed.dag.map(|dag| dag.description).as_deref(), Some(text), "{document}");
        }
    }
}
