//! What the attempt of a worker that is gone for good leaves behind: its log, and the handle of what it
//! began elsewhere.

use super::death::signal_shims;
use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::wait_for;
use rustix::process::Signal;

/// The worker that runs a task dies with its shims, and its home is wiped; another one comes.
fn wipe(cluster: &Cluster, worker: super::world::Role) -> super::world::Role {
    worker.kill9();
    signal_shims(cluster, "w1", Signal::KILL);
    let home = cluster.path("w1");
    wait_for("the home to be wiped", || std::fs::remove_dir_all(&home).is_ok() || !home.exists());
    cluster.worker("w2")
}

/// I21: all but the last moments of a killed attempt's log can be read, it says why it ended, and the log of
/// its replacement is another one.
#[test]
fn the_log_of_an_attempt_outlives_its_worker_and_says_why_it_ended() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    let script = format!(
        "say() {{ for n in $(seq $1 $2); do echo \"attempt $FENCEPOST_ATTEMPT_NUMBER line $n\"; done; }}\n      \
         if [ \"$FENCEPOST_ATTEMPT_NUMBER\" -gt 1 ]; then say 1 3; exit 0; fi\n      \
         say 1 490; sleep 3; say 491 500; echo x > '{}'; sleep 3600",
        cluster.path("said").display()
    );
    cluster.dag(
        "talk",
        &format!("tasks:\n  t:\n    containment: pidns\n    run: |\n      {script}\n"),
    );
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let worker = cluster.worker("w1");
    let run = cluster.trigger("talk");
    wait_for("500 lines", || cluster.path("said").exists());
    let _other = wipe(&cluster, worker);
    cluster.wait_state("talk", &run, "success");
    let log = |attempt: &str| cluster.must(&["logs", "talk", &run, "t", "--attempt", attempt]);
    wait_for("the other log", || log("2").contains("attempt 2 line 3"));
    let (first, second) = (log("1"), log("2"));
    for n in 1..=490 {
        assert!(first.contains(&format!("attempt 1 line {n}\n")), "line {n} is missing");
    }
    assert!(!first.contains("attempt 2"), "{first}");
    let last = first.trim_end().lines().last().unwrap();
    assert!(last.contains("lost: ") && last.contains("expiry"), "{last}");
    assert!(!second.contains("attempt 1") && !second.contains("lost: "), "{second}");
}

/// The handle of a job that runs elsewhere is in the task's checkpoint: the attempt that replaces the one
/// that was lost finds it, and submits nothing.
#[test]
fn a_handle_in_the_checkpoint_reaches_the_attempt_that_replaces_a_lost_one() {
    let mut cluster = Cluster::new();
    cluster.short_worker_leases();
    let yaml = format!(
        "tasks:\n  t:\n    containment: pidns\n    run: |\n      \
         if [ -s \"$FENCEPOST_CHECKPOINT_IN\" ]; then\n        \
         echo \"waits for $(cat \"$FENCEPOST_CHECKPOINT_IN\")\" >> '{0}'; exit 0\n      fi\n      \
         echo submits >> '{0}'\n      echo job-7 > \"$FENCEPOST_CHECKPOINT_OUT\"\n      sleep 3600\n",
        cluster.path("ledger").display()
    );
    cluster.dag("remote", &yaml);
    let (_server, _scheduler) = (cluster.server(), cluster.scheduler("s1"));
    let worker = cluster.worker("w1");
    let run = cluster.trigger("remote");
    let kept = "SELECT count(*) FROM task_instance WHERE checkpoint IS NOT NULL";
    wait_for("the handle to be kept", || cluster.database().sql(kept).unwrap().trim() == "1");
    let _other = wipe(&cluster, worker);
    cluster.wait_state("remote", &run, "success");
    assert_eq!(cluster.lines("ledger"), ["submits", "waits for job-7"]);
    assert_eq!(cluster.attempts("remote", &run, "t")[0]["outcome"], "lost");
    cluster.assert_sound();
}
