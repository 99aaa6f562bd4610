//! Shims and workers that die, stand still or are two, in each combination: no two executions of a task at
//! once, and what each level of containment promises is what happens.

use super::crowd::now_ns;
use super::death::{assert_replaced, no_daemon, owner, running, signal_shims, stubborn, ticks};
use super::world::{Cluster, Role};
use crate::installation::Installation;
use crate::standalone::world::{any_process, wait_for};
use rustix::process::Signal;

/// A worker dies just before its shim is forked, while it is, and just after its exec; it comes back, and
/// its task is executed once, under the token that it was claimed with.
#[cfg(feature = "crash-points")]
#[test]
fn a_worker_that_dies_around_the_fork_of_a_shim_starts_its_task_once() {
    use crate::standalone::world::{assert_once, ledger_task};
    let cluster = Cluster::new();
    let task = ledger_task(&cluster.path("ledger"), "0.5");
    cluster.dag("one", &format!("tasks:\n  t:\n{task}"));
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let points = ["worker:prepared", "worker:accepted", "worker:launching", "worker:launched"];
    for (n, point) in points.iter().enumerate() {
        let mut first = cluster.worker_at("w1", &[("FENCEPOST_CRASH", point)]);
        let run = cluster.trigger("one");
        wait_for("the worker to die", || first.child.try_wait().unwrap().is_some());
        let second = cluster.worker("w1");
        cluster.wait_state("one", &run, "success");
        assert_once(&cluster.lines("ledger"), n + 1);
        let attempts = cluster.attempts("one", &run, "t");
        assert_eq!(attempts.len(), 1, "{point}: {attempts:#?}");
        second.stop();
    }
    cluster.assert_sound();
}

/// I5 at level `pidns`: the kernel ends a shim that stands still at its deadline, and its tree with it.
#[test]
fn a_shim_that_is_stopped_and_its_worker_killed_end_with_their_lease() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    let (run, mut workers, _server, _scheduler) = running(&cluster);
    let name = owner(&cluster, &run);
    signal_shims(&cluster, &name, Signal::STOP);
    workers.remove(usize::from(name == "w2")).kill9();
    let died_ns = now_ns();
    assert_replaced(&cluster, &run, died_ns);
    assert!(no_daemon(&cluster));
}

/// One worker with a task and its daemon, contained like that; `None` where this machine does not have it.
fn alone(cluster: &Cluster, level: &str) -> Option<(String, Role, [Role; 2])> {
    cluster.dag("probe", &format!("tasks:\n  t: {{run: 'true', containment: {level}}}\n"));
    cluster.dag("stubborn", &stubborn(cluster, level));
    let others = [cluster.server(), cluster.scheduler("s1")];
    let worker = cluster.worker("w1");
    let probe = cluster.trigger("probe");
    wait_for("the probe", || ["success", "failed"].contains(&&*cluster.run_state("probe", &probe)));
    if cluster.run_state("probe", &probe) == "failed" {
        return None;
    }
    let run = cluster.trigger("stubborn");
    wait_for("the task and its daemon", || ticks(cluster) > 0);
    Some((run, worker, others))
}

fn is_ticking(cluster: &Cluster) -> bool {
    let marker = cluster.path("marker").to_string_lossy().into_owned();
    any_process(|line| line.contains(&marker) && line.contains("while true"))
}

/// What the successor in the home makes of a tree whose shim and worker were killed: at `pidns` it ended
/// with its shim, at `cgroup` it is ended by the successor; either way that is evidence, and the replacement
/// begins when nothing is left.
#[test]
fn a_tree_without_shim_and_worker_is_gone_before_its_replacement_begins() {
    for level in ["pidns", "cgroup"] {
        let cluster = Cluster::new();
        let Some((run, worker, _others)) = alone(&cluster, level) else { continue };
        worker.kill9();
        signal_shims(&cluster, "w1", Signal::KILL);
        if level == "pidns" {
            wait_for("the tree to end with its shim", || !is_ticking(&cluster));
        } else {
            assert!(is_ticking(&cluster), "{level} promises nothing where both are killed");
        }
        let _worker = cluster.worker("w1");
        cluster.wait_state("stubborn", &run, "success");
        assert!(!is_ticking(&cluster), "{level}");
        let lines = cluster.lines("ledger");
        let words: Vec<&str> = lines.iter().filter_map(|line| line.split(' ').next()).collect();
        let second = words.iter().rposition(|word| *word == "begin").unwrap();
        assert_eq!(
            second,
            words.len() - 1,
            "{level}: a tick after the replacement began: {lines:?}"
        );
        let attempts = cluster.attempts("stubborn", &run, "t");
        assert_eq!(attempts.len(), 2, "{attempts:#?}");
        let first = &attempts[0];
        assert_eq!((&first["outcome"], &first["counted_as"]), (&"lost".into(), &"infra".into()));
        assert_eq!(first["evidence"]["kind"], "successor", "{first:#}");
        assert_eq!(first["containment"], level);
        cluster.assert_sound();
    }
}

/// At `group` the death of shim and worker proves nothing: the attempt stays, says so in its log, and is
/// replaced once a person knows that nothing of it runs.
#[test]
fn at_group_the_death_of_shim_and_worker_is_no_evidence_and_a_person_decides() {
    let cluster = Cluster::new();
    let (run, worker, _others) = alone(&cluster, "group").unwrap();
    worker.kill9();
    signal_shims(&cluster, "w1", Signal::KILL);
    let _worker = cluster.worker("w1");
    let log = || cluster.must(&["logs", "stubborn", &run, "t"]);
    wait_for("it to be said", || log().contains("may still run"));
    assert!(log().contains("attempts confirm-dead"), "{}", log());
    let attempts = cluster.attempts("stubborn", &run, "t");
    assert_eq!((attempts.len(), &attempts[0]["outcome"]), (1, &serde_json::Value::Null));
    let token = attempts[0]["token"].as_str().unwrap().to_owned();
    // Other work goes on meanwhile.
    let probe = cluster.trigger("probe");
    cluster.wait_state("probe", &probe, "success");
    wait_for("what was found of it to be ended", || !is_ticking(&cluster));
    cluster.must(&["attempts", "confirm-dead", &token, "--reason", "looked at it", "--yes"]);
    cluster.wait_state("stubborn", &run, "success");
    let attempts = cluster.attempts("stubborn", &run, "t");
    assert_eq!(attempts[0]["evidence"]["kind"], "person", "{attempts:#?}");
    assert_eq!((attempts.len(), &attempts[1]["outcome"]), (2, &"success".into()));
    cluster.assert_sound();
}

/// A task that goes on until a word is given, with a line for each half of a second that it lives.
fn patient(cluster: &Cluster) -> String {
    let (ledger, word) = (cluster.path("ledger"), cluster.path("word"));
    format!(
        "tasks:\n  t:\n    retries: 0\n    run: |\n      \
         echo \"begin $FENCEPOST_FENCING_TOKEN\" >> '{ledger}'\n      \
         while ! [ -e '{word}' ]; do echo tick >> '{ledger}'; sleep 0.5; done\n      \
         echo \"end $FENCEPOST_FENCING_TOKEN\" >> '{ledger}'\n",
        ledger = ledger.display(),
        word = word.display(),
    )
}

/// One attempt, begun and ended once.
fn assert_one(cluster: &Cluster, run: &str) {
    std::fs::write(cluster.path("word"), "").unwrap();
    cluster.wait_state("patient", run, "success");
    let lines = cluster.lines("ledger");
    let own: Vec<String> = lines.into_iter().filter(|line| line != "tick").collect();
    assert_eq!(own.len(), 2, "{own:?}");
    assert_eq!(own[0].replacen("begin", "end", 1), own[1]);
    assert_eq!(cluster.attempts("patient", run, "t").len(), 1);
    cluster.assert_sound();
}

fn lives_on(cluster: &Cluster) {
    let so_far = ticks(cluster);
    wait_for("the task to live on", || ticks(cluster) > so_far + 2);
}

/// I10: a worker that stands still is ended by the one that is started in its home; what runs goes on as
/// the same attempt, and continuing the first one wakes nobody.
#[test]
fn a_second_worker_in_the_home_of_one_that_is_stopped_takes_its_tasks_over() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    cluster.dag("patient", &patient(&cluster));
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let mut first = cluster.worker("w1");
    let run = cluster.trigger("patient");
    wait_for("the task", || ticks(&cluster) > 0);
    first.signal(Signal::STOP);
    let _second = cluster.worker_in("w1", "w1-again");
    wait_for("the first one to be ended", || first.child.try_wait().unwrap().is_some());
    lives_on(&cluster);
    assert_one(&cluster, &run);
}

/// I10: the same with the lock of the home gone, so that nobody ends the first one. Continued, it finds
/// itself succeeded: it neither ends nor keeps what it started.
#[test]
fn two_workers_in_one_home_whose_lock_is_gone_do_not_harm_each_other() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    cluster.dag("patient", &patient(&cluster));
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let first = cluster.worker("w1");
    let run = cluster.trigger("patient");
    wait_for("the task", || ticks(&cluster) > 0);
    first.signal(Signal::STOP);
    std::fs::remove_file(cluster.path("w1").join("lock")).unwrap();
    let _second = cluster.worker_in("w1", "w1-again");
    let jobs = || cluster.json(&["workers", "list"]).as_array().cloned().unwrap_or_default();
    let taken = || jobs().iter().any(|job| job["name"] == "w1-again" && job["liveness"] == "live");
    wait_for("the second one to be there", taken);
    lives_on(&cluster);
    first.signal(Signal::CONT);
    // Longer than the first one's lease lasted.
    let until_ns = now_ns() + 8_000_000_000;
    wait_for("some time", || now_ns() > until_ns);
    lives_on(&cluster);
    assert_one(&cluster, &run);
}
