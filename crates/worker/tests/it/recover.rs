//! The worker dies: what its successor finds in the home, and what it may conclude.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};

use fencepost_worker::attempt::{Absence, Attached, AttemptHost, Finished, HomeBoot, HostError};
use fencepost_worker::outcome::{Outcome, OutcomeKind, Reason};
use fencepost_worker::page::Lease;
use fencepost_worker::spec::{Level, ShimSpec};
use rustix::process::{Signal, pidfd_send_signal};

use crate::bench::{
    Bench, end, host, hour, levels, now, processes_with, sh, shim_exe, spec, text, wait_end,
    wait_for,
};

#[test]
fn an_attempt_that_was_prepared_and_not_launched_never_ran_and_never_will() {
    let bench = Bench::new();
    let trace = bench.file("trace");
    let spec = sh(&format!("echo ran > {}", trace.display()));
    drop(bench.host.prepare("a", &spec, hour()).unwrap());
    assert_eq!(bench.host.survey().unwrap(), ["a"]);
    let Absence::Proven(outcome) = bench.prove() else { panic!("it is known") };
    assert_eq!((outcome.kind, outcome.token.as_str()), (OutcomeKind::NeverRan, "549755813889"));

    // A shim that comes late finds the outcome and refuses.
    let lock = File::options().read(true).write(true).open(bench.dir().lock()).unwrap();
    let late = Command::new(shim_exe()).arg(bench.dir().path()).stdin(Stdio::from(lock)).status();
    assert!(late.unwrap().success());
    assert_eq!(text(&trace), "");
    assert_eq!(Outcome::read(&bench.dir()).unwrap().unwrap().kind, OutcomeKind::NeverRan);
    assert!(matches!(bench.host.prepare("a", &spec, hour()), Err(HostError::Exists(_))));
}

/// The guard of the test above switched off: without the outcome the same late shim does run.
#[test]
fn without_the_outcome_the_late_shim_would_run() {
    let bench = Bench::new();
    let trace = bench.file("trace");
    drop(bench.host.prepare("a", &sh(&format!("echo ran > {}", trace.display())), hour()).unwrap());
    assert!(matches!(bench.prove(), Absence::Proven(_)));
    std::fs::remove_file(bench.dir().outcome()).unwrap();
    let lock = File::options().read(true).write(true).open(bench.dir().lock()).unwrap();
    let late = Command::new(shim_exe()).arg(bench.dir().path()).stdin(Stdio::from(lock)).status();
    assert!(late.unwrap().success());
    assert_eq!(text(&trace), "ran\n");
}

#[test]
fn a_shim_without_the_lock_does_nothing() {
    let bench = Bench::new();
    let trace = bench.file("trace");
    let spec = sh(&format!("echo ran > {}", trace.display()));
    let prepared = bench.host.prepare("a", &spec, hour()).unwrap();
    let run = |stdin: Stdio| {
        let status = Command::new(shim_exe()).arg(bench.dir().path()).stdin(stdin).status();
        assert_eq!(status.unwrap().code(), Some(70));
    };
    run(Stdio::null());
    // Another open file of the lock, while the worker still holds it.
    run(Stdio::from(File::open(bench.dir().lock()).unwrap()));
    assert!(!bench.dir().outcome().exists() && text(&trace).is_empty());
    assert_eq!(end(prepared.launch().unwrap().as_ref()).exit_code, Some(0));
    assert_eq!(text(&trace), "ran\n");
}

#[test]
fn a_preparation_that_was_cut_off_anywhere_never_ran() {
    for keep in [&[][..], &["lock"], &["lock", "spec"], &["lock", "spec", "ctl", "outcome.tmp"]] {
        let bench = Bench::new();
        drop(bench.host.prepare("a", &spec(&["true"]), hour()).unwrap());
        for file in ["lock", "spec", "page", "ctl", "outcome.tmp", "lease"] {
            if !keep.contains(&file) {
                std::fs::remove_file(bench.dir().path().join(file)).unwrap();
            }
        }
        let Absence::Proven(outcome) = bench.prove() else { panic!("it is known") };
        assert_eq!(outcome.kind, OutcomeKind::NeverRan, "{keep:?}");
    }
}

#[test]
fn what_ended_while_nobody_looked_is_collected() {
    let bench = Bench::new();
    let running = bench.launch(&sh("echo said; exit 5"));
    wait_end(running.as_ref());
    drop(running);
    let Attached::Ended(outcome) = bench.attach() else { panic!("it has ended") };
    assert_eq!((outcome.kind, outcome.exit_code), (OutcomeKind::Exited, Some(5)));
    assert!(bench.log().contains("stdout: said"));
    let Attached::Ended(again) = bench.attach() else { panic!("it has ended") };
    assert_eq!(again, outcome);
}

#[test]
fn a_new_boot_is_evidence_and_a_missing_page_is_then_none() {
    let bench = Bench::new();
    drop(bench.host.prepare("a", &spec(&["true"]), hour()).unwrap());
    std::fs::remove_file(bench.dir().page()).unwrap();
    let after = host(bench.temp.path(), HomeBoot::New);
    let Attached::Absent(absent) = after.attach("a", hour()).unwrap() else { panic!("absent") };
    let Absence::Proven(outcome) = absent.prove().unwrap() else { panic!("it is known") };
    assert_eq!(outcome.kind, OutcomeKind::Gone);
}

/// SIGKILL to the shim at many instants of its start: whatever the proof says is true.
#[test]
fn a_shim_that_dies_anywhere_in_its_start_leaves_a_true_answer() {
    let mut seen = BTreeMap::<&str, u32>::new();
    for (containment, level) in levels() {
        for step in 0..24 {
            let bench = Bench::new();
            let trace = bench.file("trace");
            let script = format!("echo ran > {}; sleep 600", trace.display());
            let running = bench.launch(&ShimSpec { containment, ..sh(&script) });
            let until = now() + step * 200_000;
            wait_for("the instant", || now() >= until);
            pidfd_send_signal(running.pidfd().unwrap(), Signal::KILL).unwrap();
            wait_end(running.as_ref());
            let Finished::Absent(absent) = running.finish().unwrap() else {
                panic!("it was killed")
            };
            let word = match (absent.prove().unwrap(), level) {
                (Absence::Proven(outcome), _) if outcome.kind == OutcomeKind::NeverRan => {
                    "never_ran"
                }
                (Absence::Proven(_), _) => "gone",
                (Absence::Unknown { .. }, Level::Group) => "unknown",
                (Absence::Unknown { why }, _) => panic!("{level:?}: {why}"),
            };
            *seen.entry(word).or_default() += 1;
            let ran = trace.exists();
            assert!(!(ran && word == "never_ran"), "{level:?}, step {step}");
            assert!(!(word == "unknown" && bench.dir().outcome().exists()));
            if word != "unknown" {
                let left = processes_with(trace.to_str().unwrap());
                assert!(left.is_empty(), "{level:?}, step {step}: {word}, but {left:?}");
                assert_eq!(trace.exists(), ran, "nothing ran after the answer");
            }
        }
    }
    assert!(seen.contains_key("never_ran"), "the early instants were met: {seen:?}");
}

#[test]
fn a_broken_page_proves_nothing() {
    let bench = Bench::new();
    drop(bench.host.prepare("a", &spec(&["true"]), hour()).unwrap());
    std::fs::write(bench.dir().page(), "torn").unwrap();
    assert!(matches!(bench.prove(), Absence::Unknown { .. }));
    assert!(!bench.dir().outcome().exists());
}

#[test]
fn a_start_that_was_refused_by_the_store_is_written_down() {
    let bench = Bench::new();
    let prepared = bench.host.prepare("a", &spec(&["true"]), hour()).unwrap();
    let outcome = prepared.discard("the store refused the start").unwrap();
    assert_eq!(outcome.kind, OutcomeKind::NeverRan);
    assert!(bench.log().ends_with("ended: never ran: the store refused the start\n"));
    assert!(matches!(bench.attach(), Attached::Ended(_)));
}

#[test]
fn an_attempt_whose_lease_leaves_no_time_is_not_begun() {
    let bench = Bench::new();
    let over = Lease::of(1, now() + 1_000_000);
    let running = bench.launch_for(&spec(&["true"]), over);
    assert_eq!(end(running.as_ref()).kind, OutcomeKind::NeverRan);
}

#[test]
fn a_stop_before_the_start_means_that_nothing_runs() {
    let bench = Bench::new();
    let prepared = bench.host.prepare("a", &spec(&["true"]), hour()).unwrap();
    fencepost_worker::page::Page::open(&bench.dir()).unwrap().request_stop(Reason::Cancel, false);
    let outcome = end(prepared.launch().unwrap().as_ref());
    assert_eq!(outcome.kind, OutcomeKind::NeverRan);
    assert!(outcome.error.unwrap().contains("cancel"));
}

#[test]
fn a_shim_that_cannot_be_spawned_ran_nothing() {
    let bench = Bench::new();
    let host = fencepost_worker::attempt::OsHost::new(
        &bench.file("attempts"),
        "/no/such/exe",
        Vec::new(),
        HomeBoot::Same,
    )
    .unwrap();
    let prepared = host.prepare("a", &spec(&["true"]), hour()).unwrap();
    assert!(matches!(prepared.launch(), Err(HostError::Spawn { .. })));
    let Absence::Proven(outcome) = bench.prove() else { panic!("it is known") };
    assert_eq!(outcome.kind, OutcomeKind::NeverRan);
}

#[test]
fn names_that_are_no_file_names_are_refused() {
    let bench = Bench::new();
    for name in ["", ".", "..", "a/b", ".hidden", "a\0b", "é", &"x".repeat(300)] {
        let refused = bench.host.prepare(name, &spec(&["true"]), hour());
        assert!(matches!(refused, Err(HostError::Name(_))), "{name}");
    }
}

#[test]
fn cleanup_keeps_log_and_outcome_and_removes_the_rest() {
    let bench = Bench::new();
    let dir = bench.dir();
    let script = format!(
        "mkdir -p {0}/deep/er; echo x > {0}/deep/er/f; chmod 0 {0}/deep; ln -s / {0}/root; exit 0",
        dir.work().display()
    );
    let ready = bench.file("ready");
    let running =
        bench
            .launch(&sh(&format!("{script}; touch {r}; sleep 0.2", r = ready.display())
                .replace("; exit 0", "")));
    wait_for("the task", || ready.exists());
    assert!(matches!(bench.host.cleanup("a"), Err(HostError::StillRunning(_))));
    assert!(matches!(bench.host.remove("a"), Err(HostError::StillRunning(_))));
    assert_eq!(end(running.as_ref()).exit_code, Some(0));
    bench.host.cleanup("a").unwrap();
    bench.host.cleanup("a").unwrap();
    for gone in [dir.work(), dir.tmp(), dir.io(), dir.spec(), dir.ctl(), dir.lease()] {
        assert!(!gone.exists(), "{}", gone.display());
    }
    assert!(std::path::Path::new("/etc/passwd").exists());
    assert!(bench.log().contains("ended: exited"));
    assert!(matches!(bench.attach(), Attached::Ended(_)));
    bench.host.remove("a").unwrap();
    bench.host.remove("a").unwrap();
    assert_eq!(bench.host.survey().unwrap(), [] as [&str; 0]);
}
