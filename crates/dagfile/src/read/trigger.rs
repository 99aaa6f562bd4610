//! `trigger_dag`: which run of which DAG a task makes.

use super::fields::{Fields, item_type};
use super::templates::{Template, TemplateKind};
use crate::diagnostic::{Findings, quoted};
use crate::suggest::did_you_mean;
use crate::template;
use crate::yaml::{Entry, Node};
use fencepost_core::dag::TriggerDag;

const KEYS: [&str; 4] = ["dag_id", "run_id", "logical_date", "params"];

/// What is triggered: the name of a DAG, or a mapping.
pub(super) fn read(
    fields: &Fields<'_>,
    entry: &Entry,
    findings: &mut Findings,
) -> Option<TriggerDag> {
    let Some(entries) = entry.value.as_map() else {
        let dag_id = fields.text("trigger_dag", findings).filter(|name| !name.trim().is_empty());
        if dag_id.is_none() {
            let hint = "write trigger_dag: other_dag, or {dag_id: other_dag, params: {...}}";
            let message = "`trigger_dag` names no DAG";
            findings.error(entry.value.place, "bad-value", message, hint);
        }
        return dag_id.map(|dag_id| TriggerDag { dag_id, ..TriggerDag::default() });
    };
    let before = findings.error_count();
    for other in entries.iter().filter(|other| !KEYS.contains(&other.key.as_str())) {
        let near = did_you_mean(&other.key, KEYS.into_iter());
        let hint = if near.is_empty() { format!("one of {}", KEYS.join(", ")) } else { near };
        let message = format!("unknown key {}", quoted(&other.key));
        findings.error(other.key_place, "unknown-key", message, hint);
    }
    let Some(dag_id) = text(entries, "dag_id", findings) else {
        let message = "`trigger_dag` names no DAG";
        findings.error(entry.key_place, "bad-value", message, "give it a `dag_id`");
        return None;
    };
    let trigger = TriggerDag {
        dag_id,
        run_id: text(entries, "run_id", findings),
        logical_date: text(entries, "logical_date", findings),
        params: params(entries, findings),
    };
    (findings.error_count() == before).then_some(trigger)
}

fn text(entries: &[Entry], name: &str, findings: &mut Findings) -> Option<String> {
    let value = &entries.iter().find(|entry| entry.key == name)?.value;
    if value.is_null() {
        return None;
    }
    let written = value.as_written();
    if written.is_none() {
        item_type(name, value, "text", findings);
    }
    written.map(str::to_owned)
}

fn params(entries: &[Entry], findings: &mut Findings) -> Vec<(String, serde_json::Value)> {
    let Some(entry) = entries.iter().find(|entry| entry.key == "params") else { return Vec::new() };
    let Some(params) = entry.value.as_map() else {
        item_type("params", &entry.value, "a mapping", findings);
        return Vec::new();
    };
    let mut read = Vec::new();
    for param in params {
        match param.value.to_json() {
            Ok(value) => read.push((param.key.clone(), value)),
            Err(place) => super::expand::not_json(place, findings),
        }
    }
    read
}

/// The templates of `trigger_dag`. A param that is one expression keeps the type of its value.
pub(super) fn templates<'a>(fields: &Fields<'a>) -> Vec<Template<'a>> {
    let Some(field) = fields.get("trigger_dag") else { return Vec::new() };
    let value = &field.entry.value;
    let Some(entries) = value.as_map() else { return vec![of("trigger_dag".into(), value)] };
    let params = entries.iter().filter(|entry| entry.key == "params");
    let params = params.filter_map(|entry| entry.value.as_map()).flatten();
    let plain = entries.iter().filter(|entry| KEYS.contains(&entry.key.as_str()));
    plain.chain(params).filter(|entry| entry.value.as_text().is_some()).map(named).collect()
}

fn named(entry: &Entry) -> Template<'_> {
    of(format!("trigger_dag.{}", entry.key), &entry.value)
}

fn of(field: String, node: &Node) -> Template<'_> {
    let is_expression = node.as_text().is_some_and(template::is_expression);
    let kind = if is_expression { TemplateKind::Elements } else { TemplateKind::Text };
    Template { field, node, kind }
}
