//! A scheduler that stands still where it hurts most: inside its critical section, with locks in hand, and
//! with an answer of the store that it never reads. The others go on within its lease; continued, it
//! changes nothing and works on.

use super::crowd::{ask, now_ns};
use super::session::Session;
use super::world::{Cluster, Role};
use crate::installation::Installation;
use crate::standalone::world::{assert_once, ledger_task, wait_for};
use fencepost_testing::cluster::Cluster as Server;
use rustix::process::Signal;

/// The lease of a scheduler by default.
const LEASE_NS: u64 = 30_000_000_000;
/// A transaction of a scheduler that waits for a lock.
const WAITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE \
                     application_name = 'fencepost scheduler' AND wait_event_type = 'Lock'";
/// One that has its answer, and says nothing more.
const IDLE: &str = "SELECT count(*) FROM pg_stat_activity WHERE \
                    application_name = 'fencepost scheduler' AND state = 'idle in transaction' \
                    AND query LIKE 'UPDATE installation%'";

/// A server, a worker, and a DAG of one quick task.
struct Scene {
    cluster: Cluster,
    server: Server,
    _roles: Vec<Role>,
    _place: tempfile::TempDir,
}

fn scene(change: impl FnOnce(&mut Cluster)) -> Scene {
    let place = tempfile::tempdir().unwrap();
    let server = Server::start(&place.path().join("server")).unwrap();
    let mut cluster = Cluster::on(server.url("postgres"));
    change(&mut cluster);
    let task = ledger_task(&cluster.path("ledger"), "0.1");
    cluster.dag("quick", &format!("tasks:\n  t:\n{task}"));
    let roles = vec![cluster.server(), cluster.worker("w1")];
    Scene { cluster, server, _roles: roles, _place: place }
}

fn begun(cluster: &Cluster) -> usize {
    cluster.lines("ledger").iter().filter(|line| line.starts_with("begin")).count()
}

fn is_stopped(role: &Role) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", role.child.id())).unwrap();
    stat.contains(") T ")
}

/// Another scheduler starts a task before the lease of the one that stands still is over.
fn assert_goes_on(scene: &Scene, frozen_ns: u64) -> Role {
    let so_far = begun(&scene.cluster);
    let other = scene.cluster.scheduler("s2");
    wait_for("a task to begin", || begun(&scene.cluster) > so_far);
    let took = now_ns() - frozen_ns;
    assert!(took < LEASE_NS, "nothing began for {} s", took / 1_000_000_000);
    other
}

/// All runs succeed, each task was executed once under one token, and one more run does too.
fn assert_well(scene: &Scene, runs: &[String]) {
    let more = scene.cluster.trigger("quick");
    for run in runs.iter().chain([&more]) {
        scene.cluster.wait_state("quick", run, "success");
        let attempts = scene.cluster.attempts("quick", run, "t");
        let started = attempts.iter().filter(|one| !one["started_at"].is_null()).count();
        assert_eq!(started, 1, "{attempts:#?}");
    }
    assert_once(&scene.cluster.lines("ledger"), runs.len() + 1);
    scene.cluster.assert_sound();
}

/// Something is to be queued; the scheduler waits for the row of the tokens, with pool and DAG in its hands,
/// and is stopped. Then it is given the row, and never reads that. `None`: it had given up before, and is
/// continued.
fn stopped_before_its_answer(scene: &Scene, first: &Role, runs: &mut Vec<String>) -> Option<u64> {
    let blocker = Session::holding(&scene.server, "SELECT 1 FROM installation FOR UPDATE");
    runs.push(scene.cluster.trigger("quick"));
    wait_for("the scheduler to wait", || ask(&scene.server, WAITS) == "1");
    first.signal(Signal::STOP);
    let frozen_ns = now_ns();
    blocker.let_go();
    wait_for("the answer", || ask(&scene.server, WAITS) == "0");
    let is_unread = ask(&scene.server, IDLE) == "1";
    if !is_unread {
        first.signal(Signal::CONT);
    }
    is_unread.then_some(frozen_ns)
}

/// I28: Airflow 3.3 stood still for as long as one scheduler did.
#[test]
fn slow_a_scheduler_that_never_reads_its_answer_does_not_stop_the_others() {
    let scene = scene(|_| {});
    let first = scene.cluster.scheduler("s1");
    let mut runs = Vec::new();
    let frozen_ns = (0..10).find_map(|_| stopped_before_its_answer(&scene, &first, &mut runs));
    let frozen_ns = frozen_ns.expect("it was never stopped while it waited");
    let _second = assert_goes_on(&scene, frozen_ns);
    assert!(is_stopped(&first));
    first.signal(Signal::CONT);
    assert_well(&scene, &runs);
}

/// I28: the same between two statements, all locks in hand.
#[cfg(feature = "crash-points")]
#[test]
fn slow_a_scheduler_that_stops_before_its_commit_does_not_stop_the_others() {
    let scene = scene(|_| {});
    let at = [("FENCEPOST_FREEZE", "dispatch:before_commit")];
    let first = scene.cluster.scheduler_at("s1", &at);
    let run = scene.cluster.trigger("quick");
    wait_for("the scheduler to stop", || is_stopped(&first));
    let _second = assert_goes_on(&scene, now_ns());
    assert!(is_stopped(&first));
    first.signal(Signal::CONT);
    assert_well(&scene, &[run]);
}

/// I9: one of two schedulers stands still in the middle of a transaction until it is declared lost. Its
/// write is refused, it registers anew, and no attempt was executed twice.
#[cfg(feature = "crash-points")]
#[test]
fn slow_a_scheduler_that_was_lost_in_mid_transaction_registers_anew() {
    let scene = scene(Cluster::short_scheduler_leases);
    let at = [("FENCEPOST_FREEZE", "dispatch:before_commit")];
    let first = scene.cluster.scheduler_at("s1", &at);
    let run = scene.cluster.trigger("quick");
    wait_for("the scheduler to stop", || is_stopped(&first));
    let second = scene.cluster.scheduler("s2");
    let count = |state: &str| {
        let count =
            format!("SELECT count(*) FROM job WHERE kind = 'scheduler' AND state = '{state}'");
        ask(&scene.server, &count)
    };
    wait_for("the scheduler to be lost", || count("lost") == "1");
    scene.cluster.wait_state("quick", &run, "success");
    first.signal(Signal::CONT);
    let anew = || scene.cluster.stderr("s1").contains("its lease is over: it registers anew");
    wait_for("it to say so", anew);
    wait_for("it to be a new job", || count("running") == "2");
    // It schedules as the others do.
    second.kill9();
    assert_well(&scene, &[run]);
    let tokens = "SELECT count(*) FROM attempt";
    assert_eq!(ask(&scene.server, tokens), "2", "what it had minted is nobody's");
}
