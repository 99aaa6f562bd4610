//! Small worlds with a crash, and with a lost answer, at the points that they pass: the first
//! passage of every point by every process, and some of the others. The binary plays all.

use fencepost_core::guard::Guards;
use fencepost_sim::exhaustive::Stage;
use fencepost_sim::fault::Kind;
use fencepost_sim::scenario::{self, Points, Scenario};
use fencepost_sim::sim::Options;

/// Of the passages of a point after the first, every so many-th.
const STRIDE: u64 = 40;

/// Every fourth scenario, beginning with one.
fn some_scenarios(first: usize) {
    let options = Options { seed: 1, guards: Guards::all(), is_loud: false, audit_every: 1 };
    let all = scenario::all();
    let whole = all.iter().filter(|one| one.points == Points::All);
    for scenario in whole.skip(first).step_by(4) {
        let stage = Stage::new(scenario, options).unwrap();
        let calm = stage.play(None).unwrap();
        let name = scenario.name;
        assert_eq!(calm.found.violations, Vec::<String>::new(), "{name}");
        let expected = calm.end.unwrap();
        let trips = stage.trips(&calm.passages, Some(STRIDE));
        assert!(trips.len() > 50, "{name}: {} trips", trips.len());
        for trip in trips {
            let played = stage.play(Some(trip)).unwrap();
            let unknown = if trip.kind == Kind::Unknown { " --unknown" } else { "" };
            assert_eq!(
                stage.compare(&expected, &played),
                Vec::<String>::new(),
                "{:?}\n{}\nfencepost-sim --seed 1 --scenario {name} --at {}{unknown}",
                played.tripped,
                played.found.last.join("\n"),
                trip.at
            );
            assert!(played.tripped.is_some(), "{name}: nothing happened at {}", trip.at);
        }
    }
}

#[test]
fn there_are_many_small_worlds_of_different_names() {
    let all = scenario::all();
    let names: std::collections::BTreeSet<&str> = all.iter().map(|one| one.name).collect();
    assert!(all.len() >= 20 && names.len() == all.len());
}

#[test]
fn crash_points_of_the_first_quarter_end_alike() {
    some_scenarios(0);
}

#[test]
fn crash_points_of_the_second_quarter_end_alike() {
    some_scenarios(1);
}

#[test]
fn crash_points_of_the_third_quarter_end_alike() {
    some_scenarios(2);
}

#[test]
fn crash_points_of_the_last_quarter_end_alike() {
    some_scenarios(3);
}

/// Those that take minutes: undisturbed, with the ends that are written. The long form disturbs them.
#[test]
fn lost_parted_and_stopped_processes_cost_what_is_written() {
    let options = Options { seed: 1, guards: Guards::all(), is_loud: false, audit_every: 1 };
    let all = scenario::all();
    let is_slow = |one: &&Scenario| one.points != Points::All && one.shows.is_none();
    let slow: Vec<_> = all.iter().filter(is_slow).collect();
    assert!(slow.len() > 10 && slow.iter().all(|one| !one.ends.is_empty()));
    for scenario in slow {
        let played = Stage::new(scenario, options).unwrap().play(None).unwrap();
        let last = played.found.last.join("\n");
        let wrong = &played.found.violations;
        assert!(wrong.is_empty() && played.end.is_some(), "{last}\n{}: {wrong:?}", scenario.name);
    }
}
