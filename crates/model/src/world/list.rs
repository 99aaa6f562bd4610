//! The worlds, and the guards that each shows the need of.

use super::{PEACE, World};
use crate::fault::{Faults, Late};
use fencepost_core::dag::{Replace, Task};
use fencepost_core::guard::Guard;

const NONE: Faults = Faults {
    crash: 0,
    start: 0,
    pause: 0,
    partition: 0,
    shim: 0,
    scheduler_crash: 0,
    scheduler_pause: 0,
    stall: 0,
    server_stall: 0,
    late_request: 0,
    late_reply: 0,
    twice: 0,
    servers_away: 0,
    store_away: 0,
    clock_step: 0,
    failover: 0,
    cancel: 0,
    part_all: 0,
};

/// The world of that name.
pub fn find(name: &str) -> Option<World> {
    all().into_iter().find(|world| world.name == name)
}

/// Every world.
pub fn all() -> Vec<World> {
    let made = [leases(), tokens(), homes(), epochs(), whole(), long()];
    made.into_iter().flatten().flatten().collect()
}

type Worlds = Vec<Option<World>>;

fn world(
    name: &'static str,
    shows: &'static [(Guard, &'static str)],
    faults: Faults,
) -> Option<World> {
    Some(World { shows, faults, ..World::peaceful(name)? })
}

/// Who may be declared lost, and when.
fn leases() -> Worlds {
    let alone = |world: World| World { schedulers: 1, homes: &[0], acting: 1, tis: 0, ..world };
    vec![
        world(
            "clock_step",
            &[(Guard::FullTtl, "I25"), (Guard::DeclareCompareAndSet, "I25")],
            Faults { clock_step: 1, partition: 1, stall: 1, ..NONE },
        )
        .map(alone),
        world("fast_clock", &[(Guard::StoreClock, "I25")], Faults { scheduler_pause: 1, ..NONE })
            .map(|world| World { fast_clock: true, homes: &[], acting: 0, tis: 0, ..world }),
        world(
            "outages",
            &[(Guard::FitToJudge, "I26")],
            Faults { servers_away: 1, store_away: 1, scheduler_pause: 1, ..NONE },
        )
        .map(|world| World {
            horizon: PEACE + 8,
            schedulers: 2,
            homes: &[0],
            acting: 1,
            tis: 0,
            ..world
        }),
        world(
            "many_parted",
            &[(Guard::Brake, "I26")],
            Faults { part_all: 1, partition: 1, ..NONE },
        )
        .map(|world| {
            let homes: &[u8] = &[0, 1, 2];
            World { horizon: PEACE + 10, homes, acting: 3, ..alone(world) }
        }),
        world(
            "old_beats",
            &[(Guard::BeatOrder, "I25")],
            Faults { late_request: 1, twice: 1, crash: 1, ..NONE },
        )
        .map(|world| World { late: Late { beat: true, ..Late::NONE }, ..alone(world) }),
        world("stale_scheduler", &[(Guard::OwnLease, "I9")], Faults { stall: 1, ..NONE })
            .map(|world| World { horizon: PEACE + 7, homes: &[0], acting: 1, ..world }),
    ]
}

/// Which calls of which attempts count.
fn tokens() -> Worlds {
    vec![
        world("parted", &[(Guard::LocalDeadline, "I5")], Faults { partition: 1, ..NONE }),
        world(
            "late_start",
            &[(Guard::StartToken, "I3")],
            Faults { late_request: 1, late_reply: 1, ..NONE },
        )
        .map(|world| World {
            schedulers: 1,
            horizon: PEACE + 3,
            start_timeout: Some(2),
            late: Late { start: true, claim: true, ..Late::NONE },
            ..world
        }),
        world(
            "late_report",
            &[(Guard::FinishToken, "I3")],
            Faults { late_request: 1, partition: 1, ..NONE },
        )
        .map(|world| World { late: Late { report: true, ..Late::NONE }, ..world }),
        world(
            "claims_of_the_dead",
            &[(Guard::OwnerAlive, "I24"), (Guard::DeclareRowLock, "I24")],
            Faults { crash: 1, late_request: 1, server_stall: 1, ..NONE },
        )
        .map(|world| World {
            schedulers: 1,
            homes: &[0],
            acting: 1,
            horizon: PEACE + 6,
            late: Late { claim: true, ..Late::NONE },
            ..world
        }),
        world("slow_claim", &[(Guard::InventoryNumber, "I24")], Faults { late_reply: 2, ..NONE })
            .map(|world| World {
                schedulers: 1,
                homes: &[0],
                acting: 1,
                horizon: PEACE + 4,
                late: Late { claim: true, beat: true, start: true, ..Late::NONE },
                ..world
            }),
        world("confirmed", &[], Faults { partition: 1, ..NONE }).map(|world| {
            let task = Task { replace: Replace::AfterConfirmedDead, ..world.task.clone() };
            World { task, schedulers: 1, ..world }
        }),
        world("cancel", &[], Faults { cancel: 1, partition: 1, shim: 1, ..NONE })
            .map(|world| World { schedulers: 1, ..world }),
    ]
}

/// What a successor in the same home finds and takes over.
fn homes() -> Worlds {
    let one = |world: World| World { schedulers: 1, homes: &[0], acting: 1, ..world };
    vec![
        world(
            "successor",
            &[(Guard::AbsenceUnderLock, "I5")],
            Faults { crash: 2, start: 2, shim: 1, ..NONE },
        )
        .map(|world| World { horizon: PEACE + 3, slow_shims: true, ..one(world) }),
        world(
            "late_registration",
            &[(Guard::RegisterOrder, "I10")],
            Faults { crash: 2, start: 2, late_request: 1, ..NONE },
        )
        .map(|world| World {
            horizon: PEACE + 3,
            late: Late { register: true, ..Late::NONE },
            ..one(world)
        }),
        world(
            "rivals",
            &[(Guard::OwnerWord, "I10")],
            Faults { pause: 1, start: 1, late_reply: 1, ..NONE },
        )
        .map(|world| World {
            horizon: PEACE + 3,
            homes: &[0, 0],
            rivals: true,
            late: Late { beat: true, ..Late::NONE },
            ..one(world)
        }),
    ]
}

/// A store that loses its last commits.
fn epochs() -> Worlds {
    vec![
        world(
            "failover",
            &[(Guard::EpochReconciliation, "I5"), (Guard::Epoch, "I2")],
            Faults { failover: 1, ..NONE },
        )
        .map(|world| World { schedulers: 1, horizon: PEACE + 4, ..world }),
        world("failover_clock", &[], Faults { failover: 1, partition: 1, clock_step: 1, ..NONE })
            .map(|world| World { schedulers: 1, horizon: PEACE + 3, ..world }),
        world("failover_successor", &[], Faults { failover: 1, crash: 1, start: 1, ..NONE }).map(
            |world| World { schedulers: 1, horizon: PEACE + 2, homes: &[0], acting: 1, ..world },
        ),
    ]
}

/// What comes together.
fn whole() -> Worlds {
    let one = |world: World| World { schedulers: 1, homes: &[0], acting: 1, ..world };
    let late = |world: World| World { late: Late::ALL, ..world };
    vec![
        world("failover_late", &[], Faults { failover: 1, late_request: 1, late_reply: 1, ..NONE })
            .map(|world| World { horizon: PEACE + 2, ..late(one(world)) }),
        world("failover_twice", &[], Faults { failover: 2, ..NONE }).map(|world| World {
            schedulers: 1,
            horizon: PEACE + 3,
            ..world
        }),
        world(
            "late_all",
            &[],
            Faults { crash: 1, start: 1, late_request: 1, late_reply: 1, ..NONE },
        )
        .map(|world| World { horizon: PEACE + 2, ..late(one(world)) }),
        world("late_pause", &[], Faults { pause: 1, late_request: 1, ..NONE })
            .map(|world| World { schedulers: 1, ..late(world) }),
        world("cancel_late", &[], Faults { cancel: 1, crash: 1, start: 1, twice: 1, ..NONE })
            .map(|world| World { horizon: PEACE + 2, ..late(one(world)) }),
        world("scheduler_killed", &[], Faults { scheduler_crash: 1, ..NONE }).map(|world| World {
            homes: &[0],
            acting: 1,
            ..world
        }),
        world("scheduler_paused", &[], Faults { scheduler_pause: 1, ..NONE })
            .map(|world| World { horizon: PEACE + 6, ..world }),
        world("two_of_each", &[], Faults { partition: 1, ..NONE }).map(|world| World {
            tis: 2,
            schedulers: 1,
            ..world
        }),
    ]
}

/// The long form: two of each, and more that goes wrong.
fn long() -> Worlds {
    let long = |world: World| World { is_long: true, schedulers: 1, ..world };
    let late = |world: World| World { late: Late::ALL, ..world };
    vec![
        world("failover_parted", &[], Faults { failover: 1, partition: 1, ..NONE }).map(long),
        world("failover_crash", &[], Faults { failover: 1, crash: 1, start: 1, ..NONE })
            .map(|world| World { horizon: PEACE + 4, ..long(world) }),
        world("two_of_each_crash", &[], Faults { crash: 1, start: 1, partition: 1, ..NONE })
            .map(|world| World { tis: 2, ..long(world) }),
        world("two_of_each_late", &[], Faults { pause: 1, late_request: 1, ..NONE })
            .map(|world| World { tis: 2, ..late(long(world)) }),
        world("two_schedulers", &[], Faults { scheduler_pause: 1, partition: 1, ..NONE })
            .map(|world| World { schedulers: 2, ..long(world) }),
    ]
}
