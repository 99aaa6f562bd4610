//! `on_disconnect: keep`: a task runs to its end without a lease, whoever is gone meanwhile.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::wait_for;
use rustix::process::Signal;

/// Says that it begins, waits for a file, and says that it ends.
fn kept(cluster: &Cluster) {
    let (ledger, go) = (cluster.path("ledger"), cluster.path("go"));
    cluster.dag(
        "kept",
        &format!(
            "tasks:\n  t:\n    on_disconnect: keep\n    replace: after_confirmed_dead\n    outputs: {{n: integer}}\n    \
             run: |\n      echo begin >> '{ledger}'\n      while ! [ -e '{go}' ]; do sleep 0.1; done\n      \
             echo n=7 >> \"$FENCEPOST_OUTPUT_FILE\"\n      echo end >> '{ledger}'\n",
            ledger = ledger.display(),
            go = go.display(),
        ),
    );
}

fn state(cluster: &Cluster, run: &str) -> String {
    cluster.json(&["tasks", "list", "kept", run])[0]["state"].as_str().unwrap_or("").to_owned()
}

/// Its worker is stopped beyond its lease, or killed and started again after it: the same attempt goes on, and
/// its end settles what was held.
fn outlives(die: impl FnOnce(&Cluster, super::world::Role) -> super::world::Role) {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    kept(&cluster);
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let worker = cluster.worker("w1");
    let run = cluster.trigger("kept");
    wait_for("the task to begin", || !cluster.lines("ledger").is_empty());
    let worker = die(&cluster, worker);
    // Long after its new job has told what it holds.
    wait_for("the worker to have a new job", || {
        let workers = cluster.json(&["workers", "list"]);
        workers.as_array().unwrap().iter().any(|worker| worker["liveness"] == "live")
    });
    assert_eq!(state(&cluster, &run), "held");
    assert_eq!(cluster.lines("ledger"), ["begin"]);
    std::fs::write(cluster.path("go"), "").unwrap();
    cluster.wait_state("kept", &run, "success");
    assert_eq!(cluster.lines("ledger"), ["begin", "end"]);
    let attempts = cluster.attempts("kept", &run, "t");
    assert_eq!(attempts.len(), 1, "{attempts:#?}");
    assert_eq!(attempts[0]["outcome"], "success", "{attempts:#?}");
    cluster.assert_sound();
    drop(worker);
}

fn wait_held(cluster: &Cluster) {
    wait_for("the task to be held", || {
        let held = cluster.json(&["held", "list"]);
        held.as_array().is_some_and(|held| !held.is_empty())
    });
}

#[test]
fn slow_a_kept_task_outlives_the_lease_of_a_stopped_worker() {
    outlives(|cluster, worker| {
        worker.signal(Signal::STOP);
        wait_held(cluster);
        worker.signal(Signal::CONT);
        worker
    });
}

#[test]
fn slow_a_kept_task_outlives_a_killed_worker_and_its_lease() {
    outlives(|cluster, worker| {
        worker.kill9();
        wait_held(cluster);
        cluster.worker("w1")
    });
}
