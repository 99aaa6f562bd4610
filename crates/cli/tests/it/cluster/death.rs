//! A worker that dies and does not come back: its trees are gone before its lease is, and its work
//! goes on elsewhere, on the platform's account.

use super::world::{Cluster, Role};
use crate::installation::Installation;
use crate::standalone::world::{any_process, wait_for};
use fencepost_worker::clock::ClockKind;
use serde_json::Value;

/// The lease of these workers.
const TTL_NS: u64 = 6_000_000_000;
/// From the end of the lease to the successor's start, on a worker with room, on a machine that does
/// nothing else (in the long form). Otherwise other tests run beside this one.
fn takeover_ns() -> u64 {
    let alone = std::env::var_os("FENCEPOST_TEST_LONG").is_some();
    if alone { 3_000_000_000 } else { 30_000_000_000 }
}

/// A task that ignores SIGTERM, with a daemon in a session of its own that does so too and ticks;
/// the successor only says that it began. Every line carries the boot-time clock.
pub(super) fn stubborn(cluster: &Cluster, level: &str) -> String {
    let (ledger, marker) = (cluster.path("ledger"), cluster.path("marker"));
    format!(
        "tasks:\n  t:\n    containment: {level}\n    retries: 0\n    run: |\n      \
         set +e\n      trap '' TERM\n      \
         now() {{ awk '{{print $1}}' /proc/uptime; }}\n      \
         echo \"begin $FENCEPOST_ATTEMPT_NUMBER $(now)\" >> '{ledger}'\n      \
         if [ \"$FENCEPOST_ATTEMPT_NUMBER\" -gt 1 ]; then exit 0; fi\n      \
         setsid bash -c 'trap \"\" TERM; while true; do echo \"tick $(cut -d\" \" -f1 /proc/uptime)\" >> \"$1\"; sleep 0.1; done' '{marker}' '{ledger}' &\n      \
         while true; do sleep 0.1; done\n",
        ledger = ledger.display(),
        marker = marker.display(),
    )
}

pub(super) fn seconds(line: &str) -> f64 {
    line.split_whitespace().last().and_then(|word| word.parse().ok()).unwrap()
}

/// Two workers; the one that has the task.
pub(super) fn running(cluster: &Cluster) -> (String, Vec<Role>, Role, Role) {
    cluster.dag("stubborn", &stubborn(cluster, "pidns"));
    let server = cluster.server();
    let scheduler = cluster.scheduler("s1");
    let workers = vec![cluster.worker("w1"), cluster.worker("w2")];
    let run = cluster.trigger("stubborn");
    wait_for("the task and its daemon", || ticks(cluster) > 0);
    (run, workers, server, scheduler)
}

pub(super) fn ticks(cluster: &Cluster) -> usize {
    cluster.lines("ledger").iter().filter(|line| line.starts_with("tick")).count()
}

pub(super) fn owner(cluster: &Cluster, run: &str) -> String {
    cluster.attempts("stubborn", run, "t")[0]["worker"].as_str().unwrap().to_owned()
}

/// What must be true whoever died: no tick after the lease's end, a successor in time, on the
/// platform's account, with the evidence of the expiry.
pub(super) fn assert_replaced(cluster: &Cluster, run: &str, died_ns: u64) {
    cluster.wait_state("stubborn", run, "success");
    let lines = cluster.lines("ledger");
    let last_tick =
        lines.iter().filter(|l| l.starts_with("tick")).map(|l| seconds(l)).fold(0.0, f64::max);
    let successor = lines.iter().find(|line| line.starts_with("begin 2")).unwrap();
    let lease_end = (died_ns + TTL_NS) as f64 / 1e9;
    assert!(last_tick < lease_end, "a tick at {last_tick}, the lease ended at {lease_end}");
    assert!(last_tick < seconds(successor), "the successor began before the tree was gone");
    let latest = lease_end + takeover_ns() as f64 / 1e9;
    assert!(seconds(successor) < latest, "began at {}, not before {latest}", seconds(successor));
    let attempts = cluster.attempts("stubborn", run, "t");
    assert_eq!(attempts.len(), 2, "{attempts:#?}");
    assert_lost_by_expiry(&attempts[0]);
    assert_eq!(attempts[1]["why"], "replaces");
    assert_eq!(attempts[1]["try_number"], 1, "no retry of the user's");
    cluster.assert_sound();
}

fn assert_lost_by_expiry(attempt: &Value) {
    assert_eq!(attempt["outcome"], "lost", "{attempt:#}");
    assert_eq!(attempt["counted_as"], "infra", "{attempt:#}");
    let evidence = &attempt["evidence"];
    assert_eq!(evidence["kind"], "expiry", "{attempt:#}");
    for field in ["at", "job", "last_heartbeat_at", "lease_expires_at", "declared_by", "term"] {
        assert!(!evidence[field].is_null(), "no `{field}` in {evidence:#}");
    }
}

pub(super) fn no_daemon(cluster: &Cluster) -> bool {
    let marker = cluster.path("marker").to_string_lossy().into_owned();
    !any_process(|line| line.contains(&marker))
}

/// I5, I8, I25: the shims fence themselves.
#[test]
fn a_worker_killed_for_good_is_replaced_after_its_trees_are_gone() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    let (run, mut workers, _server, _scheduler) = running(&cluster);
    let index = usize::from(owner(&cluster, &run) == "w2");
    workers.remove(index).kill9();
    let died_ns = ClockKind::Boottime.now_ns();
    assert_replaced(&cluster, &run, died_ns);
    assert!(no_daemon(&cluster));
}

/// I5 at level `pidns`: the trees end with their shims.
#[test]
fn a_worker_and_its_shims_killed_for_good_are_replaced_as_well() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    let (run, mut workers, _server, _scheduler) = running(&cluster);
    let name = owner(&cluster, &run);
    let index = usize::from(name == "w2");
    workers.remove(index).kill9();
    signal_shims(&cluster, &name, rustix::process::Signal::KILL);
    let died_ns = ClockKind::Boottime.now_ns();
    wait_for("the trees to end with their shims", || no_daemon(&cluster));
    assert_replaced(&cluster, &run, died_ns);
}

pub(super) fn signal_shims(cluster: &Cluster, worker: &str, signal: rustix::process::Signal) {
    let attempts = cluster.path(worker).join("attempts");
    for entry in std::fs::read_dir(attempts).unwrap().filter_map(Result::ok) {
        let dir = fencepost_worker::dir::AttemptDir::new(entry.path());
        let Ok(page) = fencepost_worker::page::Page::open(&dir) else { continue };
        let Some(shim) = page.shim() else { continue };
        let pid = rustix::process::Pid::from_raw(shim.pid).unwrap();
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// A worker that is stopped, not dead: it wakes after its lease, finds its work replaced, reports
/// to nobody's harm, and works on as a new job.
#[test]
fn a_worker_that_wakes_after_its_lease_harms_nobody_and_works_on() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    let (run, workers, _server, _scheduler) = running(&cluster);
    let index = usize::from(owner(&cluster, &run) == "w2");
    workers[index].signal(rustix::process::Signal::STOP);
    let died_ns = ClockKind::Boottime.now_ns();
    assert_replaced(&cluster, &run, died_ns);
    workers[index].signal(rustix::process::Signal::CONT);
    let name = ["w1", "w2"][index];
    let is_live = || {
        let jobs = cluster.json(&["workers", "list"]);
        let rows = jobs.as_array().cloned().unwrap_or_default();
        rows.iter().any(|row| row["name"] == name && row["liveness"] == "live")
    };
    wait_for("the worker to register anew", is_live);
    let attempts = cluster.attempts("stubborn", &run, "t");
    assert_eq!(attempts.len(), 2, "{attempts:#?}");
    assert_lost_by_expiry(&attempts[0]);
    cluster.assert_sound();
}

/// Its first attempt ends well as soon as it may; each says so.
fn prompt(cluster: &Cluster) -> String {
    let (ledger, word) = (cluster.path("prompt"), cluster.path("word"));
    format!(
        "tasks:\n  t:\n    retries: 0\n    outputs: {{by: integer}}\n    run: |\n      \
         echo \"begin $FENCEPOST_ATTEMPT_NUMBER\" >> '{ledger}'\n      \
         while ! [ -e '{word}' ]; do sleep 0.1; done\n      \
         echo \"by=$FENCEPOST_ATTEMPT_NUMBER\" >> \"$FENCEPOST_OUTPUT_FILE\"\n      \
         echo \"end $FENCEPOST_ATTEMPT_NUMBER\" >> '{ledger}'\n",
        ledger = ledger.display(),
        word = word.display(),
    )
}

/// What the store shows of both runs, but for what tells of refusals: all states, times, outcomes.
fn shown(cluster: &Cluster, runs: &[(&str, &str)]) -> Vec<Value> {
    let of_run = |(dag, run): &(&str, &str)| {
        let task = cluster.json(&["tasks", "show", dag, run, "t"]);
        let mut all = vec![cluster.json(&["runs", "show", dag, run]), task];
        all.extend(cluster.attempts(dag, run, "t"));
        all
    };
    let mut all: Vec<Value> = runs.iter().flat_map(of_run).collect();
    for fields in all.iter_mut().filter_map(Value::as_object_mut) {
        for telling in ["last_event_seq", "refused_writes", "may_still_run"] {
            fields.remove(telling);
        }
    }
    all
}

/// I3, I4, I5, I21: a worker stands still beyond its lease. One of its tasks ended well meanwhile, the other
/// one was ended by its shim; both were replaced, and their successors are done when it goes on. What it
/// reports is refused with the reason, and changes nothing.
#[test]
fn what_a_worker_reports_after_its_successors_are_done_is_refused_and_changes_nothing() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    cluster.dag("stubborn", &stubborn(&cluster, "pidns"));
    cluster.dag("prompt", &prompt(&cluster));
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let first = cluster.worker("w1");
    let (deaf, late) = (cluster.trigger("stubborn"), cluster.trigger("prompt"));
    wait_for("both tasks", || ticks(&cluster) > 0 && cluster.lines("prompt").len() == 1);
    first.signal(rustix::process::Signal::STOP);
    let died_ns = ClockKind::Boottime.now_ns();
    std::fs::write(cluster.path("word"), "").unwrap();
    wait_for("the other task to end", || cluster.lines("prompt").len() == 2);
    let _second = cluster.worker("w2");
    assert_replaced(&cluster, &deaf, died_ns);
    cluster.wait_state("prompt", &late, "success");
    assert_eq!(cluster.lines("prompt"), ["begin 1", "end 1", "begin 2", "end 2"]);
    let runs = [("stubborn", deaf.as_str()), ("prompt", late.as_str())];
    let before = shown(&cluster, &runs);
    first.signal(rustix::process::Signal::CONT);
    let refused = |(dag, run): &(&str, &str)| -> Vec<Value> {
        let events = cluster.json(&["events", dag, run]);
        let events = events.as_array().cloned().unwrap_or_default();
        events.into_iter().filter(|event| event["kind"] == "write_refused").collect()
    };
    wait_for("what it reports", || runs.iter().all(|run| !refused(run).is_empty()));
    for ((dag, run), tried) in runs.iter().zip(["Gone", "Exit(0)"]) {
        let refused = refused(&(dag, run));
        assert_eq!(refused.len(), 1, "{refused:#?}");
        assert_eq!(refused[0]["reason"], "superseded", "{refused:#?}");
        let own = &cluster.attempts(dag, run, "t")[0];
        assert_eq!(refused[0]["token"], own["token"]);
        assert_eq!((&own["refused_writes"], &own["may_still_run"]), (&1.into(), &false.into()));
        assert!(refused[0]["detail"]["tried"].as_str().unwrap().contains(tried), "{refused:#?}");
        let log = cluster.must(&["logs", dag, run, "t", "--attempt", "1"]);
        assert!(log.contains("lost: ") && log.contains("expiry"), "{log}");
    }
    assert_eq!(shown(&cluster, &runs), before);
    // What its shim did is there as well, behind what counted.
    let late = || cluster.must(&["logs", "stubborn", &deaf, "t", "--attempt", "1", "--late"]);
    wait_for("the shim's own words", || late().contains("self_fence"));
    cluster.assert_sound();
}
