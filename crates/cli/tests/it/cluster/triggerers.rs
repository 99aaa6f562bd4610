//! kill -9 of a triggerer, of two and of one alone, with waits of every kind: each fires once.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::wait_for;

fn is_long() -> bool {
    std::env::var_os("FENCEPOST_TEST_LONG").is_some()
}

fn size() -> usize {
    if is_long() { 10_000 } else { 300 }
}

/// Processes that wait, with something to remember.
const PROCESSES: usize = 16;
/// From the death of a triggerer on, in seconds: what its lease leaves, and what finding and looking takes.
const LEASE: f64 = 6.0;
const BOUND: f64 = 5.0;

/// Files, instants and another run, in thirds; the instants come while the triggerer is dead.
const WAITS: &str = r#"
max_active_tasks: 20000
tasks:
  file: {wait: {file: '@file', poke_interval: 2s}, expand: {n: [@many]}}
  timer: {wait: {interval: 15s}, expand: {n: [@many]}}
  other:
    wait: {external_run: {dag_id: other, run_id: r}, poke_interval: 2s}
    expand: {n: [@many]}
  process:
    expand: {n: [@few]}
    run: |
      if [ -z "${FENCEPOST_DEFER_EVENT_FILE:-}" ]; then
        wait='{"file": "@file", "poke_interval": "2s"}'
        echo "{\"wait\": $wait, \"context\": {\"n\": $FENCEPOST_MAP_N}}" > "$FENCEPOST_DEFER_FILE"
        exit 100
      fi
      grep -q "\"n\":$FENCEPOST_MAP_N}" "$FENCEPOST_DEFER_EVENT_FILE"
"#;

fn yaml(cluster: &Cluster, size: usize) -> String {
    let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let file = cluster.path("ready").display().to_string();
    let text = WAITS.replace("@file", &file).replace("@many", &list(size / 3));
    text.replace("@few", &list(PROCESSES))
}

/// How long after `since` what had come by then was told, in seconds.
fn told_after(cluster: &Cluster, since: u64) -> f64 {
    let last = count(
        cluster,
        "SELECT max(at) FROM event WHERE from_state = 'deferred' AND task_id <> 'timer'",
    );
    (last as f64 - since as f64 / 1_000.0) / 1_000_000.0
}

#[expect(clippy::print_stdout, reason = "a figure for docs/benchmarks.md")]
fn say(size: usize, took: f64) {
    println!("{size} waits: all that had come was told {took:.1} s after the death");
}

fn wall_ns() -> u64 {
    u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos()).unwrap()
}

fn count(cluster: &Cluster, query: &str) -> usize {
    cluster.database().sql(query).unwrap().trim().parse().unwrap()
}

fn deferred(cluster: &Cluster) -> usize {
    count(cluster, "SELECT count(*) FROM task_instance WHERE state = 'deferred'")
}

fn play(cluster: &mut Cluster, triggerers: usize) {
    cluster.short_scheduler_leases();
    cluster.setting("triggerer.capacity", "20000");
    let size = size() / 3 * 3;
    cluster.dag("other", "tasks:\n  one: {noop: true}\n");
    let text = yaml(cluster, size);
    cluster.dag("waits", &text);
    let _server = cluster.server();
    let _scheduler = cluster.scheduler("s1");
    let _worker = cluster.worker_of_slots("w1", PROCESSES);
    let mut roles: Vec<_> = (0..triggerers).map(|n| cluster.triggerer(&format!("t{n}"))).collect();
    let run = cluster.trigger("waits");
    wait_for("all to be deferred", || deferred(cluster) >= size / 3 * 2 + PROCESSES);
    let watched = "SELECT count(*) FROM trigger WHERE next_at IS NOT NULL AND job_id <> ''";
    wait_for("all to be watched", || count(cluster, watched) == size / 3 * 2 + PROCESSES);
    let killed = wall_ns();
    roles.remove(0).kill9();
    std::fs::write(cluster.path("ready"), "x").unwrap();
    cluster.must(&["dags", "trigger", "other", "--run-id", "r"]);
    if roles.is_empty() {
        roles.push(cluster.triggerer("again"));
    }
    cluster.wait_state("waits", &run, "success");
    let ends = "SELECT count(*) FROM event WHERE from_state = 'deferred'";
    assert_eq!(count(cluster, ends), size + PROCESSES);
    let took = told_after(cluster, killed);
    say(size, took);
    // A bound of time is for a machine that has nothing else to do.
    assert!(!is_long() || took < LEASE + BOUND, "{took} s");
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
