//! The JSON schema: its keys are those of the validation and of the design's key reference.

use super::findings;
use serde_json::Value;
use std::collections::BTreeSet;

const REFERENCE: &str = include_str!("key_reference.txt");

fn keys(value: &Value) -> BTreeSet<String> {
    value["properties"].as_object().unwrap().keys().cloned().collect()
}

/// The keys in backticks of the reference's rows whose first cell begins so.
fn reference(level: &str) -> BTreeSet<String> {
    let rows = REFERENCE.lines().filter(|row| row.trim_start_matches("| ").starts_with(level));
    let mut found = BTreeSet::new();
    for row in rows {
        for part in row.split('`').skip(1).step_by(2) {
            // `noop: true` is a key, `module:function` is none.
            let key = part.split(": ").next().unwrap();
            if key.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                found.insert(key.to_owned());
            }
        }
    }
    found
}

#[test]
fn the_keys_are_those_of_the_reference() {
    let schema = fencepost_dagfile::schema();
    let mut dag = keys(&schema);
    assert!(dag.remove("compat"), "named in the task contract, not in the key reference");
    assert_eq!(dag, reference("DAG"));
    let mut task = keys(&schema["definitions"]["task"]);
    task.retain(|key| !(key.starts_with("on_") && key.ends_with("_callback")));
    assert_eq!(task, reference("task"));
}

#[test]
fn every_key_of_the_schema_is_known_to_the_validation() {
    let schema = fencepost_dagfile::schema();
    let levels = [
        ("", &schema),
        ("tasks: {t: {KEY}}", &schema["definitions"]["task"]),
        ("task_groups: {t: {KEY}}", &schema["definitions"]["task_group"]),
        ("default_args: {KEY}", &schema["definitions"]["default_args"]),
    ];
    for (place, level) in levels {
        for (key, property) in level["properties"].as_object().unwrap() {
            let text = match place {
                "" => format!("{key}: ~"),
                place => place.replace("KEY", &format!("{key}: ~")),
            };
            let found = findings(&text).join("\n");
            assert!(!found.contains("unknown-key"), "{found}");
            let is_later = property["x-since"] == "later";
            assert_eq!(found.contains("not-supported-yet"), is_later, "{text}: {found}");
        }
    }
}

#[test]
fn editors_find_docs_defaults_and_marks() {
    let schema = fencepost_dagfile::schema();
    let task = &schema["definitions"]["task"]["properties"];
    let group = &schema["definitions"]["task_group"]["properties"];
    for level in [&schema["properties"], task, group] {
        for (key, property) in level.as_object().unwrap() {
            assert!(!property["description"].as_str().unwrap_or_default().is_empty(), "{key}");
        }
    }
    assert_eq!(task["retries"]["default"], 0);
    assert_eq!(task["retry_delay"]["default"], "5m");
    assert_eq!(task["trigger_rule"]["enum"].as_array().unwrap().len(), 12);
    assert_eq!(schema["properties"]["overlap"]["enum"].as_array().unwrap().len(), 4);
    let marked: Vec<&String> = task
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, property)| property["x-template"] == true)
        .map(|(key, _)| key)
        .collect();
    assert_eq!(
        marked,
        [
            "run",
            "command",
            "http",
            "trigger_dag",
            "wait",
            "when",
            "map_index_template",
            "env",
            "working_dir",
            "on_success_callback",
            "on_failure_callback",
            "on_retry_callback",
            "on_lost_callback",
            "on_skipped_callback",
        ]
    );
    assert_eq!(schema["properties"]["schema"]["const"], 1);
}
