//! Schedulers that come to the same slot at once, on PostgreSQL: each slot has one run, with one line in
//! the log, and nobody sees an error (I17, I31).

use crate::world::{Place, World};
use fencepost_core::time::Span;
use fencepost_engine::Pass;
use fencepost_engine::error::EngineError;
use fencepost_engine::scheduler::Scheduler;
use fencepost_store::query::listing::events::{self, EventFilter};
use std::collections::BTreeMap;

const DAGS: usize = 6;
const HOURS: usize = 8;
/// The slots that are due when the world begins.
const BEFORE: usize = 3;

fn hourly(n: usize) -> String {
    format!(
        "
dag_id: d{n}
schedule: '@hourly'
start_date: 2026-02-28T22:00:00Z
catchup: true
max_active_runs: 1
tasks:
  t: {{run: x}}
"
    )
}

/// How often each run was made, by the log; and the number of runs.
async fn made(world: &World) -> (BTreeMap<String, usize>, usize) {
    let tx = world.cx.store.read("look").await.unwrap();
    let filter = EventFilter { kinds: ",run_created,".into(), ..EventFilter::default() };
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for line in events::page(&tx, 0, &filter, 10_000).await.unwrap() {
        let (dag, run) = (line.dag_id.unwrap(), line.run_id.unwrap());
        *count.entry(format!("{dag} {run}")).or_default() += 1;
    }
    drop(tx);
    (count, world.all_runs().await.len())
}

async fn each_slot_has_one_run(locks: bool) {
    let files: Vec<String> = (0..DAGS).map(hourly).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let world = World::at(Place::database(), &files, World::settings(), 1).await;
    let schedulers: Vec<_> = (0..3).map(|_| world.another(locks)).collect();
    for hour in 0..=HOURS {
        // All of them wake up for the same slots.
        let mut all = tokio::task::JoinSet::new();
        for cx in &schedulers {
            let cx = cx.clone();
            all.spawn(async move { Scheduler.pass(&cx).await });
        }
        for report in all.join_all().await {
            match report {
                Ok(report) => assert!(report.troubles.is_empty(), "{:?}", report.troubles),
                // Starting the runs needs its locks.
                Err(EngineError::Store(error)) if !locks && error.op == "start_runs" => {}
                Err(error) => panic!("{error}"),
            }
        }
        let (count, runs) = made(&world).await;
        assert_eq!(runs, DAGS * (BEFORE + hour), "locks: {locks}, hour {hour}");
        assert_eq!(count.len(), runs);
        assert!(count.values().all(|times| *times == 1), "{count:?}");
        world.pass_time(Span::from_hours(1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i17_schedulers_at_once_make_one_run_of_each_slot() {
    each_slot_has_one_run(true).await;
}

/// The lock spares the work; what keeps the promise is the place's compare-and-set and the run's id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i17_without_the_lock_one_run_of_each_slot_is_made_all_the_same() {
    each_slot_has_one_run(false).await;
}
