//! Which task instances a run is made of.

use crate::dag::{Dag, Task, TaskIndex};
use crate::trigger_rule::UpstreamCounts;
use serde_json::{Map, Value};

/// The map index of an instance that is not mapped.
pub const NOT_MAPPED: i32 = -1;

/// The instances of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instances {
    pub task: TaskIndex,
    /// Lowest map index: the head.
    pub first: i32,
    pub count: u32,
    /// Its `expand` lists are empty: the one instance is skipped.
    pub empty: bool,
    pub upstream: UpstreamCounts,
}

/// The instances of every task of a run, in the order of the tasks.
pub fn instances(dag: &Dag) -> Vec<Instances> {
    let widths: Vec<u32> = dag.tasks.iter().map(width).collect();
    let shown = |index: &TaskIndex| widths.get(index.0 as usize).map_or(0, |w| (*w).max(1));
    (0_u32..)
        .zip(&dag.tasks)
        .zip(&widths)
        .map(|((index, task), width)| Instances {
            task: TaskIndex(index),
            first: if task.expand.is_empty() || *width == 0 { NOT_MAPPED } else { 0 },
            count: (*width).max(1),
            empty: *width == 0,
            upstream: UpstreamCounts {
                total: task.depends_on.iter().map(shown).sum(),
                ..UpstreamCounts::default()
            },
        })
        .collect()
}

/// How many instances a task expands to: 1 if it is not mapped.
pub fn width(task: &Task) -> u32 {
    let product = task
        .expand
        .iter()
        .map(|(_, list)| u32::try_from(list.len()).unwrap_or(u32::MAX))
        .fold(1_u32, u32::saturating_mul);
    if task.expand.is_empty() { 1 } else { product }
}

/// The elements of `expand` that belong to a map index, in the order of the keys; the last key
/// varies fastest.
pub fn map_element(task: &Task, map_index: i32) -> Map<String, Value> {
    let mut out = Map::new();
    let Ok(mut rest) = usize::try_from(map_index) else { return out };
    for (key, list) in task.expand.iter().rev() {
        if list.is_empty() {
            return Map::new();
        }
        out.insert(key.clone(), list.get(rest % list.len()).cloned().unwrap_or(Value::Null));
        rest /= list.len();
    }
    task.expand.iter().filter_map(|(k, _)| out.get(k).map(|v| (k.clone(), v.clone()))).collect()
}
