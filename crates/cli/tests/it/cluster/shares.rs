//! Many runs in a pool of eight slots, under three schedulers of which one dies every few seconds: the
//! slots are never exceeded, and no DAG waits for the others. A thousand runs with `FENCEPOST_TEST_LONG=1`.

use super::crowd::{ask, now_ns};
use super::world::{Cluster, Role};
use crate::installation::Installation;
use crate::standalone::world::comes_true;
use fencepost_testing::cluster::Cluster as Server;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const DAGS: [&str; 4] = ["a", "b", "c", "d"];
const SLOTS: usize = 8;
/// Tasks of one run.
const TASKS: usize = 10;
const SECOND: u64 = 1_000_000_000;

/// Runs of one DAG, and how often a scheduler is killed.
fn size() -> (usize, u64) {
    match std::env::var_os("FENCEPOST_TEST_LONG") {
        Some(_) => (250, 10 * SECOND),
        None => (12, 3 * SECOND),
    }
}

fn yaml() -> String {
    let middle: Vec<String> = (1..TASKS - 1).map(|n| format!("t{n}")).collect();
    let mut yaml =
        String::from("default_args: {pool: narrow}\ntasks:\n  t0: {command: ['true']}\n");
    for name in &middle {
        yaml.push_str(&format!("  {name}: {{command: ['true'], depends_on: [t0]}}\n"));
    }
    yaml.push_str(&format!("  t9: {{command: ['true'], depends_on: [{}]}}\n", middle.join(", ")));
    yaml
}

/// Whose attempts begin and end to hold slots, in the order of the log.
fn log(server: &Server) -> Vec<(String, String, bool)> {
    let lines = ask(
        server,
        "SELECT dag_id || ' ' || token || ' ' || to_state FROM event \
         WHERE kind = 'ti_state' AND token > 0 ORDER BY seq",
    );
    let read = |line: &str| {
        let mut words = line.split_whitespace().map(ToOwned::to_owned);
        let (dag, token, state) = (words.next()?, words.next()?, words.next()?);
        match state.as_str() {
            "queued" => Some((dag, token, true)),
            "running" => None,
            _ => Some((dag, token, false)),
        }
    };
    lines.lines().filter_map(read).collect()
}

/// At no place of the log more was held than there is.
fn assert_never_exceeded(log: &[(String, String, bool)]) {
    let mut held = BTreeSet::new();
    for (_, token, begins) in log {
        if *begins {
            held.insert(token);
        } else {
            held.remove(token);
        }
        assert!(held.len() <= SLOTS, "{} hold slots of {SLOTS}: {held:?}", held.len());
    }
    assert!(held.is_empty(), "{held:?}");
}

/// As long as all of them have something to do, each DAG gets at least half of an equal share of any
/// window of starts.
fn assert_shared(log: &[(String, String, bool)]) {
    let starts: Vec<&str> =
        log.iter().filter(|(_, _, begins)| *begins).map(|(dag, _, _)| dag.as_str()).collect();
    let window = SLOTS * 10;
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for dag in &starts {
        *left.entry(dag).or_default() += 1;
    }
    assert_eq!(left.len(), DAGS.len());
    // The end is left out: then some have nothing more to do.
    let busy = starts.len() * 3 / 4;
    for from in (0..busy.saturating_sub(window)).step_by(SLOTS) {
        for dag in DAGS {
            let own = starts[from..from + window].iter().filter(|other| **other == dag).count();
            let least = window / DAGS.len() / 2;
            assert!(own >= least, "{dag} has {own} of {window} starts after {from}, not {least}");
        }
    }
}

#[test]
fn slow_runs_share_a_narrow_pool_fairly_whatever_scheduler_dies() {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(&place.path().join("server")).unwrap();
    let mut cluster = Cluster::on(server.url("postgres"));
    cluster.short_scheduler_leases();
    let (runs, pace) = size();
    for dag in DAGS {
        cluster.dag(dag, &yaml());
    }
    let _server = cluster.server();
    let mut schedulers: Vec<Role> = (0..3).map(|n| cluster.scheduler(&format!("s{n}"))).collect();
    cluster.must(&["pools", "set", "narrow", &SLOTS.to_string()]);
    for n in 0..runs {
        for dag in DAGS {
            cluster.must(&["dags", "trigger", dag, "--run-id", &format!("r{n}")]);
        }
    }
    let _worker = cluster.worker_of_slots("w1", 16);
    let held = "SELECT coalesce(sum(slots), 0) FROM hold WHERE pool = 'narrow'";
    let over = "SELECT count(*) FROM run WHERE state NOT IN ('queued', 'running')";
    let (mut next_kill, mut killed) = (now_ns() + pace, 0_usize);
    let is_over = comes_true(Duration::from_mins(30), || {
        if now_ns() >= next_kill {
            let n = killed % schedulers.len();
            let fresh = cluster.scheduler(&format!("s{n}"));
            std::mem::replace(&mut schedulers[n], fresh).kill9();
            (next_kill, killed) = (now_ns() + pace, killed + 1);
        }
        let held: usize = ask(&server, held).parse().unwrap();
        assert!(held <= SLOTS, "{held} of {SLOTS} slots are held");
        ask(&server, over) == (runs * DAGS.len()).to_string()
    });
    assert!(is_over, "the runs do not end");
    assert!(killed > 0, "no scheduler was killed");
    let count = |what: &str| ask(&server, &format!("SELECT count(*) FROM {what}"));
    assert_eq!(count("run WHERE state = 'success'"), (runs * DAGS.len()).to_string());
    assert_eq!(count("attempt"), (runs * DAGS.len() * TASKS).to_string(), "none ran twice");
    let log = log(&server);
    assert_never_exceeded(&log);
    assert_shared(&log);
    cluster.assert_sound();
}
