//! The pure plans: which instances a run has, where an end leads, how a run ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fencepost_core::dag::{Action, Dag, Elements, Task, TaskIndex};
use fencepost_core::id::{DagId, TaskId};
use fencepost_core::lifecycle::{RunEvent, TiEvent, run_next, ti_next};
use fencepost_core::plan::forward::{self, End, Gates, Move, decide};
use fencepost_core::plan::rollup::run_end;
use fencepost_core::plan::runs::{NOT_MAPPED, instances, map_element, width};
use fencepost_core::state::{RunState, StopReason, TiState};
use fencepost_core::trigger_rule::UpstreamCounts;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;

fn task(name: &str, upstreams: &[u32]) -> Task {
    let action = Action::Run("true".into());
    let mut task = Task::with_defaults(TaskId::new(name).unwrap(), action).unwrap();
    task.depends_on = upstreams.iter().map(|up| TaskIndex(*up)).collect();
    task
}

fn mapped(name: &str, upstreams: &[u32], sizes: &[usize]) -> Task {
    let mut task = task(name, upstreams);
    let list = |n: &usize| (0..*n).map(|i| json!(i)).collect();
    let keyed = |(key, n): (char, &usize)| (key.to_string(), Elements::List(list(n)));
    task.expand = ('a'..).zip(sizes).map(keyed).collect();
    task
}

fn dag(tasks: Vec<Task>) -> Dag {
    Dag::with_defaults(DagId::new("d").unwrap(), tasks).unwrap()
}

#[test]
fn instances_are_counted_with_their_upstreams() {
    let dag = dag(vec![
        task("a", &[]),
        mapped("three", &[0], &[3]),
        mapped("none", &[0], &[0]),
        mapped("six", &[1, 2], &[2, 3]),
        task("end", &[1, 2, 3]),
    ]);
    let shown: Vec<_> = instances(&dag)
        .iter()
        .map(|i| (i.first, i.count, i.empty, i.upstream.total, i.upstream.done()))
        .collect();
    let expected = [
        (NOT_MAPPED, 1, false, 0, 0),
        (0, 3, false, 1, 0),
        // An empty expansion has one instance, which is skipped and counted as an upstream.
        (NOT_MAPPED, 1, true, 1, 0),
        (0, 6, false, 4, 0),
        (NOT_MAPPED, 1, false, 10, 0),
    ];
    assert_eq!(shown, expected);
}

proptest! {
    /// Each map index has an element of its own, and every element of the product has an index.
    #[test]
    fn map_elements_are_the_cross_product(sizes in prop::collection::vec(1_usize..5, 1..4)) {
        let task = mapped("m", &[], &sizes);
        let count = width(&task);
        prop_assert_eq!(u64::from(count), task.instance_count());
        let elements: BTreeSet<String> = (0..i32::try_from(count).unwrap())
            .map(|index| serde_json::to_string(&map_element(&task, index)).unwrap())
            .collect();
        prop_assert_eq!(elements.len(), sizes.iter().product::<usize>());
        let first = map_element(&task, 0);
        let keys: Vec<&String> = task.expand.iter().map(|(key, _)| key).collect();
        prop_assert_eq!(first.keys().collect::<Vec<_>>(), keys);
        prop_assert!(map_element(&task, NOT_MAPPED).is_empty());
    }

    /// I7: counting ends in batches is counting them one by one, in whatever order they come.
    #[test]
    fn i7_batches_of_ends_add_up(
        ends in prop::collection::vec((0_u32..3, prop::sample::select(TiState::ALL)), 0..30),
        cut in 0_usize..30,
    ) {
        let dag = dag(vec![task("a", &[]), task("b", &[0]), task("c", &[0, 1]), task("d", &[2])]);
        let downstreams: Vec<Vec<TaskIndex>> = vec![
            vec![TaskIndex(1), TaskIndex(2)], vec![TaskIndex(2)], vec![TaskIndex(3)], vec![],
        ];
        let ends: Vec<End> =
            ends.into_iter().map(|(task, state)| End { task: TaskIndex(task), state }).collect();
        let (first, second) = ends.split_at(cut.min(ends.len()));
        for (index, task) in (0..).map(TaskIndex).zip(&dag.tasks) {
            let mut counts = UpstreamCounts::default();
            for batch in [second, first] {
                if let Some(delta) = forward::deltas(&downstreams, batch).get(&index) {
                    counts = forward::add(counts, delta);
                }
            }
            let finished = |end: &&End| {
                task.depends_on.contains(&end.task) && end.state.is_finished()
            };
            prop_assert_eq!(counts.done() as usize, ends.iter().filter(finished).count());
            let succeeded = |end: &&End| finished(end) && end.state == TiState::Success;
            prop_assert_eq!(counts.success as usize, ends.iter().filter(succeeded).count());
        }
    }
}

#[test]
fn a_task_is_decided_by_its_rule_then_its_past_then_its_condition() {
    let mut gated = task("b", &[0]);
    gated.depends_on_past = true;
    gated.when = Some("x".into());
    let mut nothing = task("c", &[0]);
    nothing.action = Action::Noop;
    let dag = dag(vec![task("a", &[]), gated, nothing]);
    let counts =
        |success, failed| UpstreamCounts { total: 1, success, failed, ..Default::default() };
    let gates = |past_ok, when| Gates { past_ok, when, ..Gates::default() };
    let b = |counts, gates| decide(&dag, TaskIndex(1), &counts, gates);
    let open = gates(None, None);
    let ready = Move::Apply(TiEvent::Ready, "trigger_rule");
    assert_eq!(decide(&dag, TaskIndex(0), &UpstreamCounts::default(), open), ready);
    assert_eq!(b(counts(0, 0), open), Move::Wait);
    assert_eq!(b(counts(0, 1), open), Move::Apply(TiEvent::UpstreamFail, "upstream_failed"));
    assert_eq!(b(counts(1, 0), gates(Some(false), None)), Move::WaitForPast);
    assert_eq!(b(counts(1, 0), gates(Some(false), Some(Ok(true)))), Move::WaitForPast);
    assert_eq!(b(counts(1, 0), gates(Some(true), None)), Move::Evaluate);
    assert_eq!(b(counts(1, 0), gates(None, None)), Move::Evaluate);
    assert_eq!(b(counts(1, 0), gates(None, Some(Ok(true)))), ready);
    let skip = Move::Apply(TiEvent::Skip, "when");
    assert_eq!(b(counts(1, 0), gates(None, Some(Ok(false)))), skip);
    let wrong = Move::Apply(TiEvent::ConditionError, "template_error");
    assert_eq!(b(counts(1, 0), gates(None, Some(Err(())))), wrong);
    let done = Move::Apply(TiEvent::Complete, "noop");
    assert_eq!(decide(&dag, TaskIndex(2), &counts(1, 0), open), done);
    assert_eq!(decide(&dag, TaskIndex(9), &counts(1, 0), open), Move::Wait, "no such task");
    for event in [TiEvent::Ready, TiEvent::Skip, TiEvent::ConditionError, TiEvent::Complete] {
        assert!(ti_next(TiState::None, event).is_ok(), "what is decided is legal: {event:?}");
    }
}

#[test]
fn a_run_ends_by_its_stop_then_by_its_leaves() {
    use TiState::{Failed, Removed, Skipped, Success, UpstreamFailed};
    let leaves: [(&[TiState], RunEvent); 6] = [
        (&[], RunEvent::Succeed),
        (&[Success, Skipped, Removed], RunEvent::Succeed),
        (&[Skipped], RunEvent::Succeed),
        (&[Success, Failed], RunEvent::Fail),
        (&[UpstreamFailed, Success], RunEvent::Fail),
        (&[Failed], RunEvent::Fail),
    ];
    for (states, by_leaves) in leaves {
        for stop in [None, Some(StopReason::Clear), Some(StopReason::Mark)] {
            assert_eq!(run_end(stop, states).0, by_leaves, "{states:?}");
        }
        for stop in [StopReason::Cancel, StopReason::Kill] {
            assert_eq!(run_end(Some(stop), states), (RunEvent::Cancel, "cancel"));
        }
        for stop in [StopReason::DagrunTimeout, StopReason::FailFast] {
            assert_eq!(run_end(Some(stop), states), (RunEvent::Fail, stop.as_str()));
        }
    }
    for event in [RunEvent::Succeed, RunEvent::Fail, RunEvent::Cancel] {
        assert!(run_next(RunState::Running, event).is_ok());
    }
}
