//! kill -9, lunch, start again: nothing lost, nothing twice.

use super::world::{World, assert_once, ledger_task, wait_for};
use crate::installation::Installation;
use fencepost_worker::attempt::{Attached, AttemptHost, HomeBoot, OsHost};
use fencepost_worker::clock::ClockKind;
use fencepost_worker::page::Lease;

const TASKS: usize = 20;

fn twenty(world: &World, seconds: &str) {
    let mut yaml = String::from("max_active_tasks: 8\ntasks:\n");
    for n in 0..TASKS {
        yaml.push_str(&format!("  t{n:02}:\n{}", ledger_task(&world.path("ledger"), seconds)));
    }
    world.dag("twenty", &yaml);
}

fn begun(world: &World) -> usize {
    world.lines("ledger").iter().filter(|line| line.starts_with("begin")).count()
}

/// I1, I2, I10: one attempt each, under the same token, whoever watches.
#[test]
fn three_kills_leave_one_begin_one_end_and_one_attempt_per_task() {
    let world = World::new();
    twenty(&world, "1");
    let mut node = world.start();
    world.trigger("twenty");
    for kill in 1..=3 {
        // A few more have begun, others run: the kill falls among running tasks.
        let more = kill * 4;
        wait_for("tasks to begin", || begun(&world) >= more);
        node.kill9();
        node = world.start();
    }
    world.wait_state("twenty", "success");
    assert_once(&world.lines("ledger"), TASKS);
    for n in 0..TASKS {
        let attempts = world.attempts("twenty", &format!("t{n:02}"));
        assert_eq!(attempts.len(), 1, "{attempts:#?}");
        assert_eq!(attempts[0]["outcome"], "success");
    }
    world.assert_sound();
    world.wait_quiet();
    node.stop();
}

/// Ten minutes between kill and start, in no time: the deadline on the shims' pages is moved by as
/// much as if they had passed.
#[test]
fn ten_minutes_without_a_process_cost_nothing() {
    let world = World::new();
    twenty(&world, "3");
    let node = world.start();
    world.trigger("twenty");
    wait_for("tasks to begin", || begun(&world) >= 8);
    node.kill9();
    let exe = env!("CARGO_BIN_EXE_fencepost");
    let host = OsHost::new(&world.home().join("attempts"), exe, vec![], HomeBoot::Same).unwrap();
    let mut moved = 0;
    for name in host.survey().unwrap() {
        let left = 24 * 3_600 - 600;
        let deadline_ns = ClockKind::Monotonic.now_ns() + left * 1_000_000_000;
        let lease = Lease::of(1, deadline_ns);
        moved += usize::from(matches!(host.attach(&name, lease), Ok(Attached::Running(_))));
    }
    assert!(moved > 0, "no shim was running");
    let node = world.start();
    world.wait_state("twenty", "success");
    assert_once(&world.lines("ledger"), TASKS);
    world.assert_sound();
    node.stop();
}

/// A shim that nobody takes over ends its tree at its deadline, and the next start replaces the
/// attempt, charged to the platform.
#[test]
fn an_orphan_ends_at_its_deadline_and_is_replaced() {
    let mut world = World::new();
    world.setting("worker.orphan_ttl", "6s");
    world.setting("worker.kill_grace", "1s");
    world.setting("worker.heartbeat_interval", "1s");
    let ledger = world.path("ledger");
    let first = format!(
        "tasks:\n  t:\n    run: |\n      echo \"begin $FENCEPOST_ATTEMPT_NUMBER\" >> '{0}'\n      \
         if [ \"$FENCEPOST_PREV_OUTCOME\" = first ]; then sleep 600; fi\n      \
         echo \"end $FENCEPOST_PREV_OUTCOME\" >> '{0}'\n",
        ledger.display()
    );
    world.dag("orphan", &first);
    let node = world.start();
    world.trigger("orphan");
    wait_for("the task to begin", || !world.lines("ledger").is_empty());
    node.kill9();
    let attempts = world.home().join("attempts").to_string_lossy().into_owned();
    wait_for("the shim to fence itself", || {
        !super::world::any_process(|line| line.contains(&attempts))
    });
    let node = world.start();
    world.wait_state("orphan", "success");
    assert_eq!(world.lines("ledger"), ["begin 1", "begin 2", "end lost"]);
    let attempts = world.attempts("orphan", "t");
    assert_eq!(attempts[0]["outcome"], "lost");
    assert_eq!(attempts[0]["counted_as"], "infra");
    assert_eq!(attempts[0]["evidence"]["kind"], "self_fence");
    assert_eq!(attempts[1]["why"], "replaces");
    world.assert_sound();
    node.stop();
}

/// The death of a shim ends its tree (level `pidns`) and costs an infra retry, never a user's.
#[test]
fn a_killed_shim_is_lost_work_on_the_platforms_account() {
    let world = World::new();
    let ledger = world.path("ledger");
    let yaml = format!(
        "tasks:\n  t:\n    containment: pidns\n    run: |\n      echo begin >> '{0}'\n      \
         if [ \"$FENCEPOST_PREV_OUTCOME\" = first ]; then sleep 600; fi\n",
        ledger.display()
    );
    world.dag("shim", &yaml);
    let node = world.start();
    world.trigger("shim");
    wait_for("the task to begin", || !world.lines("ledger").is_empty());
    let token = world.attempts("shim", "t")[0]["token"].as_str().unwrap().to_owned();
    let dir = world.home().join("attempts").join(token);
    let page = fencepost_worker::page::Page::open(&fencepost_worker::dir::AttemptDir::new(dir));
    let shim = page.unwrap().shim().unwrap();
    let pid = rustix::process::Pid::from_raw(shim.pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    world.wait_state("shim", "success");
    let attempts = world.attempts("shim", "t");
    assert_eq!(attempts.len(), 2, "{attempts:#?}");
    assert_eq!(
        (&attempts[0]["outcome"], &attempts[0]["counted_as"]),
        (&"lost".into(), &"infra".into())
    );
    assert_eq!(attempts[1]["try_number"], 1);
    world.assert_sound();
    node.stop();
}
