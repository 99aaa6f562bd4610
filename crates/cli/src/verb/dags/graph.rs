//! `fencepost dags graph`: the tasks as Graphviz or Mermaid text.

use super::GraphFormat;
use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use fencepost_api::rest::{DagDetail, routes};
use std::collections::BTreeMap;

/// Prints it.
pub(super) fn run(cx: &Cx, client: &Client, dag: &str, format: GraphFormat) -> Outcome<()> {
    let detail: DagDetail = client.read(routes::DAG_SHOW, &[dag])?;
    cx.out.print(&match format {
        GraphFormat::Dot => dot(&detail),
        GraphFormat::Mermaid => mermaid(&detail),
    })
}

/// Task ids need no escapes: letters, digits, `_.-`.
fn dot(detail: &DagDetail) -> String {
    let mut text =
        format!("digraph \"{}\" {{\n  rankdir=LR; node [shape=box]\n", detail.dag.dag_id);
    for task in &detail.tasks {
        text.push_str(&format!("  \"{}\"\n", task.task_id));
        for upstream in &task.depends_on {
            text.push_str(&format!("  \"{upstream}\" -> \"{}\"\n", task.task_id));
        }
    }
    text + "}\n"
}

/// Nodes by number: Mermaid reserves words such as `end`.
fn mermaid(detail: &DagDetail) -> String {
    let numbers: BTreeMap<&str, usize> =
        detail.tasks.iter().enumerate().map(|(i, task)| (task.task_id.as_str(), i)).collect();
    let mut text = String::from("flowchart LR\n");
    for (index, task) in detail.tasks.iter().enumerate() {
        text.push_str(&format!("  t{index}[\"{}\"]\n", task.task_id));
        for upstream in task.depends_on.iter().filter_map(|id| numbers.get(id.as_str())) {
            text.push_str(&format!("  t{upstream} --> t{index}\n"));
        }
    }
    text
}
