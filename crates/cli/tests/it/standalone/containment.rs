//! A task that traps TERM and leaves a daemon behind: its whole tree is gone before its successor
//! begins, at each level that the machine allows (I5, I12).

use super::world::{World, any_process, wait_for};
use crate::installation::Installation;

const LEVELS: [&str; 3] = ["pidns", "cgroup", "group"];

/// Appends `begin N` and starts a daemon in a session of its own that ignores SIGTERM, ticks into
/// `ticks`, and is recognised by its marker. Every attempt first looks whether one still lives.
fn stubborn(world: &World, level: &str, extra: &str) -> String {
    let (ledger, marker) = (world.path("ledger"), world.path("marker"));
    format!(
        "tasks:\n  t:\n    containment: {level}\n    kill_grace: 1s\n{extra}    run: |\n      \
         set +e\n      trap '' TERM\n      \
         if pgrep -f '{marker}' > /dev/null; then echo overlap >> '{ledger}'; fi\n      \
         echo \"begin $FENCEPOST_ATTEMPT_NUMBER\" >> '{ledger}'\n      \
         if [ \"$FENCEPOST_ATTEMPT_NUMBER\" -gt 1 ]; then exit 0; fi\n      \
         setsid bash -c 'trap \"\" TERM; while true; do sleep 0.1; done' '{marker}' &\n      \
         while true; do sleep 0.1; done\n",
        marker = marker.display(),
        ledger = ledger.display(),
    )
}

fn daemon_lives(world: &World) -> bool {
    let marker = world.path("marker").to_string_lossy().into_owned();
    any_process(|line| line.contains(&marker) && line.contains("while true"))
}

/// The levels that this machine allows, found out by asking for each.
#[expect(clippy::print_stdout, reason = "which levels were tried is a result")]
fn each_level(test: impl Fn(&str)) {
    let mut tried = Vec::new();
    for level in LEVELS {
        let world = World::new();
        world.dag("probe", &format!("tasks:\n  t: {{run: 'true', containment: {level}}}\n"));
        let node = world.start();
        world.trigger("probe");
        wait_for("the probe to end", || {
            ["success", "failed"].contains(&world.run_state("probe").as_str())
        });
        let attempts = world.attempts("probe", "t");
        let allowed = attempts[0]["outcome"] == "success";
        node.stop();
        if allowed {
            assert_eq!(attempts[0]["containment"], level, "the level is shown");
            tried.push(level);
            test(level);
        }
    }
    println!("containment levels of this machine: {tried:?}");
    assert!(tried.contains(&"group"), "the weakest level is always there");
}

fn running(world: &World) {
    wait_for("the task and its daemon", || {
        world.lines("ledger") == ["begin 1"] && daemon_lives(world)
    });
}

#[test]
fn a_cancelled_tree_is_gone_when_its_run_is_over() {
    each_level(|level| {
        let world = World::new();
        world.dag("stop", &stubborn(&world, level, ""));
        let node = world.start();
        world.trigger("stop");
        running(&world);
        world.must(&["runs", "cancel", "stop", "@latest", "--yes"]);
        world.wait_state("stop", "cancelled");
        assert!(!daemon_lives(&world), "{level}: the daemon outlived its attempt");
        let attempts = world.attempts("stop", "t");
        assert_eq!(attempts[0]["outcome"], "cancelled", "{level}: {attempts:#?}");
        assert_eq!(attempts[0]["counted_as"], "none");
        world.assert_sound();
        node.stop();
    });
}

#[test]
fn a_cleared_tree_is_gone_before_its_successor_begins() {
    each_level(|level| {
        let world = World::new();
        world.dag("stop", &stubborn(&world, level, ""));
        let node = world.start();
        world.trigger("stop");
        running(&world);
        world.must(&["tasks", "clear", "stop", "@latest", "t", "--yes"]);
        world.wait_state("stop", "success");
        assert_eq!(world.lines("ledger"), ["begin 1", "begin 2"], "{level}");
        assert!(!daemon_lives(&world), "{level}");
        assert_eq!(world.attempts("stop", "t")[0]["outcome"], "cleared");
        world.assert_sound();
        node.stop();
    });
}

#[test]
fn a_tree_that_timed_out_is_gone_before_its_retry_begins() {
    each_level(|level| {
        let world = World::new();
        let extra = "    execution_timeout: 2s\n    retries: 1\n    retry_delay: 1s\n";
        world.dag("stop", &stubborn(&world, level, extra));
        let node = world.start();
        world.trigger("stop");
        world.wait_state("stop", "success");
        assert_eq!(world.lines("ledger"), ["begin 1", "begin 2"], "{level}");
        assert!(!daemon_lives(&world), "{level}");
        let attempts = world.attempts("stop", "t");
        assert_eq!(attempts[0]["reason"], "execution_timeout", "{level}: {attempts:#?}");
        assert_eq!(attempts[0]["counted_as"], "user");
        assert_eq!(attempts[1]["try_number"], 2);
        world.assert_sound();
        node.stop();
    });
}
