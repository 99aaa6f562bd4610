//! The engine: passes that keep everything moving, and operations that people and workers ask for.
//!
//! A pass takes no input: start-up, fail-over and the normal path are the same code, and there is
//! no recovery mode. Each loads what a plan of the core needs, applies its decisions by
//! compare-and-set in one transaction, and hints at what comes next after the commit. Operations
//! (trigger, clear, claim, report, ...) are the same shape, on behalf of a caller.
//!
//! Deliberately absent: SQL text, HTTP, clocks, randomness, files, processes.

pub mod assets;
pub mod callbacks;
pub mod catalog;
pub mod contention;
pub mod dispatcher;
pub mod doctor;
pub mod drive;
pub mod env;
pub mod error;
pub mod explain;
pub mod facts;
pub mod liveness;
pub mod log;
pub mod meters;
pub mod operations;
pub mod outbox;
pub mod reaper;
pub mod retention;
pub mod scheduler;
pub mod triggerer;
pub mod wake;

use catalog::Catalog;
use env::Env;
use error::EngineError;
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::time::{BootInstant, Span, Timestamp};
use fencepost_store::Store;
use liveness::Own;
use meters::Meters;
use std::sync::Arc;
use wake::Wakes;

/// Settings of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The longest that a pass waits before it looks again.
    pub scan_interval: Span,
    /// A claim that is not started for so long is taken back.
    pub start_timeout: Span,
    /// Attempts of one instance in a row that may end without having started.
    pub requeue_limit: u32,
    /// How often a job of this process beats.
    pub heartbeat_interval: Span,
    /// So many of the live workers silent at once are more likely one fault than many, in percent.
    pub mass_loss_percent: u32,
    /// Recovered work begins to start again with so many percent of a pool's slots a second.
    pub recovery_initial: u32,
    /// Most recovered starts a second and pool; `None`: the pool's slots.
    pub recovery_max_rate: Option<u32>,
    pub guards: Guards,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scan_interval: Span::from_secs(2),
            start_timeout: Span::from_secs(60),
            requeue_limit: 20,
            heartbeat_interval: Span::from_secs(5),
            mass_loss_percent: 50,
            recovery_initial: 10,
            recovery_max_rate: None,
            guards: Guards::all(),
        }
    }
}

/// What passes and operations work with. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cx {
    pub store: Store,
    pub env: Env,
    pub catalog: Arc<Catalog>,
    pub wakes: Wakes,
    pub settings: Settings,
    /// What this process counts.
    pub meters: Arc<Meters>,
    /// Who acts: a role with a lease of its own. `None` in standalone mode.
    pub own: Option<Arc<Own>>,
}

impl Cx {
    /// A context on an open store.
    pub fn new(store: Store, env: Env, settings: Settings) -> Self {
        let catalog = Arc::new(Catalog::new(env.clone()));
        let wakes = Wakes::of(&store);
        let meters = Arc::new(Meters::new());
        let store = meters.watch(&store);
        Self { store, env, catalog, wakes, settings, meters, own: None }
    }

    /// The same context for a job: every writing transaction asserts that its lease is not over.
    pub fn owned(mut self, own: Arc<Own>) -> Self {
        if self.settings.guards.on(Guard::OwnLease) {
            self.store = self.store.guarded(own.job_id, own.epoch);
        }
        self.own = Some(own);
        self
    }

    /// Who writes a line of the log: the role by its name, or just the scheduler.
    pub fn actor(&self) -> &str {
        self.own.as_ref().map_or(log::SCHEDULER, |own| own.actor.as_str())
    }
}

/// What a pass did, and when it is due again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Rows moved: 0 when there was nothing to do.
    pub moved: usize,
    /// The next instant at which a timer falls due, by the store's clock.
    pub next_due: Option<Timestamp>,
    /// Rows that could not be handled, with why; they do not stop the others.
    pub troubles: Vec<String>,
}

impl Report {
    /// Adds another report to this one.
    pub fn merge(&mut self, other: Self) {
        self.moved += other.moved;
        self.troubles.extend(other.troubles);
        self.next_due = match (self.next_due, other.next_due) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

/// A pass's share of a turn: one with very much to do goes on in the next turn, after the others had theirs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    until: BootInstant,
}

impl Share {
    const LONG: Span = Span::from_millis(500);

    pub(crate) fn of(cx: &Cx) -> Self {
        Self { until: (cx.env.boottime)().plus(Self::LONG) }
    }

    pub(crate) fn is_over(self, cx: &Cx) -> bool {
        (cx.env.boottime)() >= self.until
    }
}

/// A component that keeps something moving.
pub trait Pass: Send {
    /// Its name in logs and health.
    fn name(&self) -> &'static str;
    /// Whether it has nothing to do while the store is quiet ([`fencepost_store::query::look`]).
    fn rests(&self) -> bool {
        true
    }
    /// Looks, decides, applies; takes no input.
    fn pass<'a>(
        &'a mut self,
        cx: &'a Cx,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Report, EngineError>> + Send + 'a>>;
}
