//! With all guards on no reachable state of any world breaks a promise; and each search has been through
//! the branches that its world is there for.

use fencepost_model::mark;
use fencepost_model::search::search;
use fencepost_model::world;
use std::collections::BTreeSet;

fn is_well(name: &str, reaches: &[&str]) {
    let found = search(&world::find(name).unwrap());
    let (states, steps, depth) = (found.states, found.steps, found.depth);
    println!("{name}: {states} states, {steps} steps, {depth} deep; {:?}", found.marks);
    if let Some(counterexample) = found.counterexample {
        panic!("{name}:\n{counterexample}");
    }
    for mark in reaches {
        assert!(found.marks.contains_key(mark), "{name} never came to `{mark}`");
    }
}

macro_rules! worlds {
    ($($(#[$attribute:meta])* $name:ident: [$($mark:literal),*],)+) => {
        $($(#[$attribute])* #[test] fn $name() { is_well(stringify!($name), &[$($mark),*]); })+

        #[test]
        fn each_world_has_its_test() {
            let tested = [$(stringify!($name)),+];
            let all: Vec<&str> = world::all().iter().map(|world| world.name).collect();
            assert_eq!(all, tested);
        }

        #[test]
        fn each_mark_is_reached_by_some_world() {
            let reached = BTreeSet::from([$($($mark),*),+]);
            assert_eq!(reached, mark::ALL.iter().copied().collect());
        }
    };
}

worlds! {
    clock_step: ["declared", "declare_lost_the_race"],
    fast_clock: ["declared", "declare_lost_the_race"],
    outages: ["declared", "scheduler_fenced"],
    many_parted: ["declared"],
    old_beats: ["declared", "declare_lost_the_race"],
    stale_scheduler: ["declared", "scheduler_fenced"],
    parted: ["declared", "lost", "never_ran", "replaced", "shim_fenced", "late_report_refused"],
    late_start: ["never_ran", "replaced", "start_refused"],
    late_report: ["lost", "replaced", "late_report_refused"],
    claims_of_the_dead: ["declared", "lost", "never_ran", "replaced"],
    slow_claim: ["start_refused"],
    confirmed: ["declared", "opened", "lost", "replaced"],
    cancel: ["cancelled", "declared", "lost", "start_refused"],
    successor: ["handed_over", "reattached", "claim_kept", "start_taken_back", "lost"],
    late_registration: ["handed_over", "reattached"],
    rivals: ["handed_over", "reattached", "shim_fenced"],
    failover: ["epoch_raised", "reconciled", "claim_recorded_again", "disowned", "never_ran"],
    #[ignore = "of the long form"]
    failover_clock: ["epoch_raised", "reconciled"],
    failover_successor: ["epoch_raised", "reconciled", "claim_recorded_again", "handed_over"],
    failover_late: ["epoch_raised", "reconciled", "claim_recorded_again", "start_refused"],
    failover_twice: ["epoch_raised", "reconciled", "claim_recorded_again", "scheduler_fenced"],
    late_all: ["handed_over", "reattached", "late_report_refused"],
    late_pause: ["declared", "lost", "replaced", "late_report_refused"],
    cancel_late: ["cancelled", "handed_over", "reattached"],
    scheduler_killed: ["declared", "declare_lost_the_race"],
    scheduler_paused: ["declared", "scheduler_fenced"],
    two_of_each: ["declared", "lost", "replaced"],
    #[ignore = "of the long form"]
    failover_parted: ["declared", "reconciled", "claim_recorded_again"],
    #[ignore = "of the long form"]
    failover_crash: ["reconciled", "claim_recorded_again", "handed_over"],
    #[ignore = "of the long form"]
    two_of_each_crash: ["declared", "lost", "handed_over", "reattached"],
    #[ignore = "of the long form"]
    two_of_each_late: ["declared", "lost", "late_report_refused"],
    #[ignore = "of the long form"]
    two_schedulers: ["declared", "scheduler_fenced", "lost"],
}
