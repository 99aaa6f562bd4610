//! A standby is promoted that has lost the last commits: what the store knows goes on, what it has
//! forgotten is ended before it runs again (I20).

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::wait_for;
use fencepost_testing::cluster::Cluster as Server;

const SETTINGS: &str = "wal_level = replica\nmax_wal_senders = 4\n";

/// A task that says when it begins, while it lives and when it ends, each with its token and the boot-time
/// clock; it ends once a file is there.
fn talker(cluster: &Cluster, dag: &str) -> String {
    let (ledger, file) = (cluster.path(&format!("{dag}.ledger")), cluster.path("go"));
    format!(
        "tasks:\n  t:\n    retries: 0\n    run: |\n      \
         say() {{ echo \"$1 $FENCEPOST_FENCING_TOKEN $(cut -d' ' -f1 /proc/uptime)\" >> '{ledger}'; }}\n      \
         say begin\n      while ! [ -e '{file}' ]; do say tick; sleep 0.1; done\n      say end\n",
        ledger = ledger.display(),
        file = file.display(),
    )
}

/// Lines of a ledger as (word, token, seconds).
fn lines(cluster: &Cluster, dag: &str) -> Vec<(String, String, f64)> {
    let read = |line: &String| {
        let mut words = line.split(' ').map(ToOwned::to_owned);
        Some((words.next()?, words.next()?, words.next()?.parse().ok()?))
    };
    cluster.lines(&format!("{dag}.ledger")).iter().filter_map(read).collect()
}

fn begins(cluster: &Cluster, dag: &str) -> usize {
    lines(cluster, dag).iter().filter(|(word, ..)| word == "begin").count()
}

/// How many lines of that kind the log has.
fn events(server: &Server, kind: &str) -> u32 {
    let count = format!("SELECT count(*) FROM event WHERE kind = '{kind}'");
    server.sql("postgres", &count).unwrap().trim().parse().unwrap()
}

/// `known` runs before the copy is taken, `claimed` is queued then and claimed after it, `forgotten` is
/// triggered after it.
#[test]
fn slow_i20_a_promoted_standby_that_lost_commits_doubles_and_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut server = Server::start_with(&place.path().join("server"), SETTINGS).unwrap();
    let mut cluster = Cluster::on(server.url("postgres"));
    cluster.setting("worker.heartbeat_interval", "1s");
    cluster.setting("worker.lease_ttl", "60s");
    cluster.setting("worker.kill_grace", "2s");
    for dag in ["known", "claimed", "forgotten"] {
        cluster.dag(dag, &talker(&cluster, dag));
    }
    let _server = cluster.server();
    let scheduler = cluster.scheduler("s1");
    let worker = cluster.worker("w1");
    let known = cluster.trigger("known");
    wait_for("the first task to begin", || begins(&cluster, "known") == 1);
    // The worker is stopped and not lost: what is queued now is claimed only after the copy.
    worker.signal(rustix::process::Signal::STOP);
    let claimed = cluster.trigger("claimed");
    let queued = || cluster.attempts("claimed", &claimed, "t").len() == 1;
    wait_for("the second task to be queued", queued);
    server.back_up().unwrap();
    worker.signal(rustix::process::Signal::CONT);
    wait_for("the second task to begin", || begins(&cluster, "claimed") == 1);
    cluster.trigger("forgotten");
    wait_for("the third task to begin", || begins(&cluster, "forgotten") == 1);
    server.fail_over().unwrap();
    wait_for("the epoch to be reconciled", || events(&server, "epoch_reconciled") == 1);
    assert_eq!(events(&server, "claim_recorded_again"), 1);
    // Triggered once more, it is another run; of the old one nothing is left.
    let forgotten = cluster.trigger("forgotten");
    wait_for("the forgotten task to begin again", || begins(&cluster, "forgotten") == 2);
    std::fs::write(cluster.path("go"), "").unwrap();
    for (dag, run) in [("known", &known), ("claimed", &claimed), ("forgotten", &forgotten)] {
        cluster.wait_state(dag, run, "success");
        assert_eq!(cluster.attempts(dag, run, "t").len(), 1, "{dag}");
    }
    assert_eq!((begins(&cluster, "known"), begins(&cluster, "claimed")), (1, 1));
    let lines = lines(&cluster, "forgotten");
    let (first, second) = (&lines[0].1, &lines.iter().rfind(|l| l.0 == "begin").unwrap().1);
    let (old, new) = (first.parse::<i64>().unwrap(), second.parse::<i64>().unwrap());
    assert!(old < new, "tokens rise: {old} {new}");
    let last = lines.iter().filter(|line| line.1 == *first).map(|line| line.2).fold(0.0, f64::max);
    let began = lines.iter().find(|line| line.0 == "begin" && line.1 == *second).unwrap().2;
    assert!(last < began, "the forgotten one lived at {last}, its successor began at {began}");
    assert!(!lines.iter().any(|line| line.0 == "end" && line.1 == *first), "it was ended");
    cluster.assert_sound();
    drop((scheduler, worker));
}
