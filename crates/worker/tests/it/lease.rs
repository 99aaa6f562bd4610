//! The deadline: by order of the shim, and by the kernel when the shim cannot.

use fencepost_worker::attempt::{Absence, Attached, AttemptHost, Finished};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::outcome::{OutcomeKind, Reason};
use fencepost_worker::page::{Lease, PushRefused};
use fencepost_worker::spec::{Level, ShimSpec};

use crate::bench::{
    Bench, MS, SECOND, at_every_level, end, hour, kill, levels, now, processes_with, sh, text,
    wait_end, wait_for,
};

fn quick(script: &str) -> ShimSpec {
    ShimSpec { kill_grace_ms: 500, margin_ms: 200, ..sh(script) }
}

fn lease(ms: u64) -> Lease {
    Lease::of(1, now() + ms * MS)
}

#[test]
fn an_unrenewed_attempt_ends_in_order_before_its_deadline() {
    at_every_level(|containment, _| {
        let bench = Bench::new();
        let trace = bench.file("trace");
        let script = format!(
            "trap 'echo told > {}; exit 0' TERM; while :; do sleep 0.02; done",
            trace.display()
        );
        let lease = lease(6_000);
        let running = bench.launch_for(&ShimSpec { containment, ..quick(&script) }, lease);
        let outcome = end(running.as_ref());
        assert!(now() < lease.deadline_ns);
        assert_eq!((outcome.kind, outcome.reason), (OutcomeKind::Stopped, Some(Reason::SelfFence)));
        assert_eq!(text(&trace), "told\n");
        assert!(!outcome.is_success());
    });
}

#[test]
fn a_renewed_attempt_lives_past_its_first_deadline() {
    let bench = Bench::new();
    let first = lease(5_000);
    let file = bench.file("go");
    let script = format!("while ! [ -e {} ]; do sleep 0.02; done", file.display());
    let running = bench.launch_for(&quick(&script), first);
    running.push(hour().deadline_ns, now()).unwrap();
    let line = text(&bench.dir().lease());
    assert_eq!(line, format!("monotonic {}\n", running.progress().lease.deadline_ns));
    wait_for("the first deadline to pass", || now() > first.deadline_ns + 300 * MS);
    std::fs::write(&file, "").unwrap();
    assert_eq!(end(running.as_ref()).exit_code, Some(0));
}

#[test]
fn the_same_holds_on_the_clock_that_counts_a_suspend() {
    let bench = Bench::new();
    let deadline_ns = ClockKind::Boottime.now_ns() + 5_000 * MS;
    let spec = ShimSpec { clock: ClockKind::Boottime, ..quick("sleep 600") };
    let running = bench.launch_for(&spec, Lease::of(1, deadline_ns));
    assert!(text(&bench.dir().lease()).starts_with("boottime "));
    let outcome = end(running.as_ref());
    assert!(ClockKind::Boottime.now_ns() < deadline_ns);
    assert_eq!(outcome.reason, Some(Reason::SelfFence));
    assert!(outcome.elapsed_ns >= 1_000 * MS);
}

#[test]
fn a_stopped_shim_is_killed_by_the_kernel_at_its_deadline() {
    at_every_level(|containment, level| {
        if level == Level::Group {
            return;
        }
        let bench = Bench::new();
        let marker = format!("marker-frozen-{}-{}", level.as_str(), std::process::id());
        let script = format!(
            "trap '' TERM HUP; setsid sleep 601 & touch {}; while :; do sleep 0.05; done #{marker}",
            bench.file("ready").display()
        );
        let lease = lease(6_000);
        let running = bench.launch_for(&ShimSpec { containment, ..quick(&script) }, lease);
        wait_for("the task", || bench.file("ready").exists());
        kill(running.progress().shim.unwrap().pid, "-STOP");
        wait_end(running.as_ref());
        assert!(now() >= lease.deadline_ns, "not before");
        if level == Level::Pidns {
            wait_for("the tree to follow", || processes_with(&marker).is_empty());
        }
        let Finished::Absent(absent) = running.finish().unwrap() else { panic!("no outcome") };
        let Absence::Proven(outcome) = absent.prove().unwrap() else { panic!("it is known") };
        assert_eq!(outcome.kind, OutcomeKind::Gone);
        assert_eq!(processes_with(&marker), [] as [i32; 0]);
    });
}

#[test]
fn re_attach_takes_the_attempt_over_and_the_old_owner_cannot_push() {
    let bench = Bench::new();
    let file = bench.file("go");
    let script = format!(
        "echo begin >> {b}; while ! [ -e {f} ]; do sleep 0.02; done; echo end >> {b}",
        b = bench.file("ledger").display(),
        f = file.display()
    );
    let first = lease(5_000);
    let old = bench.launch_for(&quick(&script), first);
    wait_for("the task", || bench.file("ledger").exists());
    let Attached::Running(new) = bench.attach() else { panic!("it runs") };
    assert_eq!(old.push(now() + 9 * SECOND, now()), Err(PushRefused::NotOwner));
    assert_eq!(new.progress().lease.owner, 2);
    new.push(now() + 3_600 * SECOND, now()).unwrap();
    wait_for("the first deadline to pass", || now() > first.deadline_ns + SECOND / 5);
    drop(old);
    std::fs::write(&file, "").unwrap();
    assert_eq!(end(new.as_ref()).exit_code, Some(0));
    assert_eq!(text(&bench.file("ledger")), "begin\nend\n");
}

#[test]
fn a_take_over_that_lowers_the_deadline_is_obeyed_at_once() {
    for (containment, _) in levels() {
        let bench = Bench::new();
        let ready = bench.file("ready");
        let script = format!("touch {}; sleep 600", ready.display());
        let old = bench.launch(&ShimSpec { containment, ..quick(&script) });
        wait_for("the task", || ready.exists());
        let past = Lease::of(2, now());
        let Attached::Running(new) = bench.host.attach("a", past).unwrap() else {
            panic!("it runs")
        };
        let outcome = end(new.as_ref());
        assert_eq!((outcome.reason, outcome.signal), (Some(Reason::SelfFence), Some(9)));
        drop(old);
    }
}

#[test]
fn a_lease_that_has_run_out_cannot_be_renewed() {
    let bench = Bench::new();
    let short = lease(5_000);
    let running = bench.launch_for(&quick("sleep 600"), short);
    let refused = running.push(short.deadline_ns + SECOND, short.deadline_ns);
    assert_eq!(refused, Err(PushRefused::Expired));
    assert_eq!(end(running.as_ref()).reason, Some(Reason::SelfFence));
}
