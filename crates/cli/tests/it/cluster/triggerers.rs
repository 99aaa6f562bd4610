//! kill -9 of a triggerer, of two and of one alone, with waits of every kind: each fires once.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::wait_for;

#[expect(clippy::disallowed_methods, reason = "the long form is asked for by a variable")]
fn size() -> usize {
    if std::env::var("FENCEPOST_TEST_LONG").is_ok() { 10_000 } else { 300 }
}

/// Files, instants and another run, in thirds; the instants come while the triggerer is dead.
fn yaml(cluster: &Cluster, size: usize) -> String {
    let items: Vec<String> = (0..size / 3).map(|n| n.to_string()).collect();
    let items = items.join(", ");
    let file = cluster.path("ready");
    let file = file.display();
    format!(
        "max_active_tasks: 20000\ntasks:\n  \
         file: {{wait: {{file: '{file}', poke_interval: 2s}}, expand: {{n: [{items}]}}}}\n  \
         timer: {{wait: {{interval: 15s}}, expand: {{n: [{items}]}}}}\n  \
         other: {{wait: {{external_run: {{dag_id: other, run_id: r}}, poke_interval: 2s}}, expand: {{n: [{items}]}}}}\n"
    )
}

fn count(cluster: &Cluster, query: &str) -> usize {
    cluster.database().sql(query).unwrap().trim().parse().unwrap()
}

fn deferred(cluster: &Cluster) -> usize {
    count(cluster, "SELECT count(*) FROM task_instance WHERE state = 'deferred'")
}

fn play(cluster: &mut Cluster, triggerers: usize) {
    cluster.short_scheduler_leases();
    let size = size() / 3 * 3;
    cluster.dag("other", "tasks:\n  one: {noop: true}\n");
    let text = yaml(cluster, size);
    cluster.dag("waits", &text);
    let _server = cluster.server();
    let _scheduler = cluster.scheduler("s1");
    let mut roles: Vec<_> = (0..triggerers).map(|n| cluster.triggerer(&format!("t{n}"))).collect();
    let run = cluster.trigger("waits");
    wait_for("all to be deferred", || deferred(cluster) >= size / 3 * 2);
    let watched = "SELECT count(*) FROM trigger WHERE next_at IS NOT NULL AND job_id <> ''";
    wait_for("all to be watched", || count(cluster, watched) == size / 3 * 2);
    roles.remove(0).kill9();
    std::fs::write(cluster.path("ready"), "x").unwrap();
    cluster.must(&["dags", "trigger", "other", "--run-id", "r"]);
    if roles.is_empty() {
        roles.push(cluster.triggerer("again"));
    }
    cluster.wait_state("waits", &run, "success");
    let ends = "SELECT count(*) FROM event WHERE from_state = 'deferred'";
    assert_eq!(count(cluster, ends), size);
    assert_eq!(count(cluster, "SELECT count(*) FROM trigger"), 0);
    cluster.assert_sound();
}

/// I10, I16.
#[test]
fn one_of_two_triggerers_is_killed_and_each_wait_ends_once() {
    play(&mut Cluster::new(), 2);
}

#[test]
fn the_only_triggerer_is_killed_and_started_again() {
    play(&mut Cluster::new(), 1);
}
