//! Random worlds of fixed seeds.

use fencepost_core::guard::Guards;
use fencepost_sim::chaos::{self, Plan, Played};
use fencepost_sim::sim::Options;

fn play(seed: u64, minutes: u64) -> Played {
    let options = Options { seed, guards: Guards::all(), is_loud: false, audit_every: 8 };
    chaos::play(options, Plan { minutes, ..Plan::default() }).unwrap()
}

fn plays(seed: u64, plan: Plan) {
    let options = Options { seed, guards: Guards::all(), is_loud: false, audit_every: 8 };
    let played = chaos::play(options, plan).unwrap();
    let (last, wrong) = (played.found.last.join("\n"), &played.found.violations);
    let flag = if plan.fails_over { " --failover" } else { "" };
    let again = format!("fencepost-sim --seed {seed} --runs 1 --minutes {}{flag}", plan.minutes);
    assert!(wrong.is_empty(), "{last}\n{wrong:#?}\n{again}");
    assert!(played.executions > 0 && played.finished > 0, "nothing happened: {again}");
}

fn keeps_its_promises(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        plays(seed, Plan { minutes: 10, ..Plan::default() });
    }
}

#[test]
fn a_seed_is_one_world_and_another_seed_another() {
    let (one, again, other) = (play(5, 6), play(5, 6), play(6, 6));
    assert_eq!(one.found.last, again.found.last);
    assert_eq!(one, again);
    assert_ne!(one.found.digest, other.found.digest);
}

#[test]
fn random_worlds_keep_the_promises_and_come_to_rest() {
    keeps_its_promises(1..5);
}

#[test]
fn more_random_worlds_keep_the_promises_and_come_to_rest() {
    keeps_its_promises(5..9);
}

#[test]
fn random_worlds_whose_store_fails_over_keep_the_promises() {
    for seed in 1..4 {
        plays(seed, Plan { minutes: 10, fails_over: true, ..Plan::default() });
    }
}
