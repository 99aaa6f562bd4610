//! Leases in small worlds: the lost, the parted and the stopped, and what is away for a while.
//!
//! Leases of workers run for 90 s here, their self-fence is at 72 s; those of roles run for 30 s.

use super::list::{TRIGGER, plain, step};
use super::{Accident, Points, Scenario, Step, What, When, Who};
use crate::world::Shape;
use std::time::Duration;

pub(super) const TWO: Shape = Shape { schedulers: 2, servers: 2, workers: 2, ..Shape::ONE };
pub(super) const LONG_TASK: &[&str] = &["
dag_id: d
tasks:
  t: {run: for=200}
"];
pub(super) const LIMIT: Duration = Duration::from_mins(30);

pub(super) const fn befall(when: When, accident: Accident) -> Step {
    step(when, What::Befall(accident))
}

pub(super) const RUNS: When = When::Runs("t");
/// Only the first worker is there: what is triggered runs at it.
pub(super) const ALONE: Step = befall(When::Now, Accident::Lose(Who::Worker(1)));
/// The second one comes.
pub(super) const RELIEF: Step = befall(When::Now, Accident::Start(Who::Worker(1)));

/// A world that takes minutes.
pub(super) fn slow(
    name: &'static str,
    ends: &'static [(&'static str, &'static str)],
    steps: Vec<Step>,
) -> Scenario {
    Scenario {
        shape: TWO,
        same_starts: false,
        ends,
        limit: LIMIT,
        points: Points::Some(60),
        ..plain(name, LONG_TASK, steps)
    }
}

const ONCE: &[(&str, &str)] = &[("t", "success none")];
const REPLACED: &[(&str, &str)] = &[("t", "lost infra expiry, success none")];
pub(super) const FENCED: &[(&str, &str)] = &[("t", "lost infra self_fence, success none")];

pub(super) fn all() -> Vec<Scenario> {
    let mut all = workers();
    all.extend(roles());
    all.extend(outages());
    all.extend(stays_open());
    all.push(stopped_unstarted());
    all.extend(forgotten_ends());
    all
}

fn workers() -> Vec<Scenario> {
    let back = befall(When::Over, Accident::Start(Who::Worker(0)));
    vec![
        slow(
            "worker_lost",
            REPLACED,
            vec![ALONE, TRIGGER, befall(RUNS, Accident::Lose(Who::Worker(0))), RELIEF, back],
        ),
        slow(
            "worker_parted",
            REPLACED,
            vec![
                ALONE,
                TRIGGER,
                befall(RUNS, Accident::Part(0)),
                RELIEF,
                befall(When::Lost("worker0"), Accident::Join(0)),
            ],
        ),
        slow(
            "worker_parted_for_a_minute",
            ONCE,
            vec![
                TRIGGER,
                befall(RUNS, Accident::PartAll),
                befall(When::After(60), Accident::JoinAll),
            ],
        ),
        slow(
            "worker_stopped",
            REPLACED,
            vec![
                ALONE,
                TRIGGER,
                befall(RUNS, Accident::Stop(Who::Worker(0))),
                RELIEF,
                befall(When::RunsAgain("t", 2), Accident::Continue(Who::Worker(0))),
            ],
        ),
        slow(
            "machine_boots",
            &[("t", "lost infra boot_id, success none")],
            vec![ALONE, TRIGGER, befall(RUNS, Accident::Reboot(0)), RELIEF],
        ),
        Scenario {
            shape: Shape { workers: 4, ..TWO },
            ..slow(
                "all_workers_parted",
                FENCED,
                vec![
                    TRIGGER,
                    befall(RUNS, Accident::PartAll),
                    befall(When::After(135), Accident::JoinAll),
                ],
            )
        },
    ]
}

fn roles() -> Vec<Scenario> {
    let only = befall(When::Now, Accident::Lose(Who::Scheduler(1)));
    let successor = befall(When::Now, Accident::Start(Who::Scheduler(1)));
    vec![
        slow(
            "scheduler_lost",
            ONCE,
            vec![
                TRIGGER,
                befall(RUNS, Accident::Lose(Who::Scheduler(0))),
                befall(When::Lost("scheduler0"), Accident::Start(Who::Scheduler(0))),
            ],
        ),
        slow(
            "scheduler_stopped_in_a_transaction",
            ONCE,
            vec![
                only,
                TRIGGER,
                befall(
                    When::At("scheduler0", "dispatch:before_commit"),
                    Accident::Stop(Who::Scheduler(0)),
                ),
                successor,
                befall(When::Lost("scheduler0"), Accident::Continue(Who::Scheduler(0))),
            ],
        ),
        slow("server_lost", ONCE, vec![TRIGGER, befall(RUNS, Accident::Lose(Who::Server(0)))]),
        slow(
            "servers_away",
            ONCE,
            vec![
                TRIGGER,
                befall(RUNS, Accident::Lose(Who::Server(0))),
                befall(When::Now, Accident::Lose(Who::Server(1))),
                befall(When::After(55), Accident::Start(Who::Server(1))),
                befall(When::Now, Accident::Start(Who::Server(0))),
            ],
        ),
    ]
}

fn outages() -> Vec<Scenario> {
    let away = |name, ends, secs| {
        let outage = befall(RUNS, Accident::Outage);
        slow(name, ends, vec![TRIGGER, outage, befall(When::After(secs), Accident::StoreIsBack)])
    };
    vec![
        // 0.7 of the self-fence, and three TTLs.
        away("store_away", ONCE, 50),
        away("store_away_for_long", FENCED, 270),
    ]
}

/// A start is accepted, its answer is lost, and a stop comes before it is asked for again.
fn stopped_unstarted() -> Scenario {
    Scenario {
        ends: &[("t", "cancelled none")],
        points: Points::None,
        ..slow(
            "stopped_before_it_began",
            &[],
            vec![
                TRIGGER,
                befall(When::At("server0", "start:after_commit"), Accident::PartAll),
                step(When::After(3), What::Cancel("r")),
                befall(When::After(3), Accident::JoinAll),
            ],
        )
    }
}

/// The store forgets how an attempt ended, and with it that it was started, or only its end. The
/// worker has put it away meanwhile, and may be another process.
fn forgotten_ends() -> Vec<Scenario> {
    let forgotten = |name, from, rest: &[Step]| {
        let mut steps = vec![TRIGGER, befall(When::At("server0", from), Accident::Lag)];
        steps.extend_from_slice(rest);
        Scenario {
            shape: Shape::ONE,
            files: &["
dag_id: d
tasks:
  t: {run: for=3}
"],
            points: Points::None,
            ..slow(name, &[], steps)
        }
    };
    let at_once = [befall(When::Over, Accident::Failover)];
    let restarted = [
        befall(When::Over, Accident::Lose(Who::Worker(0))),
        befall(When::Now, Accident::Failover),
        befall(When::After(1), Accident::Start(Who::Worker(0))),
    ];
    vec![
        // Its worker remembers it: start and end are told again, and nothing is executed a second time.
        Scenario {
            ends: &[("t", "success none")],
            ..forgotten("failover_after_the_end", "start:begin", &at_once)
        },
        // Its successor finds in its place what was said of it.
        Scenario {
            ends: &[("t", "success none")],
            ..forgotten("failover_after_the_end_and_a_restart", "report:begin", &restarted)
        },
    ]
}

fn stays_open() -> Vec<Scenario> {
    // A person has to decide, also once its end is known.
    const HELD: &[(&str, &str)] = &[("t", "lost infra self_fence")];
    let parted = || {
        let back = befall(When::Lost("worker0"), Accident::Join(0));
        vec![ALONE, TRIGGER, befall(RUNS, Accident::Part(0)), RELIEF, back]
    };
    let mut replaced = parted();
    replaced.push(befall(When::RunsAgain("t", 2), Accident::Join(0)));
    vec![
        Scenario {
            files: &["
dag_id: d
default_args: {on_lost: hold}
tasks:
  t: {run: for=200}
"],
            ..slow("worker_parted_and_held", HELD, parted())
        },
        Scenario {
            files: &["
dag_id: d
default_args: {replace: after_confirmed_dead}
tasks:
  t: {run: for=200}
"],
            ..slow("worker_parted_and_confirmed", FENCED, replaced)
        },
    ]
}
