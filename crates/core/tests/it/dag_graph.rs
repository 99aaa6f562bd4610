//! The graph of a DAG: what is refused, orders, reachability and weights against naive oracles.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fencepost_core::dag::{
    Action, Dag, DagError, Elements, Task, TaskIndex, WeightRule, ancestors, descendants,
    priority_weights, topological_order,
};
use fencepost_core::id::{DagId, TaskId};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;

fn task(name: &str, upstreams: &[u32]) -> Task {
    let mut task = Task::with_defaults(TaskId::new(name).unwrap(), Action::Noop).unwrap();
    task.depends_on = upstreams.iter().map(|i| TaskIndex(*i)).collect();
    task
}

fn dag(tasks: Vec<Task>) -> Result<Dag, DagError> {
    Dag::with_defaults(DagId::new("d").unwrap(), tasks)
}

#[test]
fn mistakes_are_named() {
    let text = |tasks| dag(tasks).unwrap_err().to_string();
    assert_eq!(text(vec![]), "a DAG needs at least one task");
    assert_eq!(text(vec![task("a", &[]), task("a", &[])]), "two tasks are called `a`");
    assert_eq!(text(vec![task("a", &[0])]), "`a` depends on itself");
    assert_eq!(text(vec![task("a", &[7])]), "`a` depends on task number 7, which does not exist");
    let circle = vec![task("x", &[]), task("a", &[0, 3]), task("b", &[1]), task("c", &[2])];
    let circle = text(circle);
    assert!(circle.ends_with("a -> c -> b -> a"), "{circle}");
}

#[test]
fn upstreams_are_sorted_and_repeats_removed() {
    let dag = dag(vec![task("a", &[]), task("b", &[]), task("c", &[1, 0, 1])]).unwrap();
    assert_eq!(dag.tasks[2].depends_on, [TaskIndex(0), TaskIndex(1)]);
    assert_eq!(dag.index_of("c"), Some(TaskIndex(2)));
}

#[test]
fn a_cross_product_is_bounded() {
    let mut wide = task("a", &[]);
    let values = |n: i32| Elements::List((0..n).map(Value::from).collect());
    wide.expand = vec![("x".into(), values(400)), ("y".into(), values(250))];
    assert!(dag(vec![wide.clone()]).is_ok());
    assert!(matches!(
        dag(vec![wide.clone(), task("b", &[])]),
        Err(DagError::TooManyInstances { instances: 100_001, .. })
    ));
    wide.expand.extend((0..40).map(|i| (format!("k{i}"), values(400))));
    assert!(matches!(dag(vec![wide]), Err(DagError::TooManyInstances { .. })));
}

#[test]
fn a_chain_and_a_circle_of_20_000_need_no_stack() {
    let chain = |first: &[u32]| {
        let mut tasks = vec![task("t0", first)];
        tasks.extend((1..20_000).map(|i| task(&format!("t{i}"), &[i - 1])));
        tasks
    };
    let dag = dag(chain(&[])).unwrap();
    assert_eq!(descendants(&dag.tasks, &[TaskIndex(0)]).len(), 19_999);
    assert_eq!(priority_weights(&dag.tasks)[0], 20_000);
    let error = self::dag(chain(&[19_999])).unwrap_err();
    let DagError::Cycle(circle) = &error else { panic!("{error}") };
    assert_eq!(circle.len(), 20_001);
    assert!(error.to_string().len() < 400, "{error}");
}

#[test]
fn weights_are_clamped() {
    let mut tasks = vec![task("a", &[]), task("b", &[0]), task("c", &[0])];
    for task in &mut tasks {
        task.limits.priority_weight = i32::MAX;
    }
    assert_eq!(priority_weights(&tasks)[0], i32::MAX);
    for task in &mut tasks {
        task.limits.priority_weight = i32::MIN;
    }
    assert_eq!(priority_weights(&tasks)[0], i32::MIN);
}

/// Random graphs whose edges lead from smaller to larger numbers, shuffled by `rename`.
fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let edges = prop::collection::vec((0_u32..150, 0_u32..150), 0..400);
    let rules = prop::collection::vec((0_usize..3, -5_i32..100), 150);
    (1_u32..150, edges, rules).prop_map(|(count, edges, rules)| {
        let mut tasks: Vec<Task> = (0..count).map(|i| task(&format!("t{i}"), &[])).collect();
        for (from, to) in edges {
            let (from, to) = (from % count, to % count);
            if from < to {
                tasks[(count - 1 - to) as usize].depends_on.push(TaskIndex(count - 1 - from));
            }
        }
        for (task, (rule, weight)) in tasks.iter_mut().zip(rules) {
            let all = [WeightRule::Downstream, WeightRule::Upstream, WeightRule::Absolute];
            task.limits.weight_rule = all[rule];
            task.limits.priority_weight = weight;
        }
        dag(tasks).unwrap().tasks
    })
}

/// All tasks reachable from `from` by repeating single steps until nothing is added.
fn naive_reach(tasks: &[Task], from: usize, downstream: bool) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([from]);
    loop {
        let mut more = found.clone();
        for (index, task) in tasks.iter().enumerate() {
            for upstream in task.depends_on.iter().map(|t| t.at()) {
                let (near, far) = if downstream { (upstream, index) } else { (index, upstream) };
                if found.contains(&near) {
                    more.insert(far);
                }
            }
        }
        if more == found {
            return found;
        }
        found = more;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn an_order_has_each_task_once_and_after_its_upstreams(tasks in tasks()) {
        let order = topological_order(&tasks).unwrap();
        let place = |task: &TaskIndex| order.iter().position(|t| t == task).unwrap();
        prop_assert_eq!(order.len(), tasks.len());
        for (index, task) in tasks.iter().enumerate() {
            for upstream in &task.depends_on {
                prop_assert!(place(upstream) < place(&TaskIndex::new(index)));
            }
        }
    }

    #[test]
    fn reach_and_weights_equal_the_naive_ones(tasks in tasks()) {
        let weights = priority_weights(&tasks);
        let sum = |set: &BTreeSet<usize>| -> i32 {
            set.iter().map(|i| tasks[*i].limits.priority_weight).sum()
        };
        for index in 0..tasks.len() {
            let (down, up) = (naive_reach(&tasks, index, true), naive_reach(&tasks, index, false));
            let expected = match tasks[index].limits.weight_rule {
                WeightRule::Downstream => sum(&down),
                WeightRule::Upstream => sum(&up),
                WeightRule::Absolute => tasks[index].limits.priority_weight,
            };
            prop_assert_eq!(weights[index], expected);
            let without_itself = |set: BTreeSet<usize>| -> Vec<TaskIndex> {
                set.into_iter().filter(|i| *i != index).map(TaskIndex::new).collect()
            };
            let from = [TaskIndex::new(index)];
            prop_assert_eq!(descendants(&tasks, &from), without_itself(down));
            prop_assert_eq!(ancestors(&tasks, &from), without_itself(up));
        }
    }

    #[test]
    fn a_reported_circle_is_one(tasks in tasks(), from in 0_usize..150, to in 0_usize..150) {
        let mut tasks = tasks;
        let (from, to) = (from % tasks.len(), to % tasks.len());
        tasks[to].depends_on.push(TaskIndex::new(from));
        if let Err(DagError::Cycle(circle)) = topological_order(&tasks) {
            prop_assert_eq!(circle.first(), circle.last());
            let at = |id: &TaskId| tasks.iter().position(|t| t.task_id == *id).unwrap();
            for pair in circle.windows(2) {
                let upstream = TaskIndex::new(at(&pair[1]));
                prop_assert!(tasks[at(&pair[0])].depends_on.contains(&upstream));
            }
        } else {
            prop_assert!(from != to && !naive_reach(&tasks, to, true).contains(&from));
        }
    }
}
