//! With all guards on no reachable state of any world breaks a promise.

use fencepost_model::search::search;
use fencepost_model::world::{self, World};

fn is_well(world: &World) {
    let found = search(world);
    println!(
        "{}: {} states, {} steps, {} deep",
        world.name, found.states, found.steps, found.depth
    );
    if let Some(counterexample) = found.counterexample {
        panic!("{}:\n{counterexample}", world.name);
    }
}

fn named(name: &str) {
    is_well(&world::find(name).unwrap());
}

macro_rules! worlds {
    ($($(#[$attribute:meta])* $name:ident,)+) => {
        $($(#[$attribute])* #[test] fn $name() { named(stringify!($name)); })+

        #[test]
        fn each_world_has_its_test() {
            let tested = [$(stringify!($name)),+];
            let all: Vec<&str> = world::all().iter().map(|world| world.name).collect();
            assert_eq!(all, tested);
        }
    };
}

worlds! {
    clock_step,
    fast_clock,
    outages,
    many_parted,
    old_beats,
    stale_scheduler,
    parted,
    late_start,
    late_report,
    claims_of_the_dead,
    slow_claim,
    cancel,
    successor,
    late_registration,
    rivals,
    failover,
    failover_and_crash,
    #[ignore = "minutes: of the long form"]
    two_of_each,
    #[ignore = "minutes: of the long form"]
    two_of_each_long,
}
