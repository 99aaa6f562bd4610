//! The guards of a home: with each switched off, what it prevents happens and is seen.

use std::ffi::OsString;
use std::path::Path;

use fencepost_core::guard::{Guard, Guards};
use fencepost_worker::attempt::{Absence, Attached, AttemptHost, HomeBoot, HostError, OsHost};
use fencepost_worker::outcome::{OutcomeKind, Reason};
use fencepost_worker::page::{Lease, PushRefused};

use crate::bench::{SECOND, end, hour, now, sh, shim_exe, text, wait_for};

/// A host whose shims stand still at their start until a file is there.
fn slow_host(temp: &Path, guards: Guards) -> OsHost {
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.01; done; exec {} \"$0\"",
        temp.join("go").display(),
        shim_exe().display()
    );
    let args = vec![OsString::from("-c"), OsString::from(script)];
    let host = OsHost::new(&temp.join("attempts"), "/bin/sh", args, HomeBoot::Same).unwrap();
    host.with_guards(guards)
}

/// The worker dies while its shim begins, and its successor looks at what is there; how often the
/// task runs in the end.
fn executions(guards: Guards) -> usize {
    let temp = tempfile::tempdir().unwrap();
    let host = slow_host(temp.path(), guards);
    let trace = temp.path().join("trace");
    let task = sh(&format!("echo ran >> {}", trace.display()));
    let mut running = vec![host.prepare("a", &task, hour()).unwrap().launch().unwrap()];
    match host.attach("a", hour()) {
        Err(HostError::Starting(_)) => {}
        Ok(Attached::Absent(absent)) => {
            let Absence::Proven(outcome) = absent.prove().unwrap() else { panic!("it is sure") };
            assert_eq!(outcome.kind, OutcomeKind::NeverRan);
            // Under the same token, as a successor does.
            running.push(host.prepare("a-2", &task, hour()).unwrap().launch().unwrap());
        }
        Ok(Attached::Running(_) | Attached::Ended(_)) => panic!("it has not begun"),
        Err(error) => panic!("{error}"),
    }
    std::fs::write(temp.path().join("go"), "").unwrap();
    for one in &running {
        end(one.as_ref());
    }
    text(&trace).lines().count()
}

#[test]
fn without_the_proof_under_the_lock_one_attempt_is_executed_twice() {
    assert_eq!(executions(Guards::all()), 1);
    assert_eq!(executions(Guards::all().without(Guard::AbsenceUnderLock)), 2);
}

/// A worker that stood still pushes the deadline of its last beat, long after its successor took the
/// attempt over; what it is told, and how the attempt ends.
fn stale_push(guards: Guards) -> (Result<(), PushRefused>, OutcomeKind) {
    let temp = tempfile::tempdir().unwrap();
    let host = OsHost::new(&temp.path().join("attempts"), shim_exe(), vec![], HomeBoot::Same);
    let host = host.unwrap().with_guards(guards);
    let go = temp.path().join("go");
    let task = sh(&format!("while [ ! -e {} ]; do sleep 0.01; done", go.display()));
    let first = host.prepare("a", &task, hour()).unwrap().launch().unwrap();
    wait_for("the shim", || first.progress().started_at_ns > 0);
    let Attached::Running(second) = host.attach("a", Lease { owner: 2, ..hour() }).unwrap() else {
        panic!("it runs")
    };
    let pushed = first.push(now() + SECOND / 2, now());
    if pushed.is_err() {
        std::fs::write(&go, "").unwrap();
    }
    (pushed, end(second.as_ref()).kind)
}

#[test]
fn without_the_owner_word_a_stale_push_ends_what_its_successor_runs() {
    assert_eq!(stale_push(Guards::all()), (Err(PushRefused::NotOwner), OutcomeKind::Exited));
    let (pushed, kind) = stale_push(Guards::all().without(Guard::OwnerWord));
    assert!(pushed.is_ok() && kind != OutcomeKind::Exited, "{pushed:?} {kind:?}");
}

/// The same worker asks for a stop; whether its successor's attempt hears it.
fn stale_stop(guards: Guards) -> bool {
    let temp = tempfile::tempdir().unwrap();
    let host = OsHost::new(&temp.path().join("attempts"), shim_exe(), vec![], HomeBoot::Same);
    let host = host.unwrap().with_guards(guards);
    let first = host.prepare("a", &sh("sleep 600"), hour()).unwrap().launch().unwrap();
    wait_for("the shim", || first.progress().started_at_ns > 0);
    let Attached::Running(second) = host.attach("a", Lease { owner: 2, ..hour() }).unwrap() else {
        panic!("it runs")
    };
    first.request_stop(Reason::SelfFence, true);
    let is_heard = second.progress().stop.is_some();
    second.request_stop(Reason::Kill, true);
    end(second.as_ref());
    is_heard
}

#[test]
fn without_the_owner_word_a_stale_stop_is_heard() {
    assert!(!stale_stop(Guards::all()));
    assert!(stale_stop(Guards::all().without(Guard::OwnerWord)));
}
