//! Faults at the hook points of the shipped code: the k-th passage is the last thing that its
//! process does, or a commit there is done and its answer lost; or failures by chance.

use crate::process::crash_here;
use crate::random::Random;
use fencepost_core::hook::HookVerdict;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What happens at a passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The process ends there.
    Crash,
    /// The commit is done, and its caller is told that it failed.
    Unknown,
}

/// The passage, counted from 1, at which something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    pub at: u64,
    pub kind: Kind,
}

/// A passage of a point by a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    pub process: String,
    pub point: String,
}

/// The plan of a world. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Plan(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    passed: u64,
    is_counting: bool,
    list: Option<Vec<Passage>>,
    trip: Option<Trip>,
    tripped: Option<Passage>,
    chance: Option<Chance>,
    injected: BTreeMap<&'static str, u64>,
}

/// How many of 100,000 passages fail.
#[derive(Debug, Clone)]
pub struct Chance {
    pub random: Random,
    /// The store answers "unavailable".
    pub fail: u64,
    /// A commit is done and its answer lost.
    pub unknown: u64,
    /// The process ends.
    pub crash: u64,
}

impl Plan {
    /// Counts from here on; the list of passages is kept if `keep`.
    pub fn arm(&self, trip: Option<Trip>, keep: bool) {
        let mut state = self.state();
        *state = State { is_counting: true, trip, list: keep.then(Vec::new), ..State::default() };
    }

    /// Failures by chance, or none any more.
    pub fn by_chance(&self, chance: Option<Chance>) {
        self.state().chance = chance;
    }

    /// A process passes a point.
    pub fn pass(&self, process: &str, point: &str) -> HookVerdict {
        let mut state = self.state();
        let is_commit = point.ends_with(":before_commit");
        if let Some(chance) = state.chance.clone() {
            let draw = chance.random.bits() % 100_000;
            if draw < chance.crash {
                *state.injected.entry("crash_at_point").or_default() += 1;
                drop(state);
                crash_here();
            }
            if draw < chance.crash + chance.fail {
                *state.injected.entry("store_failed").or_default() += 1;
                return HookVerdict::Fail;
            }
            if is_commit && draw < chance.crash + chance.fail + chance.unknown {
                *state.injected.entry("committed_but_unknown").or_default() += 1;
                return HookVerdict::CommittedButUnknown;
            }
        }
        if !state.is_counting {
            return HookVerdict::Go;
        }
        state.passed += 1;
        let passage = || Passage { process: process.into(), point: point.into() };
        if let Some(list) = &mut state.list {
            list.push(passage());
        }
        let Some(trip) = state.trip.filter(|trip| trip.at == state.passed) else {
            return HookVerdict::Go;
        };
        state.tripped = Some(passage());
        match trip.kind {
            Kind::Crash => {
                drop(state);
                crash_here();
            }
            Kind::Unknown => HookVerdict::CommittedButUnknown,
        }
    }

    /// The passages since `arm`, if they were kept.
    pub fn list(&self) -> Vec<Passage> {
        self.state().list.clone().unwrap_or_default()
    }

    /// Where the trip happened, if it has.
    pub fn tripped(&self) -> Option<Passage> {
        self.state().tripped.clone()
    }

    /// Failures by chance, by kind.
    pub fn injected(&self) -> BTreeMap<&'static str, u64> {
        self.state().injected.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
