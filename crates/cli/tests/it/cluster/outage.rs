//! The database goes away and comes back: no task ends, nothing is declared, everything goes on.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::{assert_once, ledger_task, wait_for};

const TASKS: usize = 6;

fn begun(cluster: &Cluster) -> usize {
    cluster.lines("ledger").iter().filter(|line| line.starts_with("begin")).count()
}

/// I26: every connection of every role is cut, again and again, and new ones refused for a while.
#[test]
fn cut_connections_cost_no_attempt() {
    let cluster = Cluster::new();
    let mut yaml = String::from("tasks:\n");
    for n in 0..TASKS {
        yaml.push_str(&format!("  t{n:02}:\n"));
        if n >= 3 {
            yaml.push_str(&format!("    depends_on: [t{:02}]\n", n - 3));
        }
        yaml.push_str(&ledger_task(&cluster.path("ledger"), "4"));
    }
    cluster.dag("cut", &yaml);
    let _server = cluster.server();
    let _schedulers = (cluster.scheduler("s1"), cluster.scheduler("s2"));
    let _worker = cluster.worker("w1");
    let run = cluster.trigger("cut");
    wait_for("the tasks to begin", || begun(&cluster) >= 3);
    let name = cluster.database().name().to_owned();
    for _ in 0..5 {
        let cut = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
             WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        );
        cluster.database().sql(&cut).unwrap();
    }
    cluster.wait_state("cut", &run, "success");
    assert_once(&cluster.lines("ledger"), TASKS);
    let events = cluster.json(&["events", "cut", &run]);
    let lost = events.as_array().unwrap().iter().filter(|e| e["kind"] == "attempt_lost").count();
    assert_eq!(lost, 0, "{events:#}");
    cluster.assert_sound();
}
