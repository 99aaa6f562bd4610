//! What this process has done and met, in numbers that only rise; and a few that say how it stands.
//!
//! Each process counts what it committed itself, so what many schedulers did is the sum over all of
//! them. Nothing is decided by these numbers, and nothing is lost with them: the log in the store has
//! every line. Whoever wants to hear the lines as they are committed ([`Meters::listen`]) hears them
//! here too.

mod counted;

use crate::Cx;
use fencepost_core::time::Span;
use fencepost_store::query::event::Event;
use fencepost_store::{Sign, Store, StoreError, Witness};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

pub use counted::{BRAKED, FAMILIES, FENCED, Family, GAUGES, PINGS, SWEPT};

/// What a listener hears.
#[derive(Debug, Clone, Copy)]
pub enum Heard<'a> {
    /// A line of the log that this process committed.
    Line(&'a Event),
    /// The store failed a statement.
    Failed(&'a StoreError),
    /// The store answers again, after it had failed so many times.
    Answers(u64),
}

type Listener = Box<dyn Fn(Heard<'_>) + Send + Sync>;

/// How long a pass took, over all of its turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Durations {
    pub turns: u64,
    pub failed: u64,
    pub whole: Span,
}

/// The counters of a process.
#[derive(Default)]
pub struct Meters {
    counts: Mutex<BTreeMap<(&'static str, String), u64>>,
    passes: Mutex<BTreeMap<&'static str, Durations>>,
    gauges: Mutex<BTreeMap<&'static str, u64>>,
    /// Failures in a row for want of the store.
    away: Mutex<u64>,
    listener: OnceLock<Listener>,
}

impl Meters {
    /// Counts of a process that begins: whatever may be counted is there, and 0.
    pub fn new() -> Self {
        let own = Self::default();
        for family in FAMILIES {
            for label in family.values {
                own.add(family.name, label, 0);
            }
        }
        for (name, _) in GAUGES {
            own.gauge(name, 0);
        }
        own
    }

    /// The same store, whose transactions are counted here.
    pub fn watch(self: &Arc<Self>, store: &Store) -> Store {
        let own = Arc::clone(self);
        store.witnessed(Witness::new(move |sign| own.witness(sign)))
    }

    /// From now on `listener` hears what happens; the first one stays.
    pub fn listen(&self, listener: impl Fn(Heard<'_>) + Send + Sync + 'static) {
        // A second one is never asked for: the composition root makes one for each process.
        let _ = self.listener.set(Box::new(listener));
    }

    /// Counts one more of a family, by one of the values that it knows.
    pub fn count(&self, family: &'static str, label: &str) {
        self.add(family, label, 1);
    }

    fn add(&self, family: &'static str, label: &str, by: u64) {
        *locked(&self.counts).entry((family, label.to_owned())).or_default() += by;
    }

    /// What this process sees now of one of [`GAUGES`].
    pub fn gauge(&self, name: &'static str, value: u64) {
        locked(&self.gauges).insert(name, value);
    }

    /// Every gauge that was set here.
    pub fn gauges(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.gauges).clone()
    }

    /// One turn of a pass.
    pub fn turned(&self, pass: &'static str, took: Span, is_good: bool) {
        let mut passes = locked(&self.passes);
        let own = passes.entry(pass).or_default();
        own.turns += 1;
        own.failed += u64::from(!is_good);
        own.whole = own.whole.plus(took.max(Span::ZERO));
    }

    /// Every count, by family and label.
    pub fn counts(&self) -> BTreeMap<(&'static str, String), u64> {
        locked(&self.counts).clone()
    }

    /// Every pass that has turned here.
    pub fn passes(&self) -> BTreeMap<&'static str, Durations> {
        locked(&self.passes).clone()
    }

    fn witness(&self, sign: Sign<'_>) {
        match sign {
            Sign::Answered => {
                let failed = std::mem::take(&mut *locked(&self.away));
                if failed > 0 {
                    self.tell(Heard::Answers(failed));
                }
            }
            Sign::Committed(lines) => {
                for line in lines {
                    for (family, label, by) in counted::of(line) {
                        self.add(family, label, by);
                    }
                    self.tell(Heard::Line(line));
                }
            }
            Sign::Failed(error) => {
                self.count(counted::STORE_ERRORS, counted::kind(error));
                if counted::is_away(error) {
                    *locked(&self.away) += 1;
                }
                self.tell(Heard::Failed(error));
            }
        }
    }

    fn tell(&self, heard: Heard<'_>) {
        if let Some(listener) = self.listener.get() {
            listener(heard);
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meters")
    }
}

impl Cx {
    /// The same context on another handle of the same store.
    pub fn on(&self, store: &Store) -> Self {
        Self { store: self.meters.watch(store), ..self.clone() }
    }
}
