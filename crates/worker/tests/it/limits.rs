//! `resources` by real control groups, where this machine lets a process make some; elsewhere the log says
//! that there are none, and nothing else differs.

use fencepost_worker::outcome::{Outcome, OutcomeKind};
use fencepost_worker::spec::{Containment, Resources, ShimSpec};

use crate::bench::{Bench, levels, sh};

const MEMORY: Resources = Resources { cpu_millis: None, memory: Some(48 << 20) };
const CPU: Resources = Resources { cpu_millis: Some(100), memory: None };
const ABSENT: &str = "is not enforced here";

/// How a script ends within limits, and what its log says; `None`: this machine gives none.
fn limited(containment: Containment, of: Resources, script: &str) -> Option<(Outcome, String)> {
    let bench = Bench::new();
    let outcome = bench.outcome(&ShimSpec { containment, resources: of, ..sh(script) });
    let log = bench.log();
    if log.contains(ABSENT) {
        assert_eq!(outcome.kind, OutcomeKind::Exited, "{log}");
        say(&log);
        return None;
    }
    assert!(groups_left().is_empty(), "{:?}", groups_left());
    Some((outcome, log))
}

#[expect(clippy::print_stdout, reason = "a skipped test says so")]
fn say(log: &str) {
    println!("no limits on this machine: {log}");
}

/// Groups of attempts of this process that are still there.
fn groups_left() -> Vec<String> {
    let own = format!("fencepost-limits-test-{}-", std::process::id());
    let found = std::process::Command::new("find").args(["/sys/fs/cgroup", "-type", "d"]).output();
    let text = String::from_utf8_lossy(&found.unwrap().stdout).into_owned();
    text.lines().filter(|line| line.contains(&own)).map(str::to_owned).collect()
}

#[test]
fn what_takes_more_memory_than_its_limit_is_ended_and_the_reason_is_told() {
    for (containment, level) in levels() {
        // A child of the main process takes it: the shell lives, and fails.
        let script = "head -c 300m /dev/zero | tail -c 200m | wc -c; exit 3";
        let Some((outcome, log)) = limited(containment, MEMORY, script) else { continue };
        assert!(outcome.oom, "{level:?}: {outcome:?}\n{log}");
        assert!(log.contains("(oom: ") && log.contains("of its limit of 48 MiB"), "{log}");
        let outcome =
            limited(containment, MEMORY, "exec dd if=/dev/zero of=/dev/null bs=200M count=1")
                .unwrap()
                .0;
        assert_eq!((outcome.kind, outcome.oom), (OutcomeKind::Signaled, true), "{outcome:?}");
    }
}

#[test]
fn what_stays_below_its_limit_is_not_touched() {
    for (containment, _) in levels() {
        let Some((outcome, log)) = limited(containment, MEMORY, "echo fits; exit 5") else {
            continue;
        };
        assert_eq!((outcome.exit_code, outcome.oom), (Some(5), false), "{log}");
    }
}

#[test]
fn cpu_is_shared_out() {
    for (containment, level) in levels() {
        let script = "timeout 2 sh -c 'while :; do :; done'; true";
        let Some((outcome, _)) = limited(containment, CPU, script) else { continue };
        // A tenth of a core for two seconds, and what the first period gives at once.
        assert!(outcome.cpu_us < 700_000, "{level:?}: {} us", outcome.cpu_us);
    }
}
