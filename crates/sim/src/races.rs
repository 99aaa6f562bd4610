//! Races that leave no row: a declaration that began and found that it came too late.

use crate::trace::Trace;
use fencepost_core::hook::HookVerdict;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The races of a world. Clones are the same.
#[derive(Clone)]
pub struct Races {
    trace: Trace,
    /// Processes whose declaration has run, and is not committed.
    declaring: Arc<Mutex<BTreeSet<String>>>,
}

impl Races {
    pub fn new(trace: Trace) -> Self {
        Self { trace, declaring: Arc::default() }
    }

    /// A process passes a point.
    pub fn pass(&self, process: &str, point: &str, verdict: HookVerdict) {
        if verdict == HookVerdict::Fail {
            return self.forget(process);
        }
        match point {
            "declare:lease_declare" => drop(self.declaring().insert(process.to_owned())),
            "declare:incident_open" | "register:begin" => self.forget(process),
            // The pass went on without having declared anything.
            "declare:begin" | "look_for_departed:begin" if self.declaring().remove(process) => {
                self.trace.mark("declare_lost_the_race");
            }
            _ => {}
        }
    }

    /// Its store failed: nothing can be said.
    pub fn forget(&self, process: &str) {
        self.declaring().remove(process);
    }

    fn declaring(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.declaring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
