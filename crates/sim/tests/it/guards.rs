//! Each guard is needed: a small world is well with it, and breaks a promise without it, as the audit,
//! the ledger and the witness see it, which know no guards.

use fencepost_core::guard::{Guard, Guards};
use fencepost_sim::exhaustive::Stage;
use fencepost_sim::scenario::{self, Scenario};
use fencepost_sim::sim::Options;

fn violations(scenario: &Scenario, guards: Guards) -> Vec<String> {
    let options = Options { seed: 1, guards, is_loud: false, audit_every: 1 };
    let played = Stage::new(scenario, options).unwrap().play(None).unwrap();
    played.found.violations
}

fn is_needed(guard: Guard, invariant: &str) {
    let all = scenario::all();
    let worlds: Vec<&Scenario> = all.iter().filter(|one| one.shows == Some(guard)).collect();
    assert!(!worlds.is_empty(), "no small world shows {guard}");
    for world in worlds {
        let name = world.name;
        assert_eq!(violations(world, Guards::all()), Vec::<String>::new(), "{name}");
        let found = violations(world, Guards::all().without(guard));
        let again = format!("fencepost-sim --seed 1 --scenario {name} --unsafe {guard}");
        assert!(found.iter().any(|what| what.starts_with(invariant)), "{found:?}\n{again}");
    }
}

#[test]
fn without_the_assertion_of_its_own_lease_a_scheduler_of_the_past_writes() {
    is_needed(Guard::OwnLease, "I9:");
}

#[test]
fn without_the_compare_and_set_one_that_renewed_is_declared_lost() {
    is_needed(Guard::DeclareCompareAndSet, "I25:");
}

#[test]
fn without_the_row_lock_a_claim_crosses_a_declaration() {
    is_needed(Guard::DeclareRowLock, "I24:");
}

#[test]
fn without_the_clock_of_the_store_a_fast_one_condemns_too_early() {
    is_needed(Guard::StoreClock, "I25:");
}

#[test]
fn without_the_token_at_the_start_a_replaced_attempt_starts() {
    is_needed(Guard::StartToken, "I5:");
}

#[test]
fn without_the_token_at_the_end_a_late_report_ends_its_successor() {
    is_needed(Guard::FinishToken, "I4:");
}

#[test]
fn without_a_look_at_the_owner_a_late_poll_claims_for_the_dead() {
    is_needed(Guard::OwnerAlive, "I24:");
}

#[test]
fn without_a_full_ttl_of_observation_a_step_of_the_clock_condemns_all() {
    is_needed(Guard::FullTtl, "I25:");
}

#[test]
fn without_a_look_at_its_own_fitness_an_outage_condemns_the_living() {
    is_needed(Guard::FitToJudge, "I26:");
}

#[test]
fn without_the_brake_one_fault_condemns_many() {
    is_needed(Guard::Brake, "I26:");
}

#[test]
fn without_the_local_deadline_two_processes_of_one_task_run_at_once() {
    is_needed(Guard::LocalDeadline, "I5:");
}

#[test]
fn without_the_proof_under_the_lock_a_slow_shim_makes_two() {
    is_needed(Guard::AbsenceUnderLock, "I5:");
}

#[test]
fn without_the_owner_word_a_stale_push_ends_what_its_successor_runs() {
    is_needed(Guard::OwnerWord, "I10:");
}

#[test]
fn without_the_order_of_beats_the_dead_live_on() {
    is_needed(Guard::BeatOrder, "I24:");
}

#[test]
fn without_the_order_of_registrations_a_dead_process_takes_its_home_back() {
    is_needed(Guard::RegisterOrder, "I10:");
}

#[test]
fn without_reconciliation_what_runs_is_claimed_again_after_a_failover() {
    is_needed(Guard::EpochReconciliation, "I5:");
}

#[test]
fn without_its_epoch_a_claim_is_taken_from_a_server_that_has_forgotten_it() {
    is_needed(Guard::Epoch, "I5:");
}

#[test]
fn without_its_number_an_old_inventory_throws_a_claim_away() {
    is_needed(Guard::InventoryNumber, "I24:");
}

#[test]
fn every_guard_has_a_world_that_shows_it() {
    let all = scenario::all();
    let is_missing = |guard: &&Guard| !all.iter().any(|one| one.shows == Some(**guard));
    let missing: Vec<&Guard> = Guard::ALL.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
