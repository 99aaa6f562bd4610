//! A rolling restart of every role, twice, under load.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::{assert_once, ledger_task, wait_for};

const TASKS: usize = 100;

fn chain(cluster: &Cluster) {
    let mut yaml = String::from("max_active_tasks: 12\ntasks:\n");
    for n in 0..TASKS {
        yaml.push_str(&format!("  t{n:02}:\n"));
        if n >= 10 {
            yaml.push_str(&format!("    depends_on: [t{:02}]\n", n - 10));
        }
        yaml.push_str(&ledger_task(&cluster.path("ledger"), "1.5"));
    }
    cluster.dag("load", &yaml);
}

/// Something ends, or on a fast machine everything has.
fn wait_move(cluster: &Cluster) {
    let so_far = ended(cluster);
    wait_for("the load to move", || ended(cluster) > so_far || so_far == TASKS);
}

fn ended(cluster: &Cluster) -> usize {
    cluster.lines("ledger").iter().filter(|line| line.starts_with("end")).count()
}

/// Nothing is lost and nothing runs again.
#[test]
fn a_rolling_restart_of_every_role_twice_loses_and_repeats_nothing() {
    let mut cluster = Cluster::new();
    cluster.setting("worker.drain_timeout", "200ms");
    chain(&cluster);
    let mut server = cluster.server();
    let mut schedulers = vec![cluster.scheduler("s1"), cluster.scheduler("s2")];
    let mut workers = vec![cluster.worker("w1"), cluster.worker("w2")];
    let run = cluster.trigger("load");
    for _ in 0..2 {
        wait_move(&cluster);
        server.stop();
        server = cluster.server();
        for name in ["s1", "s2"] {
            schedulers.remove(0).stop();
            schedulers.push(cluster.scheduler(name));
            wait_move(&cluster);
        }
        for name in ["w1", "w2"] {
            workers.remove(0).stop();
            workers.push(cluster.worker(name));
        }
    }
    cluster.wait_state("load", &run, "success");
    assert_once(&cluster.lines("ledger"), TASKS);
    for n in 0..TASKS {
        let attempts = cluster.attempts("load", &run, &format!("t{n:02}"));
        let started = attempts.iter().filter(|a| !a["started_at"].is_null()).count();
        assert_eq!(started, 1, "{attempts:#?}");
    }
    cluster.assert_sound();
    drop(server);
}
