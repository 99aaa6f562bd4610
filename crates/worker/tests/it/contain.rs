//! Whole trees: nothing of an attempt is left when its outcome is written.

use fencepost_worker::attempt::{Absence, Finished};
use fencepost_worker::outcome::{OutcomeKind, Reason};
use fencepost_worker::spec::{Level, ShimSpec};

use crate::bench::{Bench, end, kill, levels, processes_with, sh, text, wait_end, wait_for};

/// A task that ignores SIGTERM, with a daemon in a session of its own that ignores it too.
fn stubborn(bench: &Bench, marker: &str) -> ShimSpec {
    let daemons = bench.file("daemons");
    sh(&format!(
        "trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; echo x >> {daemons}; \
         while :; do sleep 0.05; done #{marker}' & \
         echo prompt; echo x >> {daemons}; while :; do sleep 0.05; done #{marker}",
        daemons = daemons.display(),
    ))
}

fn marker(name: &str) -> String {
    format!("marker-{name}-{}", std::process::id())
}

fn wait_for_both(bench: &Bench) {
    wait_for("task and daemon", || text(&bench.file("daemons")).lines().count() == 2);
}

#[test]
fn a_stopped_tree_is_gone_before_its_outcome_daemons_included() {
    for (containment, level) in levels() {
        let bench = Bench::new();
        let marker = marker(&format!("stop-{}", level.as_str()));
        let spec = ShimSpec { containment, kill_grace_ms: 300, ..stubborn(&bench, &marker) };
        let running = bench.launch(&spec);
        wait_for_both(&bench);
        assert!(processes_with(&marker).len() >= 2);
        assert_eq!(running.progress().level, Some(level));
        running.request_stop(Reason::Clear, false);
        wait_for("the outcome", || {
            let there = bench.dir().outcome().exists();
            assert!(!there || processes_with(&marker).is_empty(), "outcome before the end");
            there
        });
        let outcome = end(running.as_ref());
        assert_eq!((outcome.kind, outcome.signal), (OutcomeKind::Stopped, Some(9)));
        assert!(outcome.tree_empty);
    }
}

#[test]
fn a_time_out_ends_the_tree_too() {
    for (containment, level) in levels() {
        let bench = Bench::new();
        let marker = marker(&format!("timeout-{}", level.as_str()));
        let spec = ShimSpec {
            containment,
            kill_grace_ms: 200,
            execution_timeout_ms: Some(1_000),
            ..stubborn(&bench, &marker)
        };
        let outcome = bench.outcome(&spec);
        assert_eq!(outcome.reason, Some(Reason::ExecutionTimeout));
        assert_eq!(processes_with(&marker), [] as [i32; 0]);
    }
}

#[test]
fn what_the_main_process_leaves_behind_is_ended_and_told() {
    for (containment, level) in levels() {
        let bench = Bench::new();
        let marker = marker(&format!("left-{}", level.as_str()));
        let trace = bench.file("trace");
        let daemon = |trap: &str| {
            let script = format!(
                "setsid sh -c 'trap \"{trap}\" TERM; touch {t}; while :; do sleep 0.05; done #{marker}' & \
                 while ! [ -e {t} ]; do sleep 0.01; done; exit 4",
                t = trace.display()
            );
            ShimSpec { containment, kill_grace_ms: 400, ..sh(&script) }
        };
        let outcome = bench.outcome(&daemon("exit 0"));
        assert_eq!((outcome.kind, outcome.exit_code), (OutcomeKind::Exited, Some(4)));
        assert!(outcome.leftovers >= 1 && outcome.reason.is_none());
        let log = bench.log();
        assert!(log.contains("left") && log.contains("SIGTERM to what is left"), "{log}");
        assert!(!log.contains("SIGKILL to the whole tree"), "it heard SIGTERM: {log}");

        let deaf = Bench::new();
        std::fs::remove_file(&trace).unwrap();
        let outcome = deaf.outcome(&daemon(""));
        assert_eq!((outcome.kind, outcome.exit_code), (OutcomeKind::Exited, Some(4)));
        assert!(deaf.log().contains("SIGKILL to the whole tree"));
        assert_eq!(processes_with(&marker), [] as [i32; 0]);
    }
}

#[test]
fn a_daemon_that_keeps_the_pipes_open_does_not_hold_up_the_end() {
    let bench = Bench::new();
    // The writing end of the task's standard output is handed to a process outside the tree.
    let fifo = bench.file("fifo");
    let keep =
        format!("mkfifo {f}; sleep 600 > {f} & exec 3>&1; echo kept; exit 0", f = fifo.display());
    let outcome = bench.outcome(&sh(&keep));
    assert_eq!(outcome.exit_code, Some(0));
    assert!(bench.log().contains("stdout: kept"));
}

/// Kills the shim itself, without any warning.
fn kill_shim(bench: &Bench, spec: &ShimSpec) -> Absence {
    let running = bench.launch(spec);
    wait_for_both(bench);
    kill(running.progress().shim.unwrap().pid, "-KILL");
    wait_end(running.as_ref());
    match running.finish().unwrap() {
        Finished::Absent(absent) => absent.prove().unwrap(),
        Finished::Outcome(outcome) => panic!("a killed shim writes nothing: {outcome:?}"),
    }
}

#[test]
fn a_shim_that_is_killed_takes_its_tree_along_where_the_kernel_holds_it() {
    for (containment, level) in levels() {
        let bench = Bench::new();
        let marker = marker(&format!("killed-{}", level.as_str()));
        let absence = kill_shim(&bench, &ShimSpec { containment, ..stubborn(&bench, &marker) });
        match (level, absence) {
            (Level::Pidns | Level::Cgroup, Absence::Proven(outcome)) => {
                assert_eq!((outcome.kind, outcome.containment), (OutcomeKind::Gone, Some(level)));
                assert_eq!(processes_with(&marker), [] as [i32; 0]);
                assert!(bench.log().contains("fencepost: ended: gone: "), "{}", bench.log());
            }
            (Level::Group, Absence::Unknown { why }) => {
                assert!(why.contains("may still run"), "{why}");
                assert!(!bench.dir().outcome().exists(), "no evidence, no outcome");
                wait_for("what carries the marker", || processes_with(&marker).is_empty());
            }
            (_, other) => panic!("{level:?}: {other:?}"),
        }
    }
}

/// The guard of the test above switched off: at `group` a daemon without the marker in its
/// environment survives its shim, so that emptiness is really what the other levels add.
#[test]
fn without_containment_a_daemon_that_cleared_its_environment_survives_the_shim() {
    let bench = Bench::new();
    let marker = marker("survivor");
    let mut spec = stubborn(&bench, &marker);
    spec.containment = fencepost_worker::spec::Containment::Group;
    spec.argv[2] = spec.argv[2].replace("setsid sh", "env -i setsid sh");
    let absence = kill_shim(&bench, &spec);
    assert!(matches!(absence, Absence::Unknown { .. }), "{absence:?}");
    let survivors = processes_with(&marker);
    assert!(!survivors.is_empty(), "the daemon is still there");
    for pid in survivors {
        kill(pid, "-KILL");
    }
}

#[test]
fn sigterm_to_the_shim_is_a_stop_in_order() {
    let bench = Bench::new();
    let marker = marker("shim-term");
    let running = bench.launch(&ShimSpec { kill_grace_ms: 200, ..stubborn(&bench, &marker) });
    wait_for_both(&bench);
    let shim = running.progress().shim.unwrap().pid;
    for harmless in ["-HUP", "-INT", "-QUIT", "-USR1", "-ALRM", "-PIPE"] {
        kill(shim, harmless);
    }
    kill(shim, "-TERM");
    assert_eq!(end(running.as_ref()).reason, Some(Reason::ShimTerminated));
    assert_eq!(processes_with(&marker), [] as [i32; 0]);
}

#[test]
fn kill_now_skips_the_grace_and_can_follow_a_stop() {
    for (containment, _) in levels() {
        let bench = Bench::new();
        let marker = marker("now");
        let spec = ShimSpec { containment, kill_grace_ms: 600_000, ..stubborn(&bench, &marker) };
        let running = bench.launch(&spec);
        wait_for_both(&bench);
        running.request_stop(Reason::Drain, false);
        wait_for("the first signal", || bench.log().contains("drain: SIGTERM"));
        running.request_stop(Reason::Kill, true);
        let outcome = end(running.as_ref());
        assert_eq!((outcome.reason, outcome.signal), (Some(Reason::Drain), Some(9)));
        assert_eq!(processes_with(&marker), [] as [i32; 0]);
    }
}

#[test]
fn no_cgroup_is_left_behind() {
    if !levels().iter().any(|(_, level)| *level == Level::Cgroup) {
        return;
    }
    let bench = Bench::new();
    let spec = ShimSpec {
        containment: fencepost_worker::spec::Containment::Cgroup,
        ..sh("cat /proc/self/cgroup; sleep 0.1 & exit 0")
    };
    assert_eq!(bench.outcome(&spec).exit_code, Some(0));
    let leaf = text(&bench.dir().cgroup());
    assert!(bench.log().contains(leaf.rsplit('/').next().unwrap()), "it ran in its leaf");
    assert!(!std::path::Path::new(&leaf).exists(), "{leaf}");
}

/// No task hangs on the thread that started it, as it would by that thread's death signal.
#[test]
fn a_task_outlives_the_thread_that_launched_it() {
    for (containment, level) in levels() {
        let bench = Bench::new();
        let go = bench.file("go");
        let script = format!("while ! [ -e {} ]; do sleep 0.02; done; exit 3", go.display());
        let spec = ShimSpec { containment, ..sh(&script) };
        let running =
            std::thread::scope(|scope| scope.spawn(|| bench.launch(&spec)).join().unwrap());
        wait_for("the task", || running.progress().started_at_ns > 0);
        // The kernel sends such signals when the thread is gone, which it is.
        std::fs::write(&go, "").unwrap();
        assert_eq!(end(running.as_ref()).exit_code, Some(3), "{level:?}");
    }
}
