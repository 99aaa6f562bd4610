//! Faults at the hook points: the k-th passage fails, loses its answer, or is the last.

use super::Random;
use fencepost_core::hook::{HookVerdict, Hooks};
use std::sync::{Arc, Mutex};

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The store answers "unavailable".
    Fail,
    /// A commit is done, and its caller is told that it failed.
    Unknown,
    /// Nothing after it happens: the process is gone.
    Crash,
}

/// The passage at which something happens, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trip {
    pub(crate) at: u64,
    pub(crate) kind: Kind,
}

#[derive(Default)]
struct State {
    passed: u64,
    list: Vec<String>,
    trip: Option<Trip>,
    /// A point that always fails; empty: none.
    failing: String,
    is_down: bool,
    /// Failures by chance: the random row, and how many of 1,000 passages.
    chance: Option<(Random, u64)>,
    failures: u64,
}

#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<State>>);

impl Faults {
    pub(crate) fn hooks(&self) -> Hooks {
        let own = self.clone();
        Hooks::new(move |point| own.pass(point))
    }

    /// Passes a point: the store's own, or one of the workers'.
    pub(crate) fn pass(&self, point: &str) -> HookVerdict {
        let mut state = self.0.lock().unwrap();
        if state.is_down {
            return HookVerdict::Fail;
        }
        if !state.failing.is_empty() && state.failing == point {
            return HookVerdict::Fail;
        }
        state.passed += 1;
        state.list.push(point.to_owned());
        if let Some((random, often)) = &state.chance {
            let (draw, often) = (random.next() % 1_000, *often);
            if draw < often {
                state.failures += 1;
                let lost = draw % 2 == 0 && point.ends_with(":after_commit");
                return if lost { HookVerdict::CommittedButUnknown } else { HookVerdict::Fail };
            }
        }
        match state.trip.filter(|trip| trip.at == state.passed) {
            None => HookVerdict::Go,
            Some(Trip { kind: Kind::Fail, .. }) => HookVerdict::Fail,
            Some(Trip { kind: Kind::Unknown, .. }) => HookVerdict::CommittedButUnknown,
            Some(Trip { kind: Kind::Crash, .. }) => {
                state.is_down = true;
                HookVerdict::Fail
            }
        }
    }

    /// Counts from here on, and lets `trip` happen.
    pub(crate) fn arm(&self, trip: Option<Trip>) {
        let mut state = self.0.lock().unwrap();
        state.passed = 0;
        state.list.clear();
        state.trip = trip;
    }

    /// Lets every passage of a point fail, until another is named.
    pub(crate) fn fail(&self, point: &str) {
        point.clone_into(&mut self.0.lock().unwrap().failing);
    }

    /// Lets so many of 1,000 passages fail.
    pub(crate) fn by_chance(&self, chance: Option<(Random, u64)>) {
        self.0.lock().unwrap().chance = chance;
    }

    /// From now on every passage fails, as after a crash.
    pub(crate) fn down(&self) {
        self.0.lock().unwrap().is_down = true;
    }

    pub(crate) fn up(&self) {
        self.0.lock().unwrap().is_down = false;
    }

    pub(crate) fn is_down(&self) -> bool {
        self.0.lock().unwrap().is_down
    }

    /// The points passed since `arm`, in order.
    pub(crate) fn list(&self) -> Vec<String> {
        self.0.lock().unwrap().list.clone()
    }

    /// Whether the armed trip has happened.
    pub(crate) fn has_tripped(&self) -> bool {
        let state = self.0.lock().unwrap();
        state.trip.is_some_and(|trip| trip.at <= state.passed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.0.lock().unwrap().failures
    }

    /// Looks without being seen: checks of the test pass no points.
    pub(crate) fn unseen(&self) -> Unseen {
        let mut state = self.0.lock().unwrap();
        let kept = (state.passed, state.trip.take(), state.chance.take(), state.is_down);
        let length = state.list.len();
        state.is_down = false;
        drop(state);
        Unseen { faults: self.clone(), kept: Some(kept), length }
    }
}

type Kept = (u64, Option<Trip>, Option<(Random, u64)>, bool);

/// Ends the unseen look when it is dropped.
pub(crate) struct Unseen {
    faults: Faults,
    kept: Option<Kept>,
    length: usize,
}

impl Drop for Unseen {
    fn drop(&mut self) {
        let mut state = self.faults.0.lock().unwrap();
        let Some(kept) = self.kept.take() else { return };
        (state.passed, state.trip, state.chance, state.is_down) = kept;
        state.list.truncate(self.length);
    }
}
