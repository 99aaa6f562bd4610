//! Schedulers that come to one backfill and to the slots of its DAG at once, on PostgreSQL: no limit is
//! exceeded at any instant, and each slot has one run (I14, I17).

use crate::world::{Place, World, backfills};
use fencepost_core::state::{BackfillState, RunState};
use fencepost_core::time::Span;
use fencepost_engine::Pass;
use fencepost_engine::operations::backfill::{self, BackfillRequest};
use fencepost_engine::scheduler::Scheduler;
use std::collections::BTreeSet;

fn hourly(overlap: &str) -> String {
    format!(
        "
dag_id: d
schedule: '@hourly'
start_date: 2026-02-28T12:00:00Z
catchup: true
max_active_runs: 2
overlap: {overlap}
tasks:
  t: {{run: x}}
"
    )
}

async fn limits_hold(world: &World, overlap: &str) {
    let runs = world.all_runs().await;
    let running = |of_backfill: bool| {
        let own = runs.iter().filter(|run| run.backfill_pk.is_some() == of_backfill);
        own.filter(|run| run.state == RunState::Running).count()
    };
    assert!(running(false) <= 2 && running(true) <= 3, "{overlap}: {} runs", runs.len());
    let kept = runs.iter().filter(|run| run.state != RunState::Missed);
    let dates: Vec<_> = kept.map(|run| run.logical_date).collect();
    let each: BTreeSet<_> = dates.iter().collect();
    assert_eq!(each.len(), dates.len(), "{overlap}: a slot has two runs");
}

async fn all_at_once(overlap: &str) {
    let text = hourly(overlap);
    let mut world = World::at(Place::database(), &[&text], World::settings(), 1).await;
    let schedulers: Vec<_> = (0..3).map(|_| world.another(true)).collect();
    let request = backfills("d", "2026-02-28T12:00:00Z", "2026-02-28T23:00:00Z");
    let request = BackfillRequest { max_active_runs: 3, ..request };
    backfill::create(&world.cx, &request).await.unwrap();
    let mut rounds = 0;
    while world.backfills().await[0].state != BackfillState::Completed {
        let mut all = tokio::task::JoinSet::new();
        for cx in &schedulers {
            let cx = cx.clone();
            all.spawn(async move { Scheduler.pass(&cx).await });
        }
        for report in all.join_all().await {
            let report = report.unwrap_or_else(|error| panic!("{overlap}: {error}"));
            assert!(report.troubles.is_empty(), "{:?}", report.troubles);
        }
        limits_hold(&world, overlap).await;
        world.turn().await;
        limits_hold(&world, overlap).await;
        world.pass_time(Span::from_mins(10));
        rounds += 1;
        assert!(rounds < 100, "{overlap}: it never ends");
    }
    world.finish().await;
    limits_hold(&world, overlap).await;
    // The twelve hours of the range, and what the clock has passed since: none is left out.
    let runs = world.all_runs().await;
    let dates: BTreeSet<_> = runs.iter().map(|run| run.logical_date).collect();
    let hours = world.now().since("2026-02-28T12:00:00Z".parse().unwrap()).as_secs() / 3_600 + 1;
    assert_eq!(i64::try_from(dates.len()).unwrap(), hours, "{overlap}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schedulers_at_once_exceed_no_limit_of_a_backfill_and_run_each_slot_once() {
    for overlap in ["queue", "latest", "replace"] {
        all_at_once(overlap).await;
    }
}
