//! A small world for each guard: with the guard all is well, without it a promise is broken.

use super::leases::{ALONE, FENCED, LONG_TASK, RELIEF, RUNS, TWO, befall, slow};
use super::list::{TRIGGER, step};
use super::{Accident, Points, Scenario, Step, What, When, Who};
use crate::world::Shape;
use fencepost_core::guard::Guard;

fn world(name: &'static str, guard: Guard, steps: Vec<Step>) -> Scenario {
    Scenario { points: Points::None, shows: Some(guard), ..slow(name, &[], steps) }
}

pub(super) fn all() -> Vec<Scenario> {
    let mut all = observers();
    all.extend(declarations());
    all.extend(owners());
    all.extend(tokens());
    all.extend(homes());
    all.extend(epochs());
    all
}

fn observers() -> Vec<Scenario> {
    vec![
        world(
            "store_clock_steps",
            Guard::FullTtl,
            vec![TRIGGER, befall(RUNS, Accident::StepStore(60))],
        ),
        Scenario {
            ends: FENCED,
            ..world(
                "servers_away_for_long",
                Guard::FitToJudge,
                vec![
                    TRIGGER,
                    befall(RUNS, Accident::Lose(Who::Server(0))),
                    befall(When::Now, Accident::Lose(Who::Server(1))),
                    befall(When::After(300), Accident::PartAll),
                    befall(When::Now, Accident::Start(Who::Server(0))),
                    befall(When::After(10), Accident::JoinAll),
                ],
            )
        },
        Scenario {
            shape: Shape { workers: 4, ..TWO },
            ends: FENCED,
            ..world(
                "many_parted",
                Guard::Brake,
                vec![
                    TRIGGER,
                    befall(RUNS, Accident::PartAll),
                    befall(When::After(135), Accident::JoinAll),
                ],
            )
        },
        Scenario {
            ends: FENCED,
            ..world(
                "fast_clock",
                Guard::StoreClock,
                vec![
                    befall(When::Now, Accident::FastClock(Who::Scheduler(0), 145)),
                    befall(When::Now, Accident::FastClock(Who::Scheduler(1), 145)),
                    TRIGGER,
                    befall(RUNS, Accident::PartAll),
                    befall(When::After(75), Accident::JoinAll),
                ],
            )
        },
        Scenario {
            ends: &[("t", "lost infra expiry, success none")],
            ..world(
                "old_beats",
                Guard::BeatOrder,
                vec![
                    ALONE,
                    TRIGGER,
                    befall(RUNS, Accident::Echo(0, "beat", 20, 120)),
                    befall(When::After(12), Accident::Lose(Who::Worker(0))),
                    RELIEF,
                    befall(When::Over, Accident::Start(Who::Worker(0))),
                ],
            )
        },
    ]
}

fn declarations() -> Vec<Scenario> {
    let only = befall(When::Now, Accident::Lose(Who::Scheduler(1)));
    vec![
        Scenario {
            shape: Shape { schedulers: 1, ..TWO },
            ..world(
                "renewed_in_between",
                Guard::DeclareCompareAndSet,
                vec![
                    ALONE,
                    TRIGGER,
                    befall(RUNS, Accident::Part(0)),
                    befall(
                        When::At("scheduler0", "declare:begin"),
                        Accident::Stop(Who::Scheduler(0)),
                    ),
                    befall(When::Now, Accident::Join(0)),
                    befall(When::After(8), Accident::StepStore(60)),
                    befall(When::Now, Accident::Continue(Who::Scheduler(0))),
                ],
            )
        },
        world(
            "claim_across_a_declaration",
            Guard::DeclareRowLock,
            vec![
                ALONE,
                TRIGGER,
                befall(When::At("server0", "claim:begin"), Accident::Stall(Who::Server(0), 160)),
                befall(When::Now, Accident::Lose(Who::Worker(0))),
                befall(When::After(170), Accident::Start(Who::Worker(1))),
            ],
        ),
        world(
            "scheduler_of_the_past",
            Guard::OwnLease,
            vec![
                only,
                TRIGGER,
                befall(RUNS, Accident::Start(Who::Worker(1))),
                befall(
                    When::At("scheduler0", "start_runs:begin"),
                    Accident::Stop(Who::Scheduler(0)),
                ),
                befall(When::Now, Accident::Start(Who::Scheduler(1))),
                befall(When::Lost("scheduler0"), Accident::Stop(Who::Scheduler(1))),
                step(When::Now, What::Trigger("s")),
                befall(When::Now, Accident::Continue(Who::Scheduler(0))),
                befall(When::After(5), Accident::Continue(Who::Scheduler(1))),
            ],
        ),
    ]
}

fn owners() -> Vec<Scenario> {
    vec![world(
        "late_poll",
        Guard::OwnerAlive,
        vec![
            ALONE,
            befall(When::After(5), Accident::Echo(0, "poll", 150, 1)),
            befall(When::After(45), Accident::Lose(Who::Worker(0))),
            step(When::Lost("worker0"), What::Trigger("r")),
            befall(When::After(90), Accident::Start(Who::Worker(1))),
        ],
    )]
}

fn tokens() -> Vec<Scenario> {
    vec![
        world(
            "late_start",
            Guard::StartToken,
            vec![
                ALONE,
                TRIGGER,
                befall(When::At("worker0", "worker:prepared"), Accident::Part(0)),
                RELIEF,
                befall(RUNS, Accident::Join(0)),
            ],
        ),
        Scenario {
            ends: &[("t", "lost infra expiry, success none")],
            ..world(
                "late_report",
                Guard::FinishToken,
                vec![
                    ALONE,
                    TRIGGER,
                    befall(RUNS, Accident::Part(0)),
                    RELIEF,
                    befall(When::RunsAgain("t", 2), Accident::Join(0)),
                ],
            )
        },
        world(
            "parted_for_long",
            Guard::LocalDeadline,
            vec![
                ALONE,
                TRIGGER,
                befall(RUNS, Accident::Part(0)),
                RELIEF,
                befall(When::RunsAgain("t", 2), Accident::Join(0)),
            ],
        ),
    ]
}

fn homes() -> Vec<Scenario> {
    vec![
        Scenario {
            shape: Shape::ONE,
            files: LONG_TASK,
            ends: &[("t", "success none")],
            ..world(
                "late_registration",
                Guard::RegisterOrder,
                vec![
                    befall(When::Now, Accident::Delay(0, "register", 60)),
                    befall(When::After(2), Accident::Delay(0, "register", 0)),
                    befall(When::Now, Accident::Crash(Who::Worker(0))),
                    TRIGGER,
                ],
            )
        },
        Scenario {
            shape: Shape::ONE,
            ..world(
                "slow_shim",
                Guard::AbsenceUnderLock,
                vec![
                    befall(When::Now, Accident::SlowShims(0, 20)),
                    TRIGGER,
                    befall(When::At("worker0", "worker:launched"), Accident::Crash(Who::Worker(0))),
                ],
            )
        },
        Scenario {
            shape: Shape::ONE,
            files: LONG_TASK,
            ends: &[("t", "success none")],
            ..world(
                "two_in_one_home",
                Guard::OwnerWord,
                vec![
                    TRIGGER,
                    befall(RUNS, Accident::Join(0)),
                    // The answer to its beat is on its way.
                    befall(
                        When::At("server0", "renew:after_commit"),
                        Accident::Stop(Who::Worker(0)),
                    ),
                    befall(When::Now, Accident::Rival(0)),
                    befall(When::After(120), Accident::Continue(Who::Worker(0))),
                    befall(When::After(2), Accident::Lose(Who::Worker(0))),
                ],
            )
        },
    ]
}

fn epochs() -> Vec<Scenario> {
    // The claim and the start are lost with the server; what was claimed runs.
    let lags = befall(When::At("server0", "claim:begin"), Accident::Lag);
    let stopped = |n| befall(When::Now, Accident::Stop(Who::Scheduler(n)));
    let goes_on = |n| befall(When::Now, Accident::Continue(Who::Scheduler(n)));
    let ends = &[("t", "success none")];
    vec![
        Scenario {
            ends,
            ..world(
                "failover",
                Guard::EpochReconciliation,
                vec![
                    ALONE,
                    TRIGGER,
                    lags,
                    befall(RUNS, Accident::Part(0)),
                    befall(When::Now, Accident::Failover),
                    RELIEF,
                    befall(When::After(20), Accident::Join(0)),
                ],
            )
        },
        // Nobody has made the new epoch yet.
        Scenario {
            ends,
            ..world(
                "failover_without_schedulers",
                Guard::Epoch,
                vec![
                    ALONE,
                    TRIGGER,
                    lags,
                    befall(RUNS, Accident::Stop(Who::Scheduler(0))),
                    stopped(1),
                    befall(When::Now, Accident::Failover),
                    RELIEF,
                    befall(When::After(4), Accident::Join(0)),
                    goes_on(0),
                    goes_on(1),
                ],
            )
        },
        Scenario {
            shape: Shape::ONE,
            ends,
            ..world(
                "slow_claim",
                Guard::InventoryNumber,
                vec![
                    befall(When::Now, Accident::SlowAnswers(0, "poll", 40)),
                    step(When::After(1), What::Trigger("r")),
                    befall(RUNS, Accident::SlowAnswers(0, "poll", 0)),
                ],
            )
        },
    ]
}
