//! `fencepost schema`: the JSON schema of DAG files, for editors; or one key of it, for people.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::nearest::nearest;
use clap::Subcommand;
use serde_json::Value;

/// Print schemas
#[derive(Debug, Subcommand)]
pub(crate) enum Schemas {
    /// Print the JSON schema of DAG files, or of one key
    #[command(after_help = "\
Examples:
  fencepost schema dag > dags/fencepost.schema.json
  fencepost schema dag tasks.retry_delay -o yaml")]
    Dag {
        /// A key: `schedule`, `tasks.retries`
        #[arg(value_name = "PATH")]
        path: Option<String>,
    },
}

/// Prints it.
pub(super) fn run(cx: &Cx, verb: Schemas) -> Outcome {
    let Schemas::Dag { path } = verb;
    let schema = fencepost_dagfile::schema();
    let part = match &path {
        Some(path) => part(&schema, path)?,
        None => &schema,
    };
    if !cx.out.data(part)? {
        let text = serde_json::to_string_pretty(part)
            .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
        cx.out.print(&(text + "\n"))?;
    }
    Ok(Exit::Done)
}

/// The schema of a key; `tasks.retries` stands for that key of any task.
fn part<'a>(root: &'a Value, path: &str) -> Outcome<&'a Value> {
    let mut node = root;
    for name in path.split('.') {
        if let Some(entry) = entry(root, node)
            && resolve(root, node)["properties"][name].is_null()
        {
            node = resolve(root, entry);
            if name == "*" {
                continue;
            }
        }
        let keys = &resolve(root, node)["properties"];
        node = keys.get(name).ok_or_else(|| unknown(keys, name))?;
    }
    Ok(resolve(root, node))
}

fn unknown(keys: &Value, name: &str) -> CliError {
    let known = keys.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let error = CliError::new(Exit::NotFound, format!("there is no key `{name}`"));
    match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error.hint("see  fencepost schema dag"),
    }
}

/// What the values of a map look like, whatever their names.
fn entry<'a>(root: &'a Value, node: &'a Value) -> Option<&'a Value> {
    let node = resolve(root, node);
    let patterns = node["patternProperties"].as_object().and_then(|map| map.values().next());
    patterns.or_else(|| Some(&node["additionalProperties"]).filter(|value| value.is_object()))
}

/// Follows `$ref` within the document.
fn resolve<'a>(root: &'a Value, node: &'a Value) -> &'a Value {
    let pointer = node["$ref"].as_str().and_then(|text| text.strip_prefix('#'));
    pointer.and_then(|pointer| root.pointer(pointer)).unwrap_or(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_through_tasks_and_references() {
        let schema = fencepost_dagfile::schema();
        for path in ["schedule", "tasks.retries", "tasks.*.retries", "default_args.retries"] {
            let found = part(&schema, path).unwrap();
            assert!(found.is_object() && found.get("$ref").is_none(), "{path}: {found}");
        }
        let error = part(&schema, "tasks.retris").unwrap_err();
        assert_eq!(
            (error.exit, error.hints),
            (Exit::NotFound, vec!["did you mean `retries`?".into()])
        );
    }
}
