//! The small worlds.

use super::{Accident, Points, Scenario, Step, What, When, Who};
use crate::world::Shape;
use fencepost_core::state::TiState;
use std::time::Duration;

pub(super) const fn step(when: When, what: What) -> Step {
    Step { when, what }
}

pub(super) const TRIGGER: Step = step(When::Now, What::Trigger("r"));

pub(super) fn plain(
    name: &'static str,
    files: &'static [&'static str],
    steps: Vec<Step>,
) -> Scenario {
    Scenario {
        name,
        files,
        pools: &[],
        shape: Shape::ONE,
        steps,
        same_starts: true,
        ends: &[],
        limit: Duration::from_hours(12),
        points: Points::All,
        shows: None,
    }
}

/// All of them.
pub(super) fn all() -> Vec<Scenario> {
    let mut all = work();
    all.extend(ends());
    all.extend(limits());
    all.extend(timeouts());
    all.extend(people());
    all.extend(accidents());
    all
}

fn work() -> Vec<Scenario> {
    vec![
        plain(
            "single",
            &["
dag_id: d
tasks:
  t: {run: for=2}
"],
            vec![TRIGGER],
        ),
        plain(
            "chain",
            &["
dag_id: d
tasks:
  a: {run: for=1}
  b: {run: for=1, depends_on: [a]}
  c: {run: for=1, depends_on: [b]}
"],
            vec![TRIGGER],
        ),
        plain(
            "fan_out_and_in",
            &["
dag_id: d
tasks:
  a: {run: for=1}
  b: {run: for=1, depends_on: [a]}
  c: {run: for=2, depends_on: [a]}
  e: {run: for=1, depends_on: [a]}
  z: {run: for=1, depends_on: [b, c, e]}
"],
            vec![TRIGGER],
        ),
        plain(
            "retry",
            &["
dag_id: d
tasks:
  t: {run: for=1 fail_tries=1, retries: 2, retry_delay: 10s}
  after: {run: for=1, depends_on: [t]}
"],
            vec![TRIGGER],
        ),
    ]
}

fn ends() -> Vec<Scenario> {
    vec![
        plain(
            "failing",
            &["
dag_id: d
tasks:
  t: {run: for=1 exit=3, retries: 1, retry_delay: 5s}
  after: {run: for=1, depends_on: [t]}
  always: {run: for=1, depends_on: [t], trigger_rule: all_done}
"],
            vec![TRIGGER],
        ),
        plain(
            "skipping",
            &["
dag_id: d
tasks:
  t: {run: for=1 exit=99}
  after: {run: for=1, depends_on: [t]}
  joined: {run: for=1, depends_on: [after], trigger_rule: none_failed}
"],
            vec![TRIGGER],
        ),
        plain(
            "held",
            &["
dag_id: d
tasks:
  t: {run: for=1 exit=77}
  beside: {run: for=2}
"],
            vec![TRIGGER],
        ),
        plain(
            "outputs",
            &["
dag_id: d
tasks:
  a: {run: 'for=1 out=n:5', outputs: {n: integer}}
  b: {run: 'for=1 got={{ outputs.a.n }}', depends_on: [a]}
"],
            vec![TRIGGER],
        ),
        plain(
            "mapped",
            &["
dag_id: d
tasks:
  m: {run: for=1, expand: {x: [1, 2, 3]}, max_active_tis_per_dagrun: 2}
  last: {run: for=1, depends_on: [m]}
"],
            vec![TRIGGER],
        ),
    ]
}

fn limits() -> Vec<Scenario> {
    vec![
        Scenario {
            pools: &[("small", 2)],
            ..plain(
                "pool_limit",
                &["
dag_id: d
tasks:
  a: {run: for=2, pool: small}
  b: {run: for=2, pool: small, pool_slots: 2}
  c: {run: for=2, pool: small}
  e: {run: for=2, pool: small}
"],
                vec![TRIGGER],
            )
        },
        plain(
            "max_active_runs",
            &["
dag_id: d
max_active_runs: 1
tasks:
  t: {run: for=3}
"],
            vec![TRIGGER, step(When::Now, What::Trigger("s"))],
        ),
        Scenario {
            shape: Shape { slots: 1, ..Shape::ONE },
            ..plain(
                "worker_capacity",
                &["
dag_id: d
tasks:
  a: {run: for=2}
  b: {run: for=2}
  c: {run: for=2}
"],
                vec![TRIGGER],
            )
        },
        plain(
            "catchup",
            &["
dag_id: d
schedule: '@daily'
start_date: 2026-02-26
end_date: 2026-02-28
catchup: true
tasks:
  t: {run: for=1, depends_on_past: true}
"],
            vec![],
        ),
    ]
}

fn timeouts() -> Vec<Scenario> {
    vec![
        plain(
            "execution_timeout",
            &["
dag_id: d
tasks:
  t: {run: stay=9, execution_timeout: 5s, retries: 1, retry_delay: 5s}
"],
            vec![TRIGGER],
        ),
        plain(
            "run_timeout",
            &["
dag_id: d
dagrun_timeout: 30s
tasks:
  t: {run: stay=9}
  after: {run: for=1, depends_on: [t]}
"],
            vec![TRIGGER],
        ),
        plain(
            "term_proof",
            &["
dag_id: d
tasks:
  t: {run: stay=9 term=ignore, execution_timeout: 5s, kill_grace: 4s}
"],
            vec![TRIGGER],
        ),
    ]
}

fn people() -> Vec<Scenario> {
    const RUNS: When = When::Runs("t");
    vec![
        plain(
            "cancel_running",
            &["
dag_id: d
tasks:
  t: {run: stay=9, retries: 3}
  after: {run: for=1, depends_on: [t]}
"],
            vec![TRIGGER, step(RUNS, What::Cancel("r"))],
        ),
        plain(
            "clear_running",
            &["
dag_id: d
tasks:
  t: {run: for=1 stay=1}
  after: {run: for=1, depends_on: [t]}
"],
            vec![TRIGGER, step(RUNS, What::Clear("r", &["t"]))],
        ),
        plain(
            "clear_finished",
            &["
dag_id: d
tasks:
  a: {run: for=1}
  b: {run: for=1, depends_on: [a]}
"],
            vec![TRIGGER, step(When::Over, What::Clear("r", &[]))],
        ),
        plain(
            "mark_running",
            &["
dag_id: d
tasks:
  t: {run: stay=9}
  after: {run: for=1, depends_on: [t]}
"],
            vec![TRIGGER, step(RUNS, What::Mark("r", "t", TiState::Success))],
        ),
        plain(
            "cancel_term_proof",
            &["
dag_id: d
tasks:
  t: {run: stay=9 term=ignore, kill_grace: 3s}
"],
            vec![TRIGGER, step(RUNS, What::Cancel("r"))],
        ),
    ]
}

fn accidents() -> Vec<Scenario> {
    const RUNS: When = When::Runs("t");
    const ONE_TASK: &[&str] = &["
dag_id: d
tasks:
  t: {run: for=6}
  after: {run: for=1, depends_on: [t]}
"];
    vec![
        plain(
            "worker_crash",
            ONE_TASK,
            vec![TRIGGER, step(RUNS, What::Befall(Accident::Crash(Who::Worker(0))))],
        ),
        plain(
            "worker_restart",
            ONE_TASK,
            vec![TRIGGER, step(RUNS, What::Befall(Accident::Restart(0)))],
        ),
        Scenario {
            shape: Shape { schedulers: 2, ..Shape::ONE },
            ..plain(
                "scheduler_crash",
                ONE_TASK,
                vec![TRIGGER, step(RUNS, What::Befall(Accident::Crash(Who::Scheduler(0))))],
            )
        },
        Scenario {
            shape: Shape { servers: 2, ..Shape::ONE },
            ..plain(
                "server_crash",
                ONE_TASK,
                vec![TRIGGER, step(RUNS, What::Befall(Accident::Crash(Who::Server(0))))],
            )
        },
        plain(
            "shim_dies",
            &["
dag_id: d
tasks:
  t: {run: for=2 lose=1}
  after: {run: for=1, depends_on: [t]}
"],
            vec![TRIGGER],
        ),
        plain(
            "shim_killed",
            &["
dag_id: d
tasks:
  t: {run: for=4}
"],
            vec![TRIGGER, step(RUNS, What::Befall(Accident::KillShim(0)))],
        ),
        plain("reboot", ONE_TASK, vec![TRIGGER, step(RUNS, What::Befall(Accident::Reboot(0)))]),
    ]
}
