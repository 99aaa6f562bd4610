//! How a task can end, and what the outcome says.

use std::os::unix::fs::PermissionsExt;

use fencepost_worker::outcome::{Outcome, OutcomeKind, Reason};
use fencepost_worker::spec::{Containment, ShimSpec};

use crate::bench::{Bench, at_every_level, end, levels, sh, spec, text, wait_for};

#[test]
fn exit_codes_and_signals_are_told_at_every_level() {
    for (containment, level) in levels() {
        let run = |script: &str| Bench::new().outcome(&ShimSpec { containment, ..sh(script) });
        for code in [0, 1, 75, 77, 99, 100, 126, 127, 137, 255] {
            let outcome = run(&format!("exit {code}"));
            assert_eq!((outcome.kind, outcome.exit_code), (OutcomeKind::Exited, Some(code)));
            assert_eq!((outcome.containment, outcome.signal), (Some(level), None));
            assert!(outcome.tree_empty && outcome.is_success() == (code == 0));
        }
        for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11)] {
            let outcome = run(&format!("kill -{name} $$"));
            assert_eq!((outcome.kind, outcome.signal), (OutcomeKind::Signaled, Some(number)));
            assert_eq!(outcome.reason, None, "not our signal");
        }
    }
}

#[test]
fn an_outcome_carries_token_times_and_usage_and_ends_the_log() {
    let bench = Bench::new();
    let outcome = bench.outcome(&sh("echo out; echo err >&2; exit 3"));
    assert_eq!(outcome.token, "549755813889");
    assert!(outcome.started_at.unwrap() <= outcome.ended_at.unwrap());
    assert!(outcome.elapsed_ns > 0 && outcome.peak_rss_kib > 0 && !outcome.boot_id.is_empty());
    let log = bench.log();
    assert!(log.starts_with("fencepost: started attempt test-"), "{log}");
    assert!(log.contains("stdout: out\n") && log.contains("stderr: err\n"), "{log}");
    assert!(log.ends_with("fencepost: ended: exited, exit code 3\n"), "{log}");
}

fn no_exec(spec: &ShimSpec) -> (Option<i32>, String) {
    let bench = Bench::new();
    let outcome = bench.outcome(spec);
    assert_eq!(outcome.kind, OutcomeKind::CouldNotExec, "{outcome:?}");
    let error = outcome.error.unwrap();
    assert!(bench.log().ends_with(&format!("ended: could not execute: {error}\n")));
    (outcome.exit_code, error)
}

#[test]
fn what_cannot_be_executed_is_named() {
    let bench = Bench::new();
    let file = |name: &str, content: &str, mode| {
        let path = bench.file(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let check = |argv: &[&str], code, words: &str| {
        let (exit_code, error) = no_exec(&spec(argv));
        assert_eq!(exit_code, Some(code), "{error}");
        assert!(error.contains(words), "{error}");
    };
    check(&["/no/such/file"], 127, "`/no/such/file` does not exist");
    check(&["no-such-program"], 127, "`no-such-program` is not in any directory of PATH");
    check(&[&file("plain", "#!/bin/sh\n", 0o644)], 126, "plain` is not executable");
    check(&["/"], 126, "`/` is not executable");
    check(
        &[&file("script", "#!/no/interpreter -x\n", 0o755)],
        127,
        "script` needs the interpreter `/no/interpreter`, which does not exist",
    );
    check(&[&file("text", "just text", 0o755)], 126, "nor a script with `#!`");
    for (containment, _) in levels() {
        let elsewhere = ShimSpec { cwd: "/no/dir".into(), containment, ..spec(&["true"]) };
        let (code, error) = no_exec(&elsewhere);
        assert_eq!(code, Some(126));
        assert!(error.contains("working directory `/no/dir`: No such file"), "{error}");
    }
    let nobody = ShimSpec { run_as_user: Some("no-such-user".into()), ..spec(&["true"]) };
    assert!(no_exec(&nobody).1.contains("there is no such user"));
    assert!(no_exec(&spec(&[])).1.contains("names no program"));
    assert!(no_exec(&spec(&["a\0b"])).1.contains("NUL"));
    let newer = ShimSpec { version: 99, ..spec(&["true"]) };
    assert!(no_exec(&newer).1.contains("version 99"));
}

/// Starts a task that reports its pid in a file, stops it, and returns how that ended.
fn stopped(script: &str, change: impl Fn(&mut ShimSpec)) -> (Outcome, String) {
    let bench = Bench::new();
    let ready = bench.file("ready");
    let mut spec = sh(&script.replace("READY", ready.to_str().unwrap()));
    change(&mut spec);
    let running = bench.launch(&spec);
    wait_for("the task", || ready.exists());
    running.request_stop(Reason::Cancel, false);
    (end(running.as_ref()), bench.log())
}

const TRAP: &str = "trap 'exit CODE' TERM; touch READY; while :; do sleep 0.05; done";

#[test]
fn after_our_signal_only_graceful_codes_and_earlier_results_are_success() {
    let (plain, log) = stopped(&TRAP.replace("CODE", "0"), |_| {});
    assert_eq!((plain.kind, plain.reason), (OutcomeKind::Stopped, Some(Reason::Cancel)));
    assert_eq!((plain.exit_code, plain.is_success()), (Some(0), false));
    assert!(log.contains("fencepost: cancel: SIGTERM, SIGKILL after 2000 ms"), "{log}");
    assert!(log.ends_with("ended: stopped by fencepost (cancel), exit code 0\n"), "{log}");

    let graceful = |spec: &mut ShimSpec| spec.graceful_exit_codes = vec![0, 7];
    assert!(stopped(&TRAP.replace("CODE", "7"), graceful).0.is_success());
    assert!(!stopped(&TRAP.replace("CODE", "8"), graceful).0.is_success());
    let untrapped = "touch READY; exec sleep 600";
    assert!(!stopped(untrapped, graceful).0.is_success());
    let (outcome, _) = stopped(untrapped, |spec| spec.graceful_exit_codes = vec![143]);
    assert_eq!((outcome.signal, outcome.is_success()), (Some(15), true));
}

#[test]
fn a_result_file_counts_only_if_it_was_written_before_our_signal() {
    let files = tempfile::tempdir().unwrap();
    let result = files.path().join("result");
    let with_result = |spec: &mut ShimSpec| spec.result_file = Some(result.clone());
    let write = format!("echo '{{\"status\":\"success\"}}' > {}", result.display());

    let late = TRAP.replace("exit CODE", &format!("{write}; exit 1"));
    let (outcome, _) = stopped(&late.replace("'{\"status\":\"success\"}'", "x"), with_result);
    assert!(!outcome.success_before_signal);
    let quoted = format!("say() {{ {write}; }}; {}", TRAP.replace("exit CODE", "say; exit 1"));
    let (outcome, _) = stopped(&quoted, with_result);
    assert!(text(&result).contains("success") && !outcome.success_before_signal);

    let before = format!("{write}; {}", TRAP.replace("CODE", "1"));
    let (outcome, _) = stopped(&before, with_result);
    assert!(outcome.success_before_signal && outcome.is_success());
}

#[test]
fn a_task_that_ignores_sigterm_is_killed_after_the_smaller_grace() {
    let ignore = "trap '' TERM; touch READY; while :; do sleep 0.05; done";
    let (outcome, log) = stopped(ignore, |spec| spec.worker_kill_grace_ms = 300);
    assert_eq!((outcome.kind, outcome.signal), (OutcomeKind::Stopped, Some(9)));
    assert!(log.contains("SIGKILL after 300 ms") && log.contains("SIGKILL to the whole tree"));
}

#[test]
fn timeouts_end_a_task_and_name_themselves() {
    let timed = ShimSpec { execution_timeout_ms: Some(300), ..sh("sleep 600") };
    let outcome = Bench::new().outcome(&timed);
    assert_eq!(outcome.reason, Some(Reason::ExecutionTimeout));
    assert!(outcome.elapsed_ns >= 300_000_000);
}

#[test]
fn a_stall_is_neither_output_nor_cpu_at_every_level() {
    at_every_level(|containment, _| {
        let stall =
            |script: &str| ShimSpec { containment, stall_timeout_ms: Some(2_500), ..sh(script) };
        let idle = Bench::new().outcome(&stall("sleep 600"));
        assert_eq!(idle.reason, Some(Reason::StallTimeout), "{containment:?}");
        let busy = "end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do :; done";
        let busy = Bench::new().outcome(&stall(busy));
        assert_eq!((busy.kind, busy.exit_code), (OutcomeKind::Exited, Some(0)), "{containment:?}");
    });
}

#[test]
fn a_level_that_is_not_to_be_had_is_a_clear_failure() {
    // Root has every level here; the test of the unprivileged worker runs this one too.
    let had = levels();
    for (containment, word) in [(Containment::Pidns, "pidns"), (Containment::Cgroup, "cgroup")] {
        if !had.iter().any(|(level, _)| *level == containment) {
            let (_, error) = no_exec(&ShimSpec { containment, ..spec(&["true"]) });
            assert!(error.starts_with(&format!("containment {word}: ")), "{error}");
        }
    }
    if !rustix::process::geteuid().is_root() {
        let other = ShimSpec { run_as_user: Some("root".into()), ..spec(&["true"]) };
        assert!(no_exec(&other).1.contains("needs a worker that runs as root"));
    }
}
