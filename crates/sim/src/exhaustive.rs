//! Exhaustive crash points: a small world runs once to list every point that it passes; then once
//! more for every point, with the crash of its process there, and for every commit, with its answer
//! lost. Each time the promises hold, and the end is the same.

use crate::check::End;
use crate::fault::{Kind, Passage, Trip};
use crate::scenario::{Points, Scenario};
use crate::sim::{Options, STORE_GUARD, Sim};
use crate::trace::Found;
use crate::world;
use fencepost_core::time::Timestamp;
use fencepost_store::MemoryDb;
use std::collections::BTreeMap;

/// The end of one small world, and what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    pub end: Option<End>,
    pub found: Found,
    pub passages: Vec<Passage>,
    pub tripped: Option<Passage>,
    pub seconds: u64,
    pub executions: usize,
    pub kinds: BTreeMap<String, u64>,
}

/// A scenario with its prepared store: each world of it begins there.
pub struct Stage<'a> {
    scenario: &'a Scenario,
    options: Options,
    /// `None`: the store is made for each play, since it does not stay the same one.
    db: Option<MemoryDb>,
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(runtime.block_on(future))
}

/// Runs a future in a world's own runtime.
pub fn in_a_world<T>(future: impl Future<Output = T>) -> Result<T, String> {
    block_on(future)
}

impl<'a> Stage<'a> {
    /// Makes the store and loads the DAG files.
    pub fn new(scenario: &'a Scenario, options: Options) -> Result<Self, String> {
        let mut stage = Self { scenario, options, db: None };
        if !scenario.fails_over() {
            let db = stage.prepare()?;
            db.mark().map_err(|error| error.to_string())?;
            stage.db = Some(db);
        }
        Ok(stage)
    }

    fn prepare(&self) -> Result<MemoryDb, String> {
        let epoch = Timestamp::from_micros(0);
        let db = MemoryDb::new(epoch, STORE_GUARD).map_err(|error| error.to_string())?;
        let (files, pools) = (self.scenario.files, self.scenario.pools);
        block_on(async {
            let sim = Sim::new(self.options, db.clone());
            world::prepare(&sim, files, pools).await.map_err(|e| e.to_string())?;
            sim.trace.found().violations.into_iter().next().map_or(Ok(()), Err)
        })??;
        Ok(db)
    }

    /// Plays it once. What is written of the end of an undisturbed one is checked.
    pub fn play(&self, trip: Option<Trip>) -> Result<Played, String> {
        let db = self.db.clone().map_or_else(|| self.prepare(), Ok)?;
        let played = block_on(async {
            let sim = Sim::new(self.options, db.clone());
            sim.plan.arm(trip, trip.is_none());
            let end = self.scenario.play(&sim).await;
            if let Some(end) = end.as_ref().filter(|_| trip.is_none()) {
                for what in self.scenario.check_ends(end) {
                    sim.trace.violate(what);
                }
            }
            let found = sim.trace.found();
            Played {
                end: end.filter(|_| found.violations.is_empty()),
                found,
                passages: sim.plan.list(),
                tripped: sim.plan.tripped(),
                seconds: sim.time.elapsed().as_secs(),
                executions: sim.ledger.executions().len(),
                kinds: sim.checks.kinds().await.unwrap_or_default(),
            }
        })?;
        if let Some(db) = &self.db {
            db.reset().map_err(|error| error.to_string())?;
        }
        Ok(played)
    }

    /// The trips at which it is disturbed; with `stride` in the short form, where worlds that take long
    /// are not disturbed at all.
    pub fn trips(&self, passages: &[Passage], stride: Option<u64>) -> Vec<Trip> {
        match self.scenario.points {
            Points::All => trips(passages, stride),
            Points::Some(own) if stride.is_none() => trips(passages, Some(own)),
            Points::Some(_) | Points::None => Vec::new(),
        }
    }

    /// Compares the end of a disturbed world with the undisturbed one's.
    pub fn compare(&self, expected: &End, played: &Played) -> Vec<String> {
        let mut wrong = played.found.violations.clone();
        let Some(end) = &played.end else {
            if wrong.is_empty() {
                wrong.push("it has no end".into());
            }
            return wrong;
        };
        if end.runs != expected.runs {
            wrong.push(format!("ends as {:?}, undisturbed as {:?}", end.runs, expected.runs));
        }
        if self.scenario.same_starts && end.starts != expected.starts {
            let (found, usual) = (&end.starts, &expected.starts);
            wrong.push(format!("I10: executed {found:?}, undisturbed {usual:?}"));
        }
        wrong
    }
}

/// The trips of a list of passages. All of them; or, in the short form, the first at the edges of
/// each kind of transaction and at each step of a worker, some at the first statements of a kind,
/// and every `stride`-th of the others.
fn trips(passages: &[Passage], stride: Option<u64>) -> Vec<Trip> {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let mut out = Vec::new();
    for (at, passage) in (1_u64..).zip(passages) {
        let times = seen.entry(&passage.point).or_default();
        *times += 1;
        // Between two statements a crash leaves what one before the first statement leaves.
        let is_edge = ["begin", "commit"].iter().any(|edge| passage.point.ends_with(edge));
        let is_worker = passage.point.starts_with("worker:");
        let is_new = *times <= 1 && (is_edge || is_worker || at.is_multiple_of(3));
        if stride.is_some_and(|stride| !is_new && !at.is_multiple_of(stride)) {
            continue;
        }
        out.push(Trip { at, kind: Kind::Crash });
        if passage.point.ends_with(":before_commit") {
            out.push(Trip { at, kind: Kind::Unknown });
        }
    }
    out
}
