//! Starts and stops in order.

use super::world::{World, assert_once, ledger_task, wait_for};
use crate::installation::Installation;
use fencepost_worker::clock::ClockKind;

/// SIGTERM is a restart: what runs is left to its shims, and the next start goes on with it.
#[test]
fn a_stop_leaves_running_tasks_to_their_shims_and_says_so() {
    let mut world = World::new();
    world.setting("worker.drain_timeout", "1s");
    let task = ledger_task(&world.path("ledger"), "4");
    world.dag("one", &format!("tasks:\n  t:\n{task}"));
    let node = world.start();
    world.trigger("one");
    wait_for("the task to begin", || world.lines("ledger").len() == 1);
    node.stop();
    assert!(world.stderr().contains("left running under their shims: 1"), "{}", world.stderr());
    let node = world.start();
    world.wait_state("one", "success");
    assert_once(&world.lines("ledger"), 1);
    assert_eq!(world.attempts("one", "t").len(), 1);
    world.assert_sound();
    node.stop();
}

/// A task that fails by itself while its worker waits for it to end: the failure counts, as a failure.
#[test]
fn what_fails_while_its_worker_drains_is_recorded_as_failed() {
    let mut world = World::new();
    world.setting("worker.drain_timeout", "60s");
    let (ledger, word) = (world.path("ledger"), world.path("word"));
    let yaml = format!(
        "tasks:\n  t:\n    run: |\n      echo begin >> '{}'\n      while ! [ -e '{}' ]; do sleep 0.1; done\n      exit 1\n",
        ledger.display(),
        word.display()
    );
    world.dag("fails", &yaml);
    let mut node = world.start();
    world.trigger("fails");
    wait_for("the task to begin", || world.lines("ledger").len() == 1);
    let pid = rustix::process::Pid::from_child(&node.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let until_ns = ClockKind::Boottime.now_ns() + 2_000_000_000;
    wait_for("two seconds", || ClockKind::Boottime.now_ns() > until_ns);
    assert!(node.child.try_wait().unwrap().is_none(), "it waits for its task");
    std::fs::write(&word, "").unwrap();
    assert!(node.child.wait().unwrap().success());
    let node = world.start();
    world.wait_state("fails", "failed");
    let attempts = world.attempts("fails", "t");
    let found = (&attempts[0]["outcome"], &attempts[0]["reason"], &attempts[0]["exit_code"]);
    assert_eq!(found, (&"failed".into(), &"exit".into(), &1.into()), "{attempts:#?}");
    assert_eq!(attempts.len(), 1);
    assert_eq!(world.lines("ledger").len(), 1);
    world.assert_sound();
    node.stop();
}

/// I2: tokens rise over every restart, also when the store is put back from an older copy.
#[test]
fn tokens_rise_over_restarts_and_over_a_store_that_was_put_back() {
    let world = World::new();
    world.dag("tick", "tasks:\n  t: {run: 'true'}\n");
    let token = |world: &World| -> i64 {
        world.trigger("tick");
        world.wait_state("tick", "success");
        let attempts = world.attempts("tick", "t");
        attempts[0]["token"].as_str().unwrap().parse().unwrap()
    };
    let node = world.start();
    let first = token(&world);
    node.stop();
    let db = world.home().join("fencepost.db");
    let copy = std::fs::read(&db).unwrap();
    let node = world.start();
    let second = token(&world);
    node.stop();
    std::fs::write(&db, copy).unwrap();
    for left in ["fencepost.db-wal", "fencepost.db-shm"] {
        let _ = std::fs::remove_file(world.home().join(left));
    }
    let node = world.start();
    let third = token(&world);
    assert!(first < second && second < third, "{first} {second} {third}");
    node.stop();
}

/// What was said and nobody heard is found by the next start: attempts whose rows are gone end.
#[test]
fn a_dag_file_that_changes_is_a_new_version_and_its_runs_keep_theirs() {
    let world = World::new();
    let out = world.path("out");
    let yaml = |word: &str| {
        format!(
            "tasks:\n  a: {{run: 'sleep 2'}}\n  b: {{run: 'echo {word} >> {}', depends_on: [a]}}\n",
            out.display()
        )
    };
    world.dag("v", &yaml("one"));
    let node = world.start();
    world.trigger("v");
    world.wait_task("v", "a", "running");
    world.dag("v", &yaml("two"));
    wait_for("the second version", || world.json(&["dags", "show", "v"])["version"] == 2);
    world.wait_state("v", "success");
    world.trigger("v");
    world.wait_state("v", "success");
    assert_eq!(world.lines("out"), ["one", "two"]);
    std::fs::remove_file(world.path("dags").join("v.yaml")).unwrap();
    wait_for("the DAG to be inactive", || world.json(&["dags", "show", "v"])["is_active"] == false);
    node.stop();
}
