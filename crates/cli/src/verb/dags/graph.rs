//! `fencepost dags graph`: the tasks as Graphviz or Mermaid text, groups as clusters.

use super::GraphFormat;
use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use fencepost_api::rest::{DagDetail, DagTask, DagTaskGroup, routes};
use std::collections::{BTreeMap, BTreeSet};

/// Prints it.
pub(super) fn run(cx: &Cx, client: &Client, dag: &str, format: GraphFormat) -> Outcome<()> {
    let detail: DagDetail = client.read(routes::DAG_SHOW, &[dag])?;
    cx.out.print(&match format {
        GraphFormat::Dot => dot(&detail),
        GraphFormat::Mermaid => mermaid(&detail),
    })
}

/// Ids of tasks and groups need no escapes: letters, digits, `_.-`.
fn dot(detail: &DagDetail) -> String {
    let mut text =
        format!("digraph \"{}\" {{\n  rankdir=LR; node [shape=box]\n", detail.dag.dag_id);
    let open = |group: &DagTaskGroup| {
        let id = &group.group_id;
        let tooltip = group.tooltip.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ");
        format!("subgraph \"cluster_{id}\" {{ label=\"{id}\"; tooltip=\"{tooltip}\"")
    };
    let node = |task: &DagTask| format!("\"{}\"", task.task_id);
    let clusters = Clusters { detail, open: &open, node: &node, close: "}" };
    clusters.write(None, 1, &mut text);
    for task in &detail.tasks {
        for upstream in &task.depends_on {
            text.push_str(&format!("  \"{upstream}\" -> \"{}\"\n", task.task_id));
        }
    }
    text + "}\n"
}

/// Nodes and clusters by number: Mermaid reserves words such as `end`.
fn mermaid(detail: &DagDetail) -> String {
    let numbers: BTreeMap<&str, usize> =
        detail.tasks.iter().enumerate().map(|(i, task)| (task.task_id.as_str(), i)).collect();
    let groups: BTreeMap<&str, usize> = detail
        .task_groups
        .iter()
        .enumerate()
        .map(|(i, group)| (group.group_id.as_str(), i))
        .collect();
    let number = |of: &BTreeMap<&str, usize>, id: &str| of.get(id).copied().unwrap_or_default();
    let mut text = String::from("flowchart LR\n");
    let open = |group: &DagTaskGroup| {
        format!("subgraph g{}[\"{}\"]", number(&groups, &group.group_id), group.group_id)
    };
    let node =
        |task: &DagTask| format!("t{}[\"{}\"]", number(&numbers, &task.task_id), task.task_id);
    let clusters = Clusters { detail, open: &open, node: &node, close: "end" };
    clusters.write(None, 1, &mut text);
    for (index, task) in detail.tasks.iter().enumerate() {
        for upstream in task.depends_on.iter().filter_map(|id| numbers.get(id.as_str())) {
            text.push_str(&format!("  t{upstream} --> t{index}\n"));
        }
    }
    text
}

/// The nodes of a graph within the clusters that their groups are.
struct Clusters<'a> {
    detail: &'a DagDetail,
    open: &'a dyn Fn(&DagTaskGroup) -> String,
    node: &'a dyn Fn(&DagTask) -> String,
    close: &'a str,
}

impl Clusters<'_> {
    /// The tasks and groups that stand in a group, or in none.
    fn write(&self, group: Option<&DagTaskGroup>, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        let all = &self.detail.task_groups;
        let own: BTreeSet<&str> = if let Some(group) = group {
            group.tasks.iter().map(String::as_str).collect()
        } else {
            let grouped: BTreeSet<&str> =
                all.iter().flat_map(|group| &group.tasks).map(String::as_str).collect();
            let ids = self.detail.tasks.iter().map(|task| task.task_id.as_str());
            ids.filter(|id| !grouped.contains(id)).collect()
        };
        for task in self.detail.tasks.iter().filter(|task| own.contains(task.task_id.as_str())) {
            text.push_str(&format!("{indent}{}\n", (self.node)(task)));
        }
        let parent = group.map(|group| &group.group_id);
        for inner in all.iter().filter(|inner| inner.parent.as_ref() == parent) {
            text.push_str(&format!("{indent}{}\n", (self.open)(inner)));
            self.write(Some(inner), depth + 1, text);
            text.push_str(&format!("{indent}{}\n", self.close));
        }
    }
}
