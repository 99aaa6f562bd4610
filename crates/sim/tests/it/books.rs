//! Each check of the ledger finds what it is there for.

use fencepost_sim::exhaustive::in_a_world;
use fencepost_sim::ledger::{Ledger, TaskKey};
use fencepost_sim::time::Time;
use fencepost_sim::trace::Trace;

fn key(task: &str) -> TaskKey {
    TaskKey { dag: "d".into(), run: "r".into(), task: task.into(), map_index: -1 }
}

/// The violations that a use of the ledger leaves.
fn violations(use_it: impl FnOnce(&Ledger)) -> Vec<String> {
    in_a_world(async {
        let time = Time::begin();
        let trace = Trace::new(time, false);
        use_it(&Ledger::new(time, trace.clone()));
        trace.found().violations
    })
    .unwrap()
}

fn check(use_it: impl FnOnce(&Ledger), expected: &str) {
    let found = violations(use_it);
    assert!(found.iter().any(|what| what.starts_with(expected)), "{found:?} has no {expected}");
}

#[test]
fn executions_one_after_the_other_are_fine() {
    let found = violations(|ledger| {
        for token in 1..4 {
            ledger.begin(key("t"), token, "host");
            ledger.end(token, "exits");
        }
        ledger.begin(key("u"), 9, "host");
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn i5_two_executions_of_one_instance_at_once_are_found() {
    let twice = |ledger: &Ledger| {
        ledger.begin(key("t"), 1, "one");
        ledger.begin(key("t"), 2, "two");
    };
    check(twice, "I5: d/r/t runs twice");
}

#[test]
fn i5_one_attempt_that_is_executed_twice_is_found() {
    let again = |ledger: &Ledger| {
        ledger.begin(key("t"), 1, "one");
        ledger.end(1, "exits");
        ledger.begin(key("t"), 1, "one");
    };
    check(again, "I5: attempt 1");
}

#[test]
fn i2_a_token_that_falls_is_found() {
    let fall = |ledger: &Ledger| {
        ledger.begin(key("t"), 2, "one");
        ledger.end(2, "exits");
        ledger.begin(key("t"), 1, "one");
    };
    check(fall, "I2:");
}

#[test]
fn i14_processes_beyond_a_pool_are_found() {
    let crowd = |ledger: &Ledger| {
        ledger.watch_pool("small", 3);
        ledger.watch_task("d", "t", "small", 2);
        ledger.watch_task("d", "u", "small", 2);
        ledger.begin(key("t"), 1, "one");
        ledger.begin(key("u"), 2, "one");
    };
    check(crowd, "I14:");
}

#[test]
fn i6_a_late_write_is_refused_by_the_sink() {
    violations(|ledger| {
        assert!(ledger.write(&key("t"), 1) && ledger.write(&key("t"), 3));
        assert!(!ledger.write(&key("t"), 2), "a later token has written");
        assert_eq!(ledger.shows(&key("t")), Some(3));
    });
}

#[test]
fn i14_processes_of_more_runs_or_instances_than_may_be_are_found() {
    let of_run = |run: &str| TaskKey { run: run.into(), ..key("t") };
    let runs = |ledger: &Ledger| {
        ledger.watch_runs("d", 2);
        for (token, run) in [(1, "r"), (2, "s"), (3, "u")] {
            ledger.begin(of_run(run), token, "one");
        }
    };
    check(runs, "I14: processes of 3 runs of 2");
    let instances = |ledger: &Ledger| {
        ledger.watch_instances("d", "t", 1);
        ledger.begin(of_run("r"), 1, "one");
        ledger.begin(key("other"), 2, "one");
        ledger.begin(of_run("s"), 3, "one");
    };
    check(instances, "I14: processes of 2 instances of 1");
}
