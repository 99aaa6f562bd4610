//! Worlds: who is there, what may go wrong, how long it lasts.

mod list;

pub use list::{all, find};

use crate::fault::{Faults, Late};
use crate::scheduler;
use crate::state::{Home, Life, Outage, Scheduler, State, Store, TiRow, Way, Witness, Worker};
use crate::tick;
use crate::worker;
use fencepost_core::dag::{Action, Task};
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::id::TaskId;
use fencepost_core::lease::Lease;
use fencepost_core::liveness::{Observer, ObserverSettings};
use fencepost_core::state::TiState;
use fencepost_core::time::Span;

/// A small installation and its bounds.
#[derive(Debug, Clone)]
pub struct World {
    pub name: &'static str,
    /// The guards that it shows the need of.
    pub shows: &'static [(Guard, &'static str)],
    pub guards: Guards,
    /// Seconds after which nothing is looked at any more.
    pub horizon: u8,
    pub schedulers: usize,
    /// The home of each place for a worker process.
    pub homes: &'static [u8],
    /// Places in which a process acts from the beginning.
    pub acting: usize,
    pub tis: usize,
    /// Slots of the pool.
    pub pool: i64,
    /// Attempts that a worker takes.
    pub capacity: usize,
    pub faults: Faults,
    pub late: Late,
    /// A shim takes its time between its fork and its page.
    pub slow_shims: bool,
    /// Tasks may come to an end by themselves.
    pub tasks_end: bool,
    /// A process may start in the home of one that stands still.
    pub rivals: bool,
    /// Schedulers' clocks run at twice the speed.
    pub fast_clock: bool,
    pub start_timeout: Option<u8>,
    pub requeue_limit: u8,
    /// It is of the long form only.
    pub is_long: bool,
    pub lease: Lease,
    pub task: Task,
}

/// Before the first step this much has passed in peace: observers have seen everybody.
const PEACE: u8 = 2;

const fn secs(secs: i64) -> Span {
    Span::from_secs(secs)
}

impl World {
    /// Two schedulers, two workers, one instance, and nothing that goes wrong.
    fn peaceful(name: &'static str) -> Option<Self> {
        let task = Task::with_defaults(TaskId::new("t").ok()?, Action::Noop).ok()?;
        Some(Self {
            name,
            shows: &[],
            guards: Guards::all(),
            horizon: PEACE + 5,
            schedulers: 2,
            homes: &[0, 1],
            acting: 2,
            tis: 1,
            pool: 1,
            capacity: 1,
            faults: Faults::default(),
            late: Late::NONE,
            slow_shims: false,
            tasks_end: true,
            rivals: false,
            fast_clock: false,
            start_timeout: None,
            requeue_limit: 5,
            is_long: false,
            lease: Lease {
                lease_ttl: secs(4),
                heartbeat_interval: secs(1),
                self_fence: secs(3),
                kill_grace: Span::ZERO,
                margin: secs(1),
            },
            task,
        })
    }

    /// The same world without a guard.
    pub fn without(&self, guard: Guard) -> Self {
        Self { guards: self.guards.without(guard), ..self.clone() }
    }

    pub(crate) fn lease_ticks(&self) -> u8 {
        u8::try_from(self.lease.lease_ttl.as_secs()).unwrap_or(u8::MAX)
    }

    pub(crate) const fn observer(&self) -> ObserverSettings {
        ObserverSettings {
            scan_interval: secs(1),
            heartbeat_interval: self.lease.heartbeat_interval,
            mass_loss_percent: 50,
            guards: self.guards,
        }
    }

    /// Everybody has registered, and has been seen for a while.
    pub fn beginning(&self) -> State {
        let homes = self.homes.iter().max().map_or(0, |home| usize::from(*home) + 1);
        let ti = TiRow {
            state: TiState::Scheduled,
            token: None,
            attempts: 0,
            infra_losses: 0,
            single_deaths: 0,
            requeues: 0,
            ends: 0,
        };
        let home = Home { registrations: 0, epoch: 1, shims: Vec::new(), archived: Vec::new() };
        let mut state = State {
            now: 0,
            clock_offset: 0,
            server: 1,
            outage: Outage::None,
            store: Store {
                epoch: 1,
                reconciled: 1,
                epoch_at: None,
                server: 1,
                counter: 0,
                jobs: Vec::new(),
                attempts: Vec::new(),
                tis: vec![ti; self.tis],
                registrations: vec![0; homes],
            },
            standby: None,
            schedulers: vec![self.nobody(); self.schedulers],
            workers: self.homes.iter().map(|home| Worker::nobody(*home)).collect(),
            homes: vec![home; homes],
            letters: Vec::new(),
            claim: None,
            next_job: 0,
            server_seq: 0,
            faults: self.faults,
            witness: Witness::default(),
        };
        for number in (0_u8..).take(self.schedulers) {
            scheduler::join(&mut state, number);
        }
        for slot in (0_u8..).take(self.acting) {
            worker::join(self, &mut state, slot);
            worker::register(self, &mut state, slot, Way::Straight);
        }
        for _ in 0..PEACE {
            tick::tick(self, &mut state);
        }
        state
    }

    fn nobody(&self) -> Scheduler {
        Scheduler {
            life: Life::Alive,
            job: None,
            epoch: 0,
            seq: 0,
            observer: Observer::new(self.observer()),
            expired: Vec::new(),
            observed: Span::ZERO,
            intent: None,
        }
    }
}
