//! What lies in a worker's home was damaged while nobody lived in it: what can be told is told, what cannot
//! is said and left to a person, and everything else goes on.

use super::death::signal_shims;
use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::wait_for;
use fencepost_worker::dir::AttemptDir;
use rustix::process::Signal;
use serde_json::Value;

/// How the directory of an attempt is damaged; and whether it can be told all the same that the attempt is
/// gone.
type Damage = (&'static str, fn(&AttemptDir), bool);

const DAMAGES: [Damage; 6] = [
    ("nothing", |_| {}, true),
    (
        "half_an_outcome_before_its_rename",
        |dir| write(&dir.outcome_tmp(), "{\"version\":1,\"tok"),
        true,
    ),
    ("no_spec", |dir| write(&dir.spec(), "{{{"), true),
    ("half_an_outcome", |dir| write(&dir.outcome(), "{\"version\":1,\"tok"), false),
    ("an_empty_outcome", |dir| write(&dir.outcome(), ""), false),
    ("a_torn_page", |dir| write(&dir.page(), "torn"), false),
];

fn write(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// The first attempt stays until it is killed.
fn stays(cluster: &Cluster) -> String {
    format!(
        "tasks:\n  t:\n    retries: 0\n    containment: pidns\n    run: |\n      \
         echo \"$FENCEPOST_DAG_ID $FENCEPOST_ATTEMPT_NUMBER\" >> '{}'\n      \
         if [ \"$FENCEPOST_ATTEMPT_NUMBER\" -gt 1 ]; then exit 0; fi\n      sleep 3600\n",
        cluster.path("ledger").display()
    )
}

fn first(cluster: &Cluster, name: &str, run: &str) -> Value {
    cluster.attempts(name, run, "t")[0].clone()
}

fn token(attempt: &Value) -> String {
    attempt["token"].as_str().unwrap().to_owned()
}

fn run_one(cluster: &Cluster) {
    let run = cluster.trigger("after");
    cluster.wait_state("after", &run, "success");
}

#[test]
fn a_damaged_home_says_what_it_cannot_tell_and_goes_on_with_the_rest() {
    let cluster = Cluster::new();
    for (name, ..) in DAMAGES {
        cluster.dag(name, &stays(&cluster));
    }
    cluster.dag("after", "tasks:\n  t: {run: 'true'}\n");
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let worker = cluster.worker("w1");
    let runs: Vec<String> = DAMAGES.iter().map(|(name, ..)| cluster.trigger(name)).collect();
    wait_for("all to begin", || cluster.lines("ledger").len() == DAMAGES.len());
    worker.kill9();
    signal_shims(&cluster, "w1", Signal::KILL);
    for ((name, damage, _), run) in DAMAGES.iter().zip(&runs) {
        let path = cluster.path("w1").join("attempts").join(token(&first(&cluster, name, run)));
        damage(&AttemptDir::new(path));
    }
    let worker = cluster.worker("w1");
    for ((name, _, is_known), run) in DAMAGES.iter().zip(&runs) {
        if *is_known {
            cluster.wait_state(name, run, "success");
            let attempt = first(&cluster, name, run);
            assert_eq!(attempt["outcome"], "lost", "{name}: {attempt:#}");
            assert_eq!(attempt["evidence"]["kind"], "successor", "{name}: {attempt:#}");
            continue;
        }
        let log = || cluster.must(&["logs", name, run, "t", "--attempt", "1"]);
        wait_for(&format!("{name} to be said"), || log().contains("attempts confirm-dead"));
        let attempt = first(&cluster, name, run);
        assert_eq!(attempt["state"], "running", "{name}: nothing is guessed: {attempt:#}");
        assert_eq!(cluster.attempts(name, run, "t").len(), 1, "{name}");
    }
    // New work runs beside what is in doubt, and does so after another restart.
    run_one(&cluster);
    worker.kill9();
    let _worker = cluster.worker("w1");
    run_one(&cluster);
    for ((name, ..), run) in DAMAGES.iter().zip(&runs).filter(|((.., is_known), _)| !is_known) {
        let token = token(&first(&cluster, name, run));
        cluster.must(&["attempts", "confirm-dead", &token, "--reason", "it is dead", "--yes"]);
        cluster.wait_state(name, run, "success");
        assert_eq!(first(&cluster, name, run)["evidence"]["kind"], "person");
    }
    let attempts = cluster.path("w1").join("attempts");
    let empty = || std::fs::read_dir(&attempts).map_or(0, Iterator::count) == 0;
    wait_for("everything to be put away", empty);
    cluster.assert_sound();
}
