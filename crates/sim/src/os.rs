//! A simulated machine: attempts in memory that keep the promises of [`AttemptHost`].
//!
//! Directories outlive everything; locks are freed by the death of their holders; shims and the
//! processes of tasks outlive the worker and end with the machine. The kernel of the machine ends a
//! shim at the deadline of its page, whoever stands still meanwhile, and with the shim its tree
//! (level `pidns`). The decisions of a shim are the shipped ones (`shim::course`).
//!
//! [`AttemptHost`]: fencepost_worker::attempt::AttemptHost

mod attempts;
mod handles;
mod shim;

pub use attempts::SimHost;

use crate::ledger::Ledger;
use crate::random::Random;
use crate::sim::Sim;
use crate::time::Time;
use crate::trace::Trace;
use fencepost_core::guard::Guards;
use fencepost_worker::attempt::FromTask;
use fencepost_worker::outcome::{Outcome, Reason};
use fencepost_worker::page::{Lease, Phase};
use fencepost_worker::spec::{Level, ShimSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// A machine. Clones are the same one.
#[derive(Clone)]
pub struct Os(Arc<Machine>);

struct Machine {
    name: String,
    time: Time,
    trace: Trace,
    ledger: Ledger,
    random: Random,
    guards: Guards,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    boot: u64,
    /// How long a shim that is just spawned stands still.
    spawn_takes: Duration,
    dirs: BTreeMap<String, Dir>,
    archived: BTreeSet<String>,
    /// What was said of the ends of archived ones.
    reports: BTreeMap<String, Vec<u8>>,
    /// How often a worker has registered from here.
    registrations: u64,
    /// The highest epoch that was seen from here.
    epoch: u32,
}

/// The directory of an attempt.
struct Dir {
    spec: ShimSpec,
    script: String,
    files: BTreeMap<FromTask, Vec<u8>>,
    page: Page,
    lock: Lock,
    outcome: Option<Outcome>,
    level: Level,
    /// The boot during which it was made.
    boot: u64,
    /// The shim reads its page again, or is to die.
    changed: Arc<Notify>,
    /// The shim has ended.
    ended: Arc<Notify>,
    /// SIGKILL is on its way to the shim.
    killed: bool,
    /// The shim is stopped: only the kernel acts.
    stopped: bool,
}

/// Who holds the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    Free,
    /// A worker that prepares it, or proves that nothing is there.
    Worker,
    Shim,
}

#[derive(Debug, Clone, Copy)]
struct Page {
    phase: Phase,
    lease: Lease,
    generation: u64,
    stop: Option<(Reason, bool)>,
    started_at_ns: u64,
}

impl Os {
    /// A machine that has just started.
    pub fn new(name: &str, sim: &Sim) -> Self {
        Self(Arc::new(Machine {
            name: name.into(),
            time: sim.time,
            trace: sim.trace.clone(),
            ledger: sim.ledger.clone(),
            random: sim.random.fork(name),
            guards: sim.options.guards,
            state: Mutex::default(),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The id of this boot.
    pub fn boot_id(&self) -> String {
        format!("{}-boot-{}", self.0.name, self.state().boot)
    }

    /// Loses everything but its disk, and starts anew.
    pub fn reboot(&self) {
        let mut state = self.state();
        state.boot += 1;
        for dir in state.dirs.values_mut() {
            if dir.lock == Lock::Shim {
                dir.killed = true;
                dir.changed.notify_one();
            }
        }
    }

    /// Shims that are spawned from now on stand still for so long before they do anything.
    pub fn slow_shims(&self, wait: Duration) {
        self.state().spawn_takes = wait;
    }

    /// SIGKILL to the shim of one attempt, chosen by chance; false if none runs.
    pub fn kill_a_shim(&self) -> bool {
        self.a_shim(|dir| dir.killed = true)
    }

    /// SIGSTOP to the shim (and tree) of one attempt, chosen by chance; false if none runs.
    pub fn stop_a_shim(&self) -> bool {
        self.a_shim(|dir| dir.stopped = true)
    }

    fn a_shim(&self, act: impl FnOnce(&mut Dir)) -> bool {
        let mut state = self.state();
        let living: Vec<String> = state
            .dirs
            .iter()
            .filter(|(_, dir)| dir.lock == Lock::Shim)
            .map(|(name, _)| name.clone())
            .collect();
        if living.is_empty() {
            return false;
        }
        let name = &living[self.0.random.below(living.len())];
        if let Some(dir) = state.dirs.get_mut(name) {
            act(dir);
            dir.changed.notify_one();
        }
        true
    }

    /// SIGCONT to all.
    pub fn continue_shims(&self) {
        for dir in self.state().dirs.values_mut().filter(|dir| dir.stopped) {
            dir.stopped = false;
            dir.changed.notify_one();
        }
    }

    /// Names of attempts whose shims live.
    pub fn living(&self) -> Vec<String> {
        let state = self.state();
        let living = state.dirs.iter().filter(|(_, dir)| dir.lock == Lock::Shim);
        living.map(|(name, _)| name.clone()).collect()
    }

    /// Attempts that still have a directory.
    pub fn left(&self) -> Vec<String> {
        self.state().dirs.keys().cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
