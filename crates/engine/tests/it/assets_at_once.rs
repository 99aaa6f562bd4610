//! Schedulers and producers at once on PostgreSQL: each event is taken by one run, and none is stranded
//! between an emission that is not committed yet and a scheduler that looks (AC-76).

use crate::world::{Place, World, exit};
use fencepost_core::state::RunType;
use fencepost_engine::Pass;
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::assets::{Emit, emit};
use fencepost_engine::scheduler::Scheduler;
use fencepost_store::StoreErrorKind;
use fencepost_store::query::asset;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const FILES: [&str; 3] = [
    "dag_id: p\ntasks:\n  one: {run: x, outlets: [a, b]}\n",
    "dag_id: all\nschedule: {assets: [a, b]}\nmax_active_runs: 1000\ntasks: {t: {noop: true}}\n",
    "dag_id: any\nschedule: {assets: {any: [a, b]}}\nmax_active_runs: 1000\ntasks: {t: {noop: true}}\n",
];
const EMITTERS: usize = 3;
const EACH: usize = 20;

fn is_contended(error: &EngineError) -> bool {
    matches!(error, EngineError::Store(error) if error.kind == StoreErrorKind::Contended)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i7_events_are_taken_once_by_schedulers_at_once() {
    let mut world = World::at(Place::database(), &FILES, World::settings(), 1).await;
    world.script(|_| exit(0));
    let over = Arc::new(AtomicBool::new(false));
    let mut schedulers = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let (cx, over) = (world.another(true), Arc::clone(&over));
        schedulers.spawn(async move {
            while !over.load(Ordering::Relaxed) {
                if let Err(error) = Scheduler.pass(&cx).await {
                    assert!(is_contended(&error), "{error}");
                }
                tokio::task::yield_now().await;
            }
        });
    }
    let mut emitters = tokio::task::JoinSet::new();
    for n in 0..EMITTERS {
        let cx = world.another(true);
        emitters.spawn(async move {
            for i in 0..EACH {
                let name = if (n + i) % 2 == 0 { "a" } else { "b" };
                let request =
                    Emit { asset: name.into(), extra: serde_json::json!({}), by: "me".into() };
                emit(&cx, request).await.unwrap();
            }
        });
    }
    emitters.join_all().await;
    over.store(true, Ordering::Relaxed);
    schedulers.join_all().await;
    world.finish().await;
    let tx = world.cx.store.read("test").await.unwrap();
    let mut times: BTreeMap<(String, i64), usize> = BTreeMap::new();
    for run in world.all_runs().await {
        assert_eq!(run.run_type, RunType::AssetTriggered);
        let events = asset::of_run(&tx, run.run_pk, 1_000).await.unwrap();
        assert!(!events.is_empty(), "{} took nothing", run.run_id);
        for event in events {
            *times.entry((run.dag_id.clone(), event.event_pk)).or_default() += 1;
        }
    }
    assert!(times.values().all(|n| *n == 1), "{times:?}");
    let left: i64 = asset::queued(&tx, "all").await.unwrap().iter().map(|one| one.count).sum();
    assert_eq!(asset::queued(&tx, "any").await.unwrap(), []);
    // `all` may still wait for the other one of a pair.
    let of = |dag: &str| times.keys().filter(|(of, _)| of == dag).count();
    let of_all = of("all") + usize::try_from(left).unwrap();
    assert_eq!((of("any"), of_all), (EMITTERS * EACH, EMITTERS * EACH));
    assert!(asset::queued(&tx, "all").await.unwrap().len() <= 1);
}
