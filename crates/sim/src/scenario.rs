//! Small worlds: a few DAG files, a few things that a person or an accident does, one end.

mod accident;
mod guards;
mod leases;
mod list;

pub use accident::{Accident, Who};

use crate::check::{self, End, Seen};
use crate::sim::Sim;
use crate::time;
use crate::world::{Shape, World};
use fencepost_core::guard::Guard;
use fencepost_core::state::TiState;
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::clear::{ClearRequest, clear};
use fencepost_engine::operations::mark::{MarkRequest, mark};
use fencepost_engine::operations::run_control::cancel;
use fencepost_engine::operations::trigger::{TriggerRequest, trigger};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A small world.
#[derive(Clone)]
pub struct Scenario {
    pub name: &'static str,
    pub files: &'static [&'static str],
    /// Pools beside the default one.
    pub pools: &'static [(&'static str, i64)],
    pub shape: Shape,
    pub steps: Vec<Step>,
    /// One that is killed at any point costs no execution: it ends with the same starts.
    pub same_starts: bool,
    /// How attempts end when nothing else befalls: by task, `OUTCOME PAID EVIDENCE, ...`.
    pub ends: &'static [(&'static str, &'static str)],
    /// The longest that it may take, in simulated time.
    pub limit: Duration,
    pub points: Points,
    /// The guard without which it breaks a promise.
    pub shows: Option<Guard>,
}

/// At which of its points a small world is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    All,
    /// The first of each kind, and every so many-th of the others: it takes long.
    Some(u64),
    /// Its accidents hang on certain instants: one more would make it another world.
    None,
}

/// Something is done once something else holds.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    pub when: When,
    pub what: What,
}

/// What a step waits for.
#[derive(Debug, Clone, Copy)]
pub enum When {
    Now,
    /// So many seconds after the step before.
    After(u64),
    /// A process of that task runs.
    Runs(&'static str),
    /// So many have begun, and one runs.
    RunsAgain(&'static str, usize),
    /// A process of the world passes a point: at that very instant.
    At(&'static str, &'static str),
    /// The job of that process is declared lost.
    Lost(&'static str),
    /// Every run that exists is over, and there is one.
    Over,
}

/// What is done.
#[derive(Debug, Clone, Copy)]
pub enum What {
    Trigger(&'static str),
    Cancel(&'static str),
    Clear(&'static str, &'static [&'static str]),
    Mark(&'static str, &'static str, TiState),
    Befall(Accident),
}

/// All of them.
pub fn all() -> Vec<Scenario> {
    let mut all = list::all();
    all.extend(leases::all());
    all.extend(guards::all());
    all
}

const LOOK: Duration = Duration::from_millis(250);
/// How long what is left may take to be tidied up.
const TIDY: Duration = Duration::from_mins(3);

impl Scenario {
    /// Plays it to its end.
    pub async fn play(&self, sim: &Sim) -> Option<End> {
        let world = World::start(sim, self.shape, Duration::from_secs(1));
        let mut stage = Play::new(sim, &world, &self.steps);
        let (mut changes, mut seen) = (u64::MAX, Vec::new());
        while sim.time.elapsed() < self.limit {
            if sim.trace.is_violated() {
                return None;
            }
            if std::mem::replace(&mut changes, sim.db.changes()) != sim.db.changes() {
                seen = sim.checks.look().await.ok()?;
            }
            if stage.goes_on(&seen).await {
                continue;
            }
            if stage.is_through() && !seen.is_empty() && check::is_settled(&seen) {
                return tidy(sim, &world).await;
            }
            time::pause(LOOK).await;
        }
        let limit = self.limit;
        sim.trace.violate(format!("I24: after {limit:?} not every run is over or held"));
        None
    }

    /// Whether another server takes the store's place in it.
    pub fn fails_over(&self) -> bool {
        let is_failover =
            |step: &Step| matches!(step.what, What::Befall(Accident::Lag | Accident::Failover));
        self.steps.iter().any(is_failover)
    }

    /// What is otherwise than it is written, when nothing else befalls.
    pub fn check_ends(&self, end: &End) -> Vec<String> {
        let is_written = |(task, written): &&(&str, &str)| {
            let of_task = |key: &&String| key.ends_with(&format!("/{task}"));
            let found: Vec<&Vec<String>> =
                end.attempts.keys().filter(of_task).map(|key| &end.attempts[key]).collect();
            !found.is_empty() && found.iter().all(|ends| ends.join(", ") == *written)
        };
        let wrong = self.ends.iter().filter(|one| !is_written(one));
        wrong
            .map(|(task, written)| {
                format!("I10: {task} is to end as `{written}`, ended: {:?}", end.attempts)
            })
            .collect()
    }
}

/// How far a world has come.
struct Play<'a> {
    sim: &'a Sim,
    world: &'a World,
    left: std::slice::Iter<'a, Step>,
    next: Option<&'a Step>,
    /// When the last step was done.
    since: Duration,
    /// Of a step that waits for a point: whether that was passed.
    sprung: Option<Arc<AtomicBool>>,
    /// What was asked for and failed is asked for again at once.
    is_open: bool,
}

impl<'a> Play<'a> {
    fn new(sim: &'a Sim, world: &'a World, steps: &'a [Step]) -> Self {
        let mut left = steps.iter();
        let next = left.next();
        Self { sim, world, left, next, since: Duration::ZERO, sprung: None, is_open: false }
    }

    fn is_through(&self) -> bool {
        self.next.is_none()
    }

    /// Takes the next step, if it is due.
    async fn goes_on(&mut self, seen: &[Seen]) -> bool {
        let Some(step) = self.next else { return false };
        if let (When::At(process, point), What::Befall(accident)) = (step.when, step.what) {
            return self.lies_in_wait((process, point), accident);
        }
        if !self.is_open && !self.is_due(step.when, seen) {
            return false;
        }
        self.is_open = matches!(act(step.what, self.world).await, Err(EngineError::Store(_)));
        if !self.is_open {
            self.step();
        }
        true
    }

    fn step(&mut self) {
        (self.next, self.since, self.sprung) = (self.left.next(), self.sim.time.elapsed(), None);
    }

    /// Sets a trap, and goes on once it has sprung.
    fn lies_in_wait(&mut self, (process, point): (&str, &str), accident: Accident) -> bool {
        let Some(sprung) = &self.sprung else {
            let (sprung, world) = (Arc::new(AtomicBool::new(false)), self.world.clone());
            self.sprung = Some(Arc::clone(&sprung));
            self.sim.traps.set(process, point, move || {
                sprung.store(true, Ordering::SeqCst);
                accident.befall(&world);
            });
            return false;
        };
        let is_sprung = sprung.load(Ordering::SeqCst);
        if is_sprung {
            self.step();
        }
        is_sprung
    }

    fn is_due(&self, when: When, seen: &[Seen]) -> bool {
        let ledger = &self.sim.ledger;
        let runs = |task: &str| ledger.running().iter().any(|e| e.key.task == task);
        match when {
            When::Now => true,
            When::After(secs) => self.sim.time.elapsed() >= self.since + Duration::from_secs(secs),
            When::Runs(task) => runs(task),
            When::RunsAgain(task, times) => {
                let begun = ledger.executions().iter().filter(|e| e.key.task == task).count();
                begun >= times && runs(task)
            }
            When::At(..) => self.sprung.is_some(),
            When::Lost(process) => self.sim.checks.witness.has_lost(process),
            When::Over => !seen.is_empty() && seen.iter().all(|one| one.run.state.is_finished()),
        }
    }
}

/// Waits until nothing is left, and looks.
async fn tidy(sim: &Sim, world: &World) -> Option<End> {
    let until = sim.time.elapsed() + TIDY;
    let machines = world.machines();
    while machines.iter().any(|os| !os.left().is_empty()) && sim.time.elapsed() < until {
        time::pause(LOOK).await;
    }
    sim.checks.audit("at the end");
    let seen = sim.checks.look().await.ok()?;
    check::at_the_end(&seen, &sim.ledger, &machines, &sim.trace);
    Some(check::end(&seen, &sim.ledger))
}

async fn act(what: What, world: &World) -> Result<(), EngineError> {
    let cx = world.sim.quiet_cx("person");
    let by = || "me".to_owned();
    world.sim.trace.note(|| format!("somebody: {what:?}"));
    match what {
        What::Trigger(run) => {
            let (dag_id, run_id) = ("d".into(), Some(run.into()));
            let request = TriggerRequest { dag_id, run_id, by: by(), ..TriggerRequest::default() };
            trigger(&cx, request).await.map(drop)
        }
        What::Cancel(run) => cancel(&cx, "d", run, false, "me").await.map(drop),
        What::Clear(run, tasks) => {
            let tasks = tasks.iter().map(ToString::to_string).collect();
            let (dag_id, run_id) = ("d".into(), run.into());
            let request =
                ClearRequest { dag_id, run_id, tasks, by: by(), ..ClearRequest::default() };
            clear(&cx, &request).await.map(drop)
        }
        What::Mark(run, task, state) => {
            let request = MarkRequest {
                dag_id: "d".into(),
                run_id: run.into(),
                task_id: task.into(),
                map_index: None,
                state,
                dry_run: false,
                only_held: false,
                by: by(),
            };
            mark(&cx, &request).await.map(drop)
        }
        What::Befall(accident) => {
            accident.befall(world);
            Ok(())
        }
    }
}
