//! Traps: what befalls at the very instant at which a process passes a point of the shipped code.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Act = Box<dyn FnOnce() + Send>;

struct Trap {
    process: String,
    point: String,
    act: Act,
}

/// The traps of a world. Clones are the same.
#[derive(Clone, Default)]
pub struct Traps(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    set: Vec<Trap>,
    /// Processes that give their turn away before their next step at the store, and for how long
    /// that waits.
    yields: BTreeMap<String, Duration>,
}

impl Traps {
    /// Something befalls when that process passes that point the next time.
    pub fn set(&self, process: &str, point: &str, act: impl FnOnce() + Send + 'static) {
        let (process, point) = (process.to_owned(), point.to_owned());
        self.state().set.push(Trap { process, point, act: Box::new(act) });
    }

    /// A process passes a point.
    pub fn pass(&self, process: &str, point: &str) {
        let sprung = {
            let mut state = self.state();
            let is_it = |trap: &Trap| trap.process == process && trap.point == point;
            let Some(at) = state.set.iter().position(is_it) else { return };
            // If it is stopped it goes no further than to its next step.
            state.yields.insert(process.to_owned(), Duration::ZERO);
            state.set.remove(at)
        };
        (sprung.act)();
    }

    /// The process's next step at the store waits.
    pub fn stall(&self, process: &str, wait: Duration) {
        self.state().yields.insert(process.to_owned(), wait);
    }

    /// Whether the process is to give its turn away, this once, and how long it waits then.
    pub fn turn(&self, process: &str) -> Option<Duration> {
        let mut state = self.state();
        if state.yields.is_empty() { None } else { state.yields.remove(process) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
