//! The request of an `http` task, rendered.

use fencepost_core::http_task::HttpTask;
use fencepost_dagfile::template::{Context, TemplateError, render, value_of};
use serde_json::{Map, Value};

/// Rendered, and read once more: a template may have made a URL of nothing.
pub(super) fn rendered(written: &Value, context: &Context) -> Result<Value, TemplateError> {
    let rendered = all("http", written, false, context)?;
    HttpTask::read(&rendered).map_err(|error| TemplateError {
        field: "http".into(),
        message: error.to_string(),
        line: 1,
    })?;
    Ok(rendered)
}

/// Within `json` a text that is one expression keeps the type of its value.
fn all(
    field: &str,
    written: &Value,
    keeps_types: bool,
    context: &Context,
) -> Result<Value, TemplateError> {
    Ok(match written {
        Value::String(text) if keeps_types => value_of(field, text, context)?,
        Value::String(text) => Value::String(render(field, text, context)?),
        Value::Array(items) => {
            let one = |item: &Value| all(field, item, keeps_types, context);
            Value::Array(items.iter().map(one).collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => {
            let mut out = Map::new();
            for (key, value) in entries {
                let keeps_types = keeps_types || (field == "http" && key == "json");
                out.insert(
                    key.clone(),
                    all(&format!("{field}.{key}"), value, keeps_types, context)?,
                );
            }
            Value::Object(out)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => written.clone(),
    })
}
