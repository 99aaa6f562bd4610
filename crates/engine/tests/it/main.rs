//! The engine from the outside: a real store, a clock and randomness of the test's own, DAGs read
//! from YAML, passes called by hand, and workers that follow a script.
//!
//! The audit and the books are checked after every turn of every test (see `world`).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod assets;
mod assets_at_once;
mod backfills;
mod backfills_at_once;
mod callbacks;
mod clears;
mod crash_points;
mod dag_triggers;
mod deferrals;
mod epochs;
mod explains;
mod graphs;
mod guards;
mod hand_over;
mod held;
mod incidents;
mod interleavings;
mod inventories;
mod leases;
mod limits;
mod mapping;
mod meetings;
mod overlaps;
mod ramps;
mod reconciling;
mod reports;
mod retention;
mod retries;
mod roles;
mod schedules;
mod shares;
mod slots_at_once;
mod starvation;
mod stops;
mod teardowns;
mod triggerers;
mod two_schedulers;
mod unreadable;
mod versions;
mod watchdogs;
mod workers;
mod world;

#[test]
fn every_file_of_tests_is_listed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") {
            assert!(main.contains(&format!("mod {module};")), "{module} is not listed");
        }
    }
}
