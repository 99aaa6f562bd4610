//! Random worlds: several of each role under crashes, pauses, partitions, lost, doubled and late
//! messages, clock steps and store outages, with people who want things; then the faults stop, and
//! every run ends or is held within a bound.

mod coverage;
mod nemesis;
mod people;

use crate::check::{self, Seen};
use crate::exhaustive::in_a_world;
use crate::fault::Chance;
use crate::net::Weather;
use crate::random::Random;
use crate::sim::{Options, STORE_GUARD, Sim, StoreWeather};
use crate::time;
use crate::trace::Found;
use crate::world::{self, Shape, World};
use fencepost_core::state::TiState;
use fencepost_core::time::Timestamp;
use fencepost_store::MemoryDb;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long things go wrong.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub shape: Shape,
    pub minutes: u64,
    /// The store fails over too, and loses its last commits.
    pub fails_over: bool,
}

impl Default for Plan {
    fn default() -> Self {
        let shape = Shape { schedulers: 2, servers: 2, workers: 3, slots: 4, worker_ttl: 60 };
        Self { shape, minutes: 20, fails_over: false }
    }
}

/// Once faults have stopped, every run ends or is held within this. Retry delays, time-outs and
/// the watchdogs of a few lost claims in a row fit into it many times.
const COMES_TO_REST: Duration = Duration::from_hours(4);
const LOOK: Duration = Duration::from_secs(5);

const POOLS: &[(&str, i64)] = &[("small", 3)];
const FILES: &[&str] = &[
    "
dag_id: d
max_active_runs: 3
dagrun_timeout: 6h
default_args: {retries: 1, retry_delay: 30s, infra_retries: 50}
tasks:
  a: {run: for=3}
  m: {run: for=12, depends_on: [a], expand: {x: [1, 2, 3]}, pool: small, max_active_tis_per_dagrun: 2}
  n: {noop: true, depends_on: [m], trigger_rule: all_done}
  s: {run: for=40 term=ignore, depends_on: [a], pool: small, pool_slots: 2, kill_grace: 5s}
  z: {run: for=2, depends_on: [n, s], trigger_rule: none_failed_min_one_success}
",
    "
dag_id: e
default_args: {infra_retries: 50}
tasks:
  t: {run: for=20 fail_tries=1, retries: 2, retry_delay: 10s, max_active_tis_per_dag: 2}
  u: {run: for=90, depends_on: [t]}
  k: {run: stay=9, execution_timeout: 45s}
",
    "
dag_id: p
schedule: {every: 5m}
start_date: 2026-02-28T23:30:00Z
end_date: 2026-03-01T00:30:00Z
catchup: true
max_active_runs: 2
default_args: {infra_retries: 50}
tasks:
  p: {run: for=5, depends_on_past: true}
  q: {run: for=1 exit=99, depends_on: [p]}
",
    "
dag_id: h
default_args: {infra_retries: 50}
tasks:
  t: {run: for=60, on_lost: hold}
  u: {run: for=90, replace: after_confirmed_dead}
",
];

/// What one random world left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Played {
    pub found: Found,
    pub kinds: BTreeMap<String, u64>,
    pub seconds: u64,
    pub executions: u64,
    pub finished: u64,
    pub commits: u64,
}

/// Plays the world of a seed.
pub fn play(options: Options, plan: Plan) -> Result<Played, String> {
    let epoch = Timestamp::from_micros(0);
    let db = MemoryDb::new(epoch, STORE_GUARD).map_err(|error| error.to_string())?;
    in_a_world(async {
        let sim = Sim::new(options, db);
        world::prepare(&sim, FILES, POOLS).await.map_err(|error| error.to_string())?;
        watch_limits(&sim);
        let world = World::start(&sim, plan.shape, Duration::from_secs(2));
        disturb(&sim, &world, plan).await;
        heal(&sim, &world);
        let seen = rest(&sim, &world).await;
        coverage::of(&sim, &seen);
        let over = |ti: &TiState| ti.is_finished();
        let tis = seen.iter().flat_map(|one| &one.tis).filter(|(ti, _)| over(&ti.state));
        Ok(Played {
            kinds: sim.checks.kinds().await.unwrap_or_default(),
            seconds: sim.time.elapsed().as_secs(),
            executions: sim.ledger.executions().len() as u64,
            finished: tis.count() as u64,
            commits: sim.checks.commits(),
            found: sim.trace.found(),
        })
    })?
}

fn watch_limits(sim: &Sim) {
    sim.ledger.watch_runs("d", 3);
    sim.ledger.watch_runs("p", 2);
    sim.ledger.watch_instances("e", "t", 2);
    sim.ledger.watch_pool("small", 3);
    sim.ledger.watch_task("d", "m", "small", 1);
    sim.ledger.watch_task("d", "s", "small", 2);
}

async fn disturb(sim: &Sim, world: &World, plan: Plan) {
    let lasts = Duration::from_mins(plan.minutes);
    let random = sim.random.fork("nemesis");
    let gentle = random.chance(150);
    if !gentle {
        sim.plan.by_chance(Some(chance(sim, &random)));
        for process in world.processes() {
            let most = [0, 2, 8][random.below(3)];
            sim.set_store_weather(process.name(), |weather| weather.delay_ms = most);
        }
    }
    let mut people = people::People::new(sim);
    while sim.time.elapsed() < lasts && !sim.trace.is_violated() {
        time::pause(random.millis(500, 20_000)).await;
        if random.chance(400) {
            people.want().await;
        }
        if !gentle {
            nemesis::strike(world, &random, plan.fails_over);
        }
    }
}

/// Failures at points: many in some worlds, few in others, where leases have time to run out.
fn chance(sim: &Sim, random: &Random) -> Chance {
    let many = if random.chance(250) { 8 } else { 1 };
    let points = sim.random.fork("points");
    Chance { random: points, fail: 12 * many, unknown: 200 * many, crash: 6 * many }
}

/// Everything is well again.
fn heal(sim: &Sim, world: &World) {
    sim.trace.note(|| "faults stop".into());
    sim.plan.by_chance(None);
    sim.store_wall.set_right();
    for process in world.processes() {
        process.set_paused(false);
        process.up();
        sim.wall_of(process.name()).set_right();
        sim.set_store_weather(process.name(), |weather| *weather = StoreWeather::default());
    }
    for worker in &world.workers {
        worker.net.set(|weather| *weather = Weather::default());
        worker.os.continue_shims();
        worker.os.slow_shims(Duration::ZERO);
    }
}

async fn rest(sim: &Sim, world: &World) -> Vec<Seen> {
    let until = sim.time.elapsed() + COMES_TO_REST;
    let (mut changes, mut seen) = (u64::MAX, Vec::new());
    while !sim.trace.is_violated() {
        if std::mem::replace(&mut changes, sim.db.changes()) != sim.db.changes() {
            seen = sim.checks.look().await.unwrap_or_default();
        }
        let is_tidy = world.machines().iter().all(|os| os.left().is_empty());
        if check::is_settled(&seen) && is_tidy {
            break;
        }
        if sim.time.elapsed() > until {
            let is_stuck = |one: &&Seen| {
                !check::is_settled(std::slice::from_ref(one))
                    && !check::waits_for_the_held(one, &seen)
            };
            for one in seen.iter().filter(is_stuck) {
                let open = one.tis.iter().filter(|(ti, _)| !ti.state.is_finished());
                let list: Vec<String> =
                    open.map(|(ti, _)| format!("{} {}", ti.task_id, ti.state)).collect();
                let (dag, run) = (&one.run.dag_id, &one.run.run_id);
                let owners = sim.checks.owners(one).await.unwrap_or_default();
                let what = format!("I24: {dag}/{run} is {} with {list:?}", one.run.state);
                let after = format!("{COMES_TO_REST:?} after the faults");
                sim.trace.violate(format!("{what}, {after}; {}", owners.join(", ")));
            }
            break;
        }
        time::pause(LOOK).await;
    }
    if !sim.trace.is_violated() {
        sim.checks.audit("at the end");
        check::at_the_end(&seen, &sim.ledger, &world.machines(), &sim.trace);
    }
    seen
}
