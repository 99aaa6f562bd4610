//! Which task instances a run is made of.

use crate::dag::{Dag, Elements, INSTANCES_MAX, Task, TaskIndex};
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
    /// Its `expand` is not known yet: the one instance becomes those that its elements give.
    pub dynamic: bool,
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
            first: if !task.is_mapped() || task.is_dynamic() || *width == 0 {
                NOT_MAPPED
            } else {
                0
            },
            count: (*width).max(1),
            empty: *width == 0,
            dynamic: task.is_dynamic(),
            upstream: UpstreamCounts {
                total: task.depends_on.iter().map(shown).sum(),
                ..UpstreamCounts::default()
            },
        })
        .collect()
}

/// How many instances a task has when its run begins: 1 if it is not mapped, or not known yet.
pub fn width(task: &Task) -> u32 {
    u32::try_from(task.instance_count()).unwrap_or(u32::MAX)
}

/// The elements of a literal `expand` that belong to a map index, in the order of the keys; the last
/// key varies fastest.
pub fn map_element(task: &Task, map_index: i32) -> Map<String, Value> {
    let lists: Option<Vec<(&str, &[Value])>> = task.expand.iter().map(literal).collect();
    lists.map(|lists| element(&lists, map_index)).unwrap_or_default()
}

fn literal((key, elements): &(String, Elements)) -> Option<(&str, &[Value])> {
    match elements {
        Elements::List(values) => Some((key, values)),
        Elements::Template(_) => None,
    }
}

/// An `expand` that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error("`{key}` of `expand` must give a list, and gives {found}")]
    NoList { key: String, found: &'static str },
    #[error("`expand` gives {count} instances; the most is {INSTANCES_MAX}")]
    TooMany { count: u64 },
}

/// The elements of each instance of a mapped task, by map index, from what each key gave.
pub fn expansion(lists: &[(String, Value)]) -> Result<Vec<Map<String, Value>>, ExpandError> {
    let mut read: Vec<(&str, &[Value])> = Vec::new();
    for (key, value) in lists {
        let Value::Array(list) = value else {
            return Err(ExpandError::NoList { key: key.clone(), found: kind(value) });
        };
        read.push((key, list));
    }
    let count = read.iter().fold(1_u64, |n, (_, list)| n.saturating_mul(list.len() as u64));
    match i32::try_from(count) {
        Ok(last) if count <= INSTANCES_MAX => Ok((0..last).map(|n| element(&read, n)).collect()),
        Ok(_) | Err(_) => Err(ExpandError::TooMany { count }),
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

fn element(lists: &[(&str, &[Value])], map_index: i32) -> Map<String, Value> {
    let Ok(mut rest) = usize::try_from(map_index) else { return Map::new() };
    let mut out = Vec::with_capacity(lists.len());
    for (key, list) in lists.iter().rev() {
        if list.is_empty() {
            return Map::new();
        }
        out.push(((*key).to_owned(), list.get(rest % list.len()).cloned().unwrap_or(Value::Null)));
        rest /= list.len();
    }
    out.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn expand(lists: &Value) -> Result<Vec<Value>, ExpandError> {
        let lists: Vec<(String, Value)> = lists.as_object().unwrap().clone().into_iter().collect();
        expansion(&lists).map(|all| all.into_iter().map(Value::Object).collect())
    }

    #[test]
    fn what_templates_give_is_expanded_as_literal_lists_are() {
        let all = expand(&json!({ "a": [1, 2], "b": ["x", "y"] })).unwrap();
        assert_eq!(all[1], json!({ "a": 1, "b": "y" }));
        assert_eq!((all.len(), &all[2]), (4, &json!({ "a": 2, "b": "x" })));
        assert_eq!(expand(&json!({ "a": [], "b": [1] })).unwrap(), Vec::<Value>::new());
    }

    #[test]
    fn what_gives_no_list_or_too_many_is_refused() {
        let text = |lists: &Value| expand(lists).unwrap_err().to_string();
        assert_eq!(text(&json!({ "a": "x" })), "`a` of `expand` must give a list, and gives text");
        let many: Vec<u32> = (0..1_000).collect();
        let refused = text(&json!({ "a": many, "b": many }));
        assert!(refused.starts_with("`expand` gives 1000000 instances"), "{refused}");
    }
}
