//! Two schedulers, two workers and a person at once on one PostgreSQL: what one process after the
//! other cannot show. Everybody works through a store of its own, as processes do.

use crate::world::{Desk, Faults, Machine, Place, Script, Worker, World, clears, exit, request};
use fencepost_core::state::RunState;
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::clear::{ClearRequest, clear};
use fencepost_engine::operations::pools::{self, PoolChange};
use fencepost_engine::operations::run_control::cancel;
use fencepost_engine::operations::trigger::trigger;
use fencepost_engine::reaper::Reaper;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::{Cx, Pass, doctor};
use fencepost_store::query::{dag, pool, run};
use fencepost_store::{StoreErrorKind, Tx};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const DAGS: [&str; 2] = [
    "
dag_id: wide
max_active_runs: 2
max_active_tasks: 7
tasks:
  a: {run: x, pool: p}
  m: {run: x, pool: p, pool_slots: 2, depends_on: [a], expand: {x: [1, 2, 3, 4, 5, 6]}}
  n: {run: x, depends_on: [a], max_active_tis_per_dag: 1, expand: {x: [1, 2, 3]}}
  z: {run: x, depends_on: [m, n]}
",
    "
dag_id: long
max_active_runs: 3
tasks:
  a: {run: x, pool: p}
  b: {run: x, pool: p, depends_on: [a]}
  c: {run: x, pool: p, depends_on: [b]}
",
];
const RUNS: usize = 8;

/// What is shared by all who work at once.
#[derive(Default)]
struct Scene {
    over: AtomicBool,
    /// (DAG, run, task, attempt) of each process.
    executed: Mutex<Vec<String>>,
    /// What must not be.
    wrong: Mutex<Vec<String>>,
}

impl Scene {
    /// Another one was in the way: it is tried again. Anything else is a failure of the test.
    fn forgive<T>(&self, result: Result<T, EngineError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(EngineError::Store(error)) if error.kind == StoreErrorKind::Contended => None,
            Err(EngineError::Refused(_)) => None,
            Err(error) => {
                self.blame(error.to_string());
                None
            }
        }
    }
    fn blame(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
        self.over.store(true, Ordering::Relaxed);
    }
    fn expect(&self, holds: bool, what: impl Fn() -> String) {
        if !holds {
            self.blame(what());
        }
    }
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

async fn schedule(cx: Cx, scene: Arc<Scene>) {
    let mut passes: [Box<dyn Pass>; 3] =
        [Box::new(Scheduler), Box::new(Dispatcher), Box::new(Reaper)];
    while !scene.is_over() {
        for pass in &mut passes {
            if let Some(report) = scene.forgive(pass.pass(&cx).await) {
                scene.expect(report.troubles.is_empty(), || report.troubles.join(", "));
            }
        }
        tokio::task::yield_now().await;
    }
}

async fn work(cx: Cx, name: &'static str, scene: Arc<Scene>) {
    let (mut worker, mut machine) = (Worker::new(name, &["default"], 5), Machine::default());
    let (faults, seen) = (Faults::default(), Arc::clone(&scene));
    let script: Script = Arc::new(move |what| {
        let task = format!("{}[{}]", what.task_id, what.map_index);
        let name = format!("{} {} {task} {}", what.dag_id, what.run_id, what.attempt);
        seen.executed.lock().unwrap().push(name);
        exit(0)
    });
    while !scene.is_over() {
        let mut desk = Desk { cx: &cx, machine: &mut machine, script: &script, faults: &faults };
        scene.forgive(worker.step(&mut desk).await);
        tokio::task::yield_now().await;
    }
}

/// Clears and cancels what runs, while it runs.
async fn meddle(cx: Cx, scene: Arc<Scene>) {
    for n in 0..24 {
        while scene.executed.lock().unwrap().len() < n * 2 && !scene.is_over() {
            if is_done(&cx, &scene).await {
                break;
            }
        }
        let (dag_id, run_id) = (["wide", "long"][n % 2], format!("r{}", (n * 3) % RUNS));
        if n % 8 == 7 {
            scene.forgive(cancel(&cx, dag_id, &run_id, false, "me").await);
            continue;
        }
        let task = if dag_id == "wide" { ["a", "m", "z"][n % 3] } else { "b" };
        let (tasks, downstream) = (vec![task.to_owned()], n % 4 == 0);
        let request = ClearRequest { tasks, downstream, ..clears(dag_id, &run_id) };
        scene.forgive(clear(&cx, &request).await);
    }
}

/// I14 in one snapshot of the store.
async fn check_limits(tx: &Tx, scene: &Scene) {
    for found in pool::list(tx).await.unwrap() {
        scene.expect(found.held <= found.slots, || format!("{found:?}"));
    }
    let active = pool::active(tx).await.unwrap();
    for row in dag::list(tx, "", 10).await.unwrap() {
        let name = &row.dag_id;
        let own = active.iter().filter(|a| a.dag_id == *name);
        let count: i64 = own.clone().map(|a| a.count).sum();
        scene.expect(count <= row.max_active_tasks, || format!("{name}: {count} tasks"));
        let is_n = |a: &&pool::Active| name == "wide" && a.task_index == 2;
        let of_n: i64 = own.filter(is_n).map(|a| a.count).sum();
        scene.expect(of_n <= 1, || format!("{of_n} of a task that may run once"));
        let runs = run::count_active(tx, name).await.unwrap();
        scene.expect(runs <= row.max_active_runs, || format!("{name}: {runs} runs"));
    }
}

async fn is_done(cx: &Cx, scene: &Scene) -> bool {
    let tx = cx.store.read("look").await.unwrap();
    check_limits(&tx, scene).await;
    for dag_id in ["wide", "long"] {
        for n in 0..RUNS {
            let run = run::get(&tx, dag_id, &format!("r{n}")).await.unwrap();
            if run.is_none_or(|run| matches!(run.state, RunState::Queued | RunState::Running)) {
                return false;
            }
        }
    }
    true
}

/// What went wrong.
async fn play(locks: bool, limit: Duration) -> Vec<String> {
    let world = World::at(Place::database(), &DAGS, World::settings(), 1).await;
    let change = PoolChange { slots: Some(4), description: None };
    pools::set(&world.cx, "p", &change, "me").await.unwrap();
    let scene = Arc::new(Scene::default());
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..2 {
        all.spawn(schedule(world.another(locks), Arc::clone(&scene)));
    }
    for name in ["one", "two"] {
        all.spawn(work(world.another(locks), name, Arc::clone(&scene)));
    }
    for n in 0..RUNS {
        for dag_id in ["wide", "long"] {
            trigger(&world.cx, request(dag_id, &format!("r{n}"))).await.unwrap();
        }
    }
    let person = tokio::spawn(meddle(world.another(locks), Arc::clone(&scene)));
    let ended = tokio::time::timeout(limit, async {
        // Clears open runs again: the person has to be through as well.
        while !(scene.is_over() || person.is_finished() && is_done(&world.cx, &scene).await) {
            tokio::task::yield_now().await;
        }
    });
    if ended.await.is_err() {
        scene.blame("not all runs came to their end".into());
    }
    scene.over.store(true, Ordering::Relaxed);
    person.await.unwrap();
    all.join_all().await;
    let executed = scene.executed.lock().unwrap().clone();
    let distinct: BTreeSet<&String> = executed.iter().collect();
    scene.expect(distinct.len() == executed.len(), || "one attempt was executed twice".into());
    if let Place::Database(database) = &world.place {
        let query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        let deadlocks = database.sql(query).unwrap();
        scene.expect(!locks || deadlocks.trim() == "0", || format!("{deadlocks} deadlocks"));
    }
    for found in doctor::examine(&world.cx).await.unwrap().violations {
        scene.blame(format!("{found:?}"));
    }
    scene.wrong.lock().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_all_at_once_exceed_no_limit_and_count_each_end_once() {
    let wrong = play(true, Duration::from_mins(4)).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The guard switched off: what is decided on is read without its lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_without_locks_all_at_once_break_something() {
    for _ in 0..10 {
        let wrong = play(false, Duration::from_secs(20)).await;
        if !wrong.is_empty() {
            return;
        }
    }
    panic!("nothing broke: the test above shows nothing");
}
