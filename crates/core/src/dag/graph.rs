//! The graph of a DAG: its order, its cycles, what lies up and down of a task.
//!
//! Nothing here recurses, so a chain of any length costs heap, not stack.

use super::{Task, TaskIndex, WeightRule};
use crate::id::TaskId;
use std::collections::BTreeMap;

/// Most tasks in one DAG.
pub const TASKS_MAX: usize = 50_000;
/// Most task instances that one run may have (mapped tasks count once per element).
pub const INSTANCES_MAX: u64 = 100_000;

/// Why a set of tasks is no DAG.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DagError {
    #[error("a DAG needs at least one task")]
    NoTasks,
    #[error("{0} tasks; the most is {TASKS_MAX}")]
    TooManyTasks(usize),
    #[error("two tasks are called `{0}`")]
    DuplicateTask(TaskId),
    #[error("`{task}` depends on task number {upstream}, which does not exist")]
    UnknownUpstream { task: TaskId, upstream: u32 },
    #[error("`{0}` depends on itself")]
    DependsOnItself(TaskId),
    #[error("the tasks depend on each other in a circle: {}", circle(.0))]
    Cycle(Vec<TaskId>),
    #[error("`{task}` brings the run to {instances} task instances; the most is {INSTANCES_MAX}")]
    TooManyInstances { task: TaskId, instances: u64 },
    #[error("the task group `{group}` is wrong: {reason}")]
    BadGroup { group: TaskId, reason: &'static str },
}

/// `a -> b -> a`; the middle of a very long circle is left out.
fn circle(tasks: &[TaskId]) -> String {
    const SHOWN: usize = 12;
    let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    if names.len() <= SHOWN {
        return names.join(" -> ");
    }
    let (head, tail) = (&names[..SHOWN / 2], &names[names.len() - SHOWN / 2..]);
    let left_out = names.len() - SHOWN;
    format!("{} -> ... {left_out} more ... -> {}", head.join(" -> "), tail.join(" -> "))
}

/// Checks names, edges, circles and sizes.
pub(super) fn check(tasks: &[Task]) -> Result<(), DagError> {
    if tasks.is_empty() {
        return Err(DagError::NoTasks);
    }
    if tasks.len() > TASKS_MAX {
        return Err(DagError::TooManyTasks(tasks.len()));
    }
    let mut names = BTreeMap::new();
    for (index, task) in tasks.iter().enumerate() {
        if names.insert(&task.task_id, index).is_some() {
            return Err(DagError::DuplicateTask(task.task_id.clone()));
        }
        check_upstreams(index, task, tasks.len())?;
    }
    check_instances(tasks)?;
    topological_order(tasks).map(drop)
}

fn check_upstreams(index: usize, task: &Task, count: usize) -> Result<(), DagError> {
    for upstream in &task.depends_on {
        if upstream.at() == index {
            return Err(DagError::DependsOnItself(task.task_id.clone()));
        }
        if upstream.at() >= count {
            let task = task.task_id.clone();
            return Err(DagError::UnknownUpstream { task, upstream: upstream.0 });
        }
    }
    Ok(())
}

fn check_instances(tasks: &[Task]) -> Result<(), DagError> {
    let mut instances = 0_u64;
    for task in tasks {
        instances = instances.saturating_add(task.instance_count());
        if instances > INSTANCES_MAX {
            return Err(DagError::TooManyInstances { task: task.task_id.clone(), instances });
        }
    }
    Ok(())
}

/// The tasks that depend on each task, ascending.
pub fn downstream_edges(tasks: &[Task]) -> Vec<Vec<TaskIndex>> {
    let mut edges = vec![Vec::new(); tasks.len()];
    for (index, task) in tasks.iter().enumerate() {
        for upstream in &task.depends_on {
            if let Some(list) = edges.get_mut(upstream.at()) {
                list.push(TaskIndex::new(index));
            }
        }
    }
    edges
}

/// An order in which every task comes after its upstreams: by layers, in the order of the file
/// within a layer. Fails with the circle if there is one. Edges that point nowhere count for none.
pub fn topological_order(tasks: &[Task]) -> Result<Vec<TaskIndex>, DagError> {
    let down = downstream_edges(tasks);
    let mut waits_for = vec![0_u32; tasks.len()];
    for task in down.iter().flatten() {
        waits_for[task.at()] += 1;
    }
    let mut order: Vec<TaskIndex> =
        (0..tasks.len()).filter(|i| waits_for[*i] == 0).map(TaskIndex::new).collect();
    let mut done = 0;
    while let Some(task) = order.get(done).copied() {
        done += 1;
        for next in &down[task.at()] {
            waits_for[next.at()] -= 1;
            if waits_for[next.at()] == 0 {
                order.push(*next);
            }
        }
    }
    if order.len() == tasks.len() {
        Ok(order)
    } else {
        Err(DagError::Cycle(find_circle(tasks, &waits_for)))
    }
}

/// Walks upstream among the tasks that still wait until one comes up twice: each of them has an
/// upstream that waits too, so the walk cannot end otherwise.
fn find_circle(tasks: &[Task], waits_for: &[u32]) -> Vec<TaskId> {
    let waits = |task: &TaskIndex| waits_for.get(task.at()).is_some_and(|n| *n > 0);
    let mut seen_at = vec![None; tasks.len()];
    let mut path: Vec<TaskIndex> = Vec::new();
    let mut current = (0..tasks.len()).map(TaskIndex::new).find(waits);
    while let Some(task) = current {
        if let Some(first) = seen_at[task.at()] {
            path.drain(..first);
            path.push(task);
            break;
        }
        seen_at[task.at()] = Some(path.len());
        path.push(task);
        current = tasks[task.at()].depends_on.iter().copied().find(waits);
    }
    path.iter().map(|task| tasks[task.at()].task_id.clone()).collect()
}

/// Every task that depends on one of `from`, however indirectly, ascending, without `from` itself.
pub fn descendants(tasks: &[Task], from: &[TaskIndex]) -> Vec<TaskIndex> {
    reach(from, &downstream_edges(tasks))
}

/// Every task that one of `from` depends on, however indirectly, ascending, without `from` itself.
pub fn ancestors(tasks: &[Task], from: &[TaskIndex]) -> Vec<TaskIndex> {
    let edges: Vec<Vec<TaskIndex>> = tasks.iter().map(|task| task.depends_on.clone()).collect();
    reach(from, &edges)
}

fn reach(from: &[TaskIndex], edges: &[Vec<TaskIndex>]) -> Vec<TaskIndex> {
    let mut seen = vec![false; edges.len()];
    let mut left: Vec<TaskIndex> = from.to_vec();
    let mut found = Vec::new();
    while let Some(task) = left.pop() {
        for next in edges.get(task.at()).into_iter().flatten() {
            if let Some(seen) = seen.get_mut(next.at()).filter(|seen| !**seen) {
                *seen = true;
                found.push(*next);
                left.push(*next);
            }
        }
    }
    found.retain(|task| !from.contains(task));
    found.sort_unstable();
    found
}

/// The effective priority of each task: its own weight, by its `weight_rule` with those of all its
/// descendants or ancestors, clamped to `i32`. The source of the rules: Airflow's
/// `task/priority_strategy.py`. An order cannot be had of a circle, so there the weights are their own.
pub fn priority_weights(tasks: &[Task]) -> Vec<i32> {
    let own: Vec<i64> = tasks.iter().map(|task| i64::from(task.limits.priority_weight)).collect();
    let mut order = topological_order(tasks).unwrap_or_default();
    let up: Vec<Vec<TaskIndex>> = tasks.iter().map(|task| task.depends_on.clone()).collect();
    let has = |rule| tasks.iter().any(|task| task.limits.weight_rule == rule);
    let upstream = if has(WeightRule::Upstream) { sums(&own, &order, &up) } else { own.clone() };
    order.reverse();
    let downstream = if has(WeightRule::Downstream) {
        sums(&own, &order, &downstream_edges(tasks))
    } else {
        own.clone()
    };
    let effective = |(index, task): (usize, &Task)| {
        let sum = match task.limits.weight_rule {
            WeightRule::Absolute => own[index],
            WeightRule::Upstream => upstream[index],
            WeightRule::Downstream => downstream[index],
        };
        i32::try_from(sum).unwrap_or(if sum < 0 { i32::MIN } else { i32::MAX })
    };
    tasks.iter().enumerate().map(effective).collect()
}

/// For each task the sum of its own weight and of those reachable over `edges`, each counted once.
///
/// `order` has every task after those its edges lead to. Reachability is kept as one bit per task,
/// 64 tasks at a time, and a word of bits is summed by bytes from a table: a chain of 10,000 costs
/// 10,000 x 157 words, not 50 million additions.
fn sums(own: &[i64], order: &[TaskIndex], edges: &[Vec<TaskIndex>]) -> Vec<i64> {
    let mut totals = if order.is_empty() { own.to_vec() } else { vec![0; own.len()] };
    let mut reached = vec![0_u64; own.len()];
    for (word, weights) in own.chunks(64).enumerate() {
        let table = ByteSums::new(weights);
        for task in order {
            let itself = if task.at() / 64 == word { 1 << (task.at() % 64) } else { 0 };
            let bits = edges[task.at()].iter().fold(itself, |bits, next| bits | reached[next.at()]);
            reached[task.at()] = bits;
            totals[task.at()] += table.sum(bits);
        }
    }
    totals
}

/// The sum of up to 64 weights selected by bits: eight tables of 256 sums.
struct ByteSums(Vec<[i64; 256]>);

impl ByteSums {
    fn new(weights: &[i64]) -> Self {
        let table = |weights: &[i64]| {
            let mut sums = [0; 256];
            for bits in 1..256_usize {
                let lowest = bits.trailing_zeros() as usize;
                sums[bits] = sums[bits & (bits - 1)] + weights.get(lowest).copied().unwrap_or(0);
            }
            sums
        };
        Self(weights.chunks(8).map(table).collect())
    }

    fn sum(&self, bits: u64) -> i64 {
        let bytes = bits.to_le_bytes();
        self.0.iter().zip(bytes).map(|(table, byte)| table[usize::from(byte)]).sum()
    }
}
