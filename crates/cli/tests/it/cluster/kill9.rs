//! kill -9 of a scheduler, the server and a worker that comes back: one attempt each.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::{assert_once, ledger_task, wait_for};

const TASKS: usize = 20;

fn twenty(cluster: &Cluster, seconds: &str) {
    let mut yaml = String::from("max_active_tasks: 16\ntasks:\n");
    for n in 0..TASKS {
        yaml.push_str(&format!("  t{n:02}:\n{}", ledger_task(&cluster.path("ledger"), seconds)));
    }
    cluster.dag("twenty", &yaml);
}

fn begun(cluster: &Cluster) -> usize {
    cluster.lines("ledger").iter().filter(|line| line.starts_with("begin")).count()
}

/// I1, I2, I10: none of the three deaths re-runs anything.
#[test]
fn a_scheduler_the_server_and_a_worker_die_and_nothing_runs_twice() {
    let mut cluster = Cluster::new();
    cluster.short_scheduler_leases();
    twenty(&cluster, "2");
    let server = cluster.server();
    let first = cluster.scheduler("s1");
    let _second = cluster.scheduler("s2");
    let worker = cluster.worker("w1");
    let _other = cluster.worker("w2");
    let run = cluster.trigger("twenty");
    wait_for("some tasks to begin", || begun(&cluster) >= 4);
    first.kill9();
    wait_for("more tasks to begin", || begun(&cluster) >= 8);
    server.kill9();
    let _server = cluster.server();
    wait_for("more tasks to begin", || begun(&cluster) >= 12);
    worker.kill9();
    let _worker = cluster.worker("w1");
    cluster.wait_state("twenty", &run, "success");
    assert_once(&cluster.lines("ledger"), TASKS);
    for n in 0..TASKS {
        let attempts = cluster.attempts("twenty", &run, &format!("t{n:02}"));
        assert_eq!(attempts.len(), 1, "{attempts:#?}");
        assert_eq!(attempts[0]["outcome"], "success");
    }
    cluster.assert_sound();
}
