//! What happened in a world: the last events, a digest of all of them, coverage marks, faults, and
//! the first violation.

use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Events that are kept for a failure's report.
const KEPT: usize = 120;

/// Shared by all parts of a world.
#[derive(Debug, Clone)]
pub struct Trace {
    time: Time,
    is_loud: bool,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    last: VecDeque<String>,
    digest: u64,
    events: u64,
    marks: BTreeMap<&'static str, u64>,
    faults: BTreeMap<&'static str, u64>,
    violations: Vec<String>,
}

/// What a world leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub digest: u64,
    pub events: u64,
    pub marks: BTreeMap<&'static str, u64>,
    pub faults: BTreeMap<&'static str, u64>,
    pub violations: Vec<String>,
    /// The last events, oldest first.
    pub last: Vec<String>,
}

impl Trace {
    /// An empty trace; a loud one prints each event to standard error.
    pub fn new(time: Time, is_loud: bool) -> Self {
        Self { time, is_loud, state: Arc::default() }
    }

    /// Something happened.
    #[expect(clippy::print_stderr, reason = "asked for")]
    pub fn note(&self, text: impl FnOnce() -> String) {
        let line = format!("{:>12.6} {}", self.time.elapsed().as_secs_f64(), text());
        if self.is_loud {
            eprintln!("{line}");
        }
        let mut state = self.state();
        let mix = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        state.digest = line.bytes().fold(state.digest ^ 0xcbf2_9ce4_8422_2325, mix);
        state.events += 1;
        if state.last.len() == KEPT {
            state.last.pop_front();
        }
        state.last.push_back(line);
    }

    /// A recovery branch was taken, or a race won.
    pub fn mark(&self, name: &'static str) {
        self.marks(name, 1);
    }

    /// The same, several times.
    pub fn marks(&self, name: &'static str, times: u64) {
        if times > 0 {
            *self.state().marks.entry(name).or_default() += times;
        }
    }

    /// A fault was injected.
    pub fn fault(&self, kind: &'static str, what: impl FnOnce() -> String) {
        *self.state().faults.entry(kind).or_default() += 1;
        self.note(|| format!("fault {kind}: {}", what()));
    }

    /// A promise is broken.
    pub fn violate(&self, what: String) {
        self.note(|| format!("VIOLATION {what}"));
        self.state().violations.push(what);
    }

    /// Whether one is.
    pub fn is_violated(&self) -> bool {
        !self.state().violations.is_empty()
    }

    /// Everything.
    pub fn found(&self) -> Found {
        let state = self.state();
        Found {
            digest: state.digest,
            events: state.events,
            marks: state.marks.clone(),
            faults: state.faults.clone(),
            violations: state.violations.clone(),
            last: state.last.iter().cloned().collect(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
