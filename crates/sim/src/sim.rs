//! What all parts of one world share: time, randomness, the store, the books, the plan of faults.

use crate::check::Checks;
use crate::fault::Plan;
use crate::ledger::Ledger;
use crate::random::Random;
use crate::time::{self, Time, Wall};
use crate::trace::Trace;
use crate::trap::Traps;
use fencepost_core::guard::Guards;
use fencepost_core::hook::{HookVerdict, Hooks};
use fencepost_core::time::BootInstant;
use fencepost_engine::env::Env;
use fencepost_engine::wake::Wakes;
use fencepost_engine::{Cx, Settings};
use fencepost_server::render::Renderer;
use fencepost_store::{MemoryDb, Replica, Store, StoreClock, Way};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long the store leaves a session alone whose owner stands still.
pub const STORE_GUARD: Duration = Duration::from_secs(10);
/// What a process waits for a store that does not answer.
const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is set for a world.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub seed: u64,
    pub guards: Guards,
    pub is_loud: bool,
    /// Looks at the whole store after every so many commits.
    pub audit_every: u64,
}

/// The way of one process to the store.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreWeather {
    /// Milliseconds that a step takes at most.
    pub delay_ms: u64,
    /// It does not answer.
    pub is_cut: bool,
}

/// A world's common parts. Clones are the same.
#[derive(Clone)]
pub struct Sim {
    pub options: Options,
    pub time: Time,
    pub random: Random,
    pub trace: Trace,
    pub ledger: Ledger,
    pub plan: Plan,
    pub db: MemoryDb,
    pub store_wall: Wall,
    pub checks: Checks,
    pub traps: Traps,
    walls: Arc<Mutex<BTreeMap<String, Wall>>>,
    /// Percent at which boot-time clocks run that are not right.
    rates: Arc<Mutex<BTreeMap<String, u64>>>,
    standby: Arc<Mutex<Option<Replica>>>,
    weather: Arc<Mutex<BTreeMap<String, StoreWeather>>>,
    wakes: Arc<Mutex<BTreeMap<String, Wakes>>>,
}

impl Sim {
    /// A world around a store. Within a runtime with paused time.
    pub fn new(options: Options, db: MemoryDb) -> Self {
        let (time, random) = (Time::begin(), Random::of(options.seed));
        let trace = Trace::new(time, options.is_loud);
        let sim = Self {
            options,
            time,
            trace: trace.clone(),
            ledger: Ledger::new(time, trace.clone()),
            plan: Plan::default(),
            db: db.clone(),
            store_wall: Wall::new(time),
            checks: Checks::new(time, trace, options.audit_every, &db),
            traps: Traps::default(),
            random,
            walls: Arc::default(),
            rates: Arc::default(),
            standby: Arc::default(),
            weather: Arc::default(),
            wakes: Arc::default(),
        };
        sim.checks.look_with(sim.cx_of("audit", Hooks::none(), None));
        sim
    }

    /// The context of an incarnation of a process: its own memory, and the common store behind
    /// hooks and weather.
    pub fn cx(&self, process: &str, incarnation: u32) -> Cx {
        let name = format!("{process} {incarnation}");
        let cx = self.cx_of(&name, self.hooks(process), Some(self.way(process)));
        let wall = self.wall_of(process);
        let (sim, own) = (self.clone(), process.to_owned());
        let env = Env {
            wall: Arc::new(move || wall.now()),
            boottime: Arc::new(move || sim.boottime_of(&own)),
            ..cx.env.clone()
        };
        let cx = Cx { env, ..cx };
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        wakes.insert(process.to_owned(), cx.wakes.clone());
        cx
    }

    /// The wall clock of the host of a process. Nobody's decisions depend on it.
    pub fn wall_of(&self, process: &str) -> Wall {
        let mut walls = self.walls.lock().unwrap_or_else(PoisonError::into_inner);
        walls.entry(process.to_owned()).or_insert_with(|| Wall::new(self.time)).clone()
    }

    /// Lets the boot-time clock of a process's host run at so many percent of its speed.
    pub fn set_clock_rate(&self, process: &str, percent: u64) {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner).insert(process.into(), percent);
    }

    fn boottime_of(&self, process: &str) -> BootInstant {
        let rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let percent = rates.get(process).copied().unwrap_or(100);
        BootInstant::from_micros(self.time.boottime().as_micros() / 100 * percent.cast_signed())
    }

    /// The store's standby follows no further.
    pub fn lag(&self) {
        match self.db.replica() {
            Ok(replica) => {
                self.trace.note(|| "the standby lags".into());
                *self.standby.lock().unwrap_or_else(PoisonError::into_inner) = Some(replica);
            }
            Err(error) => self.trace.violate(format!("no standby: {error}")),
        }
    }

    /// The standby takes the store's place: what was committed since it lags is lost.
    pub fn fail_over(&self) {
        let standby = self.standby.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(replica) = standby else { return };
        self.trace.fault("failover", || format!("after {} commits", self.db.commits()));
        if let Err(error) = self.db.fail_over(replica) {
            self.trace.violate(format!("the store cannot fail over: {error}"));
        }
        self.checks.witness.forget();
        self.checks.audit("after the failover");
    }

    /// A context that passes no points and is never cut off: for people and checks.
    pub fn quiet_cx(&self, name: &str) -> Cx {
        let (sim, own) = (self.clone(), name.to_owned());
        let hooks = Hooks::new(move |point| {
            if let Some(op) = sim.committed(&own, point) {
                sim.hint(&own, op);
            }
            HookVerdict::Go
        });
        self.cx_of(name, hooks, None)
    }

    fn cx_of(&self, name: &str, hooks: Hooks, way: Option<Way>) -> Cx {
        let wall = self.store_wall.clone();
        let clock = StoreClock::new(move || wall.now());
        let store = Store::open_memory(&self.db, clock, hooks, way);
        let settings = Settings { guards: self.options.guards, ..Settings::default() };
        Cx::new(store, self.env(name), settings)
    }

    fn env(&self, name: &str) -> Env {
        let (time, wall, random) = (self.time, self.store_wall.clone(), self.random.fork(name));
        let (evaluate, value, render) = Renderer::without_keys().functions();
        Env {
            wall: Arc::new(move || wall.now()),
            boottime: Arc::new(move || time.boottime()),
            random: Arc::new(move || random.bits()),
            decode: Arc::new(|ir| fencepost_dagfile::from_ir(ir).map_err(|e| e.to_string())),
            evaluate,
            value,
            render,
        }
    }

    /// The hook points of a process.
    pub fn hooks(&self, process: &str) -> Hooks {
        let (sim, name) = (self.clone(), process.to_owned());
        Hooks::new(move |point| {
            sim.traps.pass(&name, point);
            // What is committed is seen, whatever becomes of its process here.
            let changed = sim.committed(&name, point);
            let verdict = sim.plan.pass(&name, point);
            sim.checks.races.pass(&name, point, verdict);
            if verdict != HookVerdict::Go {
                sim.trace.fault(kind(verdict), || format!("{name} at {point}"));
            }
            if let Some(op) = changed.filter(|_| verdict == HookVerdict::Go) {
                sim.hint(&name, op);
            }
            verdict
        })
    }

    /// After a commit the books are looked at; the operation, if it changed anything.
    fn committed<'a>(&self, process: &str, point: &'a str) -> Option<&'a str> {
        let op = point.strip_suffix(":after_commit")?;
        self.checks.after_commit(process, op).then_some(op)
    }

    /// What a notification of the store does: it may come late, or not at all.
    fn hint(&self, process: &str, op: &str) {
        const ENGINE: [&str; 6] = ["report", "trigger", "clear", "mark", "cancel", "settle"];
        const WORKERS: [&str; 6] =
            ["dispatch", "cancel", "clear", "mark", "kill_attempt", "time_out_runs"];
        let (engine, workers) = (ENGINE.contains(&op), WORKERS.contains(&op));
        if !(engine || workers) || self.random.chance(30) {
            return;
        }
        let wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        let others: Vec<Wakes> = wakes
            .iter()
            .filter(|(name, _)| *name != process)
            .map(|(_, wakes)| wakes.clone())
            .collect();
        drop(wakes);
        let wait = self.random.millis(1, 20);
        drop(tokio::spawn(async move {
            time::pause(wait).await;
            for wakes in others {
                if engine {
                    wakes.engine.notify_one();
                }
                if workers {
                    wakes.workers.notify_waiters();
                }
            }
        }));
    }

    /// Changes the way of a process to the store.
    pub fn set_store_weather(&self, process: &str, change: impl FnOnce(&mut StoreWeather)) {
        let mut weather = self.weather.lock().unwrap_or_else(PoisonError::into_inner);
        change(weather.entry(process.to_owned()).or_default());
    }

    fn way(&self, process: &str) -> Way {
        let (sim, name) = (self.clone(), process.to_owned());
        let random = self.random.fork(&format!("way of {process}"));
        Arc::new(move |_op| {
            let (sim, name, random) = (sim.clone(), name.clone(), random.clone());
            Box::pin(async move {
                if let Some(wait) = sim.traps.turn(&name) {
                    tokio::task::yield_now().await;
                    time::pause(wait).await;
                }
                let weather = sim.weather_of(&name);
                if weather.delay_ms > 0 {
                    time::pause(random.millis(0, weather.delay_ms)).await;
                }
                let given_up = Instant::now() + STORE_TIMEOUT;
                while sim.weather_of(&name).is_cut {
                    if Instant::now() >= given_up {
                        sim.checks.races.forget(&name);
                        return Err("the store does not answer".into());
                    }
                    time::pause(Duration::from_millis(500)).await;
                }
                Ok(())
            })
        })
    }

    fn weather_of(&self, process: &str) -> StoreWeather {
        let weather = self.weather.lock().unwrap_or_else(PoisonError::into_inner);
        weather.get(process).copied().unwrap_or_default()
    }
}

const fn kind(verdict: HookVerdict) -> &'static str {
    match verdict {
        HookVerdict::CommittedButUnknown => "committed_but_unknown",
        HookVerdict::Fail | HookVerdict::Go => "store_failed",
    }
}
