//! Small worlds: a few DAG files, a few things that a person or an accident does, one end.

mod list;

pub use list::all;

use crate::check::{self, End, Seen};
use crate::sim::Sim;
use crate::time;
use crate::world::{Shape, World};
use fencepost_core::state::TiState;
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::clear::{ClearRequest, clear};
use fencepost_engine::operations::mark::{MarkRequest, mark};
use fencepost_engine::operations::run_control::cancel;
use fencepost_engine::operations::trigger::{TriggerRequest, trigger};
use std::time::Duration;

/// A small world.
pub struct Scenario {
    pub name: &'static str,
    pub files: &'static [&'static str],
    /// Pools beside the default one.
    pub pools: &'static [(&'static str, i64)],
    pub shape: Shape,
    pub steps: Vec<Step>,
    /// One that is killed at any point costs no execution: it ends with the same starts.
    pub same_starts: bool,
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
    /// A process of that task runs.
    Runs(&'static str),
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

/// What goes wrong, to the one of that number.
#[derive(Debug, Clone, Copy)]
pub enum Accident {
    /// SIGKILL; it is started again.
    CrashWorker(usize),
    CrashScheduler(usize),
    CrashServer(usize),
    /// SIGKILL to the shim of what runs there.
    KillShim(usize),
    /// The worker's machine starts anew.
    Reboot(usize),
    /// SIGTERM: a restart in order.
    Restart(usize),
}

/// The longest that a small world may take, in simulated time.
const LIMIT: Duration = Duration::from_hours(12);
/// How long what is left may take to be tidied up.
const TIDY: Duration = Duration::from_mins(3);
const LOOK: Duration = Duration::from_millis(250);

impl Scenario {
    /// Plays it to its end.
    pub async fn play(&self, sim: &Sim) -> Option<End> {
        let world = World::start(sim, self.shape, Duration::from_secs(1));
        let mut steps = self.steps.iter();
        let mut next = steps.next();
        // What was asked for and failed is asked for again at once.
        let mut is_open = false;
        let (mut changes, mut seen) = (u64::MAX, Vec::new());
        while sim.time.elapsed() < LIMIT {
            if sim.trace.is_violated() {
                return None;
            }
            if std::mem::replace(&mut changes, sim.db.changes()) != sim.db.changes() {
                seen = sim.checks.look().await.ok()?;
            }
            match next {
                Some(step) if is_open || is_due(step.when, sim, &seen) => {
                    is_open = matches!(act(step.what, &world).await, Err(EngineError::Store(_)));
                    if !is_open {
                        next = steps.next();
                    }
                }
                None if !seen.is_empty() && check::is_settled(&seen) => {
                    return tidy(sim, &world).await;
                }
                Some(_) | None => time::pause(LOOK).await,
            }
        }
        sim.trace.violate(format!("I24: after {LIMIT:?} not every run is over or held"));
        None
    }
}

fn is_due(when: When, sim: &Sim, seen: &[Seen]) -> bool {
    match when {
        When::Now => true,
        When::Runs(task) => sim.ledger.running().iter().any(|e| e.key.task == task),
        When::Over => !seen.is_empty() && seen.iter().all(|one| one.run.state.is_finished()),
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
                by: by(),
            };
            mark(&cx, &request).await.map(drop)
        }
        What::Befall(accident) => {
            befall(accident, world);
            Ok(())
        }
    }
}

fn befall(what: Accident, world: &World) {
    let restart = Duration::from_secs(1);
    match what {
        Accident::CrashWorker(n) => world.workers[n].process.crash(restart),
        Accident::CrashScheduler(n) => world.schedulers[n].crash(restart),
        Accident::CrashServer(n) => world.servers[n].crash(restart),
        Accident::KillShim(n) => drop(world.workers[n].os.kill_a_shim()),
        Accident::Reboot(n) => {
            world.workers[n].process.crash(Duration::from_secs(20));
            world.workers[n].os.reboot();
        }
        Accident::Restart(n) => drop(world.workers[n].stop.send(true)),
    }
}
