//! The names of states and words in the store, the API and the pages.

use fencepost_core::state::{
    AttemptState, CountedAs, JobKind, JobState, Outcome, RunState, RunType, StopReason, TiState,
    Why,
};

fn check<T: Copy + PartialEq + std::fmt::Debug>(
    all: &[T],
    name: fn(T) -> &'static str,
    parse: fn(&str) -> Option<T>,
    expected: &str,
) {
    let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
    assert_eq!(names.join(" "), expected);
    for value in all {
        assert_eq!(parse(name(*value)), Some(*value));
        assert_eq!(parse(&name(*value).to_uppercase()), None, "names have one spelling");
    }
    assert_eq!(parse(""), None);
}

/// The words of 1-semantics section 1; they are stored, so they never change.
#[test]
fn names_are_those_of_the_vocabulary() {
    check(
        TiState::ALL,
        TiState::as_str,
        TiState::parse,
        "none scheduled queued running deferred up_for_retry restarting held success failed \
         skipped upstream_failed removed",
    );
    let runs = "queued running success failed cancelled missed";
    check(RunState::ALL, RunState::as_str, RunState::parse, runs);
    let attempts = "queued claimed running stopping lost_open ended";
    check(AttemptState::ALL, AttemptState::as_str, AttemptState::parse, attempts);
    let outcomes =
        "success failed skipped deferred lost fenced cancelled cleared never_ran released";
    check(Outcome::ALL, Outcome::as_str, Outcome::parse, outcomes);
    check(JobState::ALL, JobState::as_str, JobState::parse, "running draining stopped lost");
    check(JobKind::ALL, JobKind::as_str, JobKind::parse, "scheduler worker server triggerer");
    let types = "scheduled manual backfill asset_triggered";
    check(RunType::ALL, RunType::as_str, RunType::parse, types);
    check(Why::ALL, Why::as_str, Why::parse, "first retry replaces cleared resumed");
    check(CountedAs::ALL, CountedAs::as_str, CountedAs::parse, "none user infra");
    let stops = "cancel clear mark dagrun_timeout fail_fast kill";
    check(StopReason::ALL, StopReason::as_str, StopReason::parse, stops);
}
