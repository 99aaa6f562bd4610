//! Two schedulers that come to the same thing in the same instant, on PostgreSQL: at each point of the
//! way, one of them does it.

use crate::world::{Place, World};
use fencepost_core::time::Span;
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::liveness::{Beat, renew};
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::{Cx, Pass};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const TWO: &str = "
dag_id: d
tasks:
  a: {run: x}
  b: {run: x, depends_on: [a]}
";
/// Where the first one is met by the second: before it reads, and with everything read and decided.
const POINTS: [&str; 6] = [
    "start_runs:begin",
    "start_runs:before_commit",
    "forward:begin",
    "forward:before_commit",
    "dispatch:begin",
    "dispatch:before_commit",
];

/// Both passes once, as far as the other one lets them.
async fn pass(cx: &Cx) {
    let mut passes: [Box<dyn Pass>; 2] = [Box::new(Scheduler), Box::new(Dispatcher)];
    for one in &mut passes {
        // Whoever waits for the other's locks gets them when both are done.
        let _ = tokio::time::timeout(Duration::from_millis(500), one.pass(cx)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_schedulers_that_meet_at_one_task_make_one_attempt_of_it() {
    for point in POINTS {
        let mut world = World::at(Place::database(), &[TWO], World::settings(), 1).await;
        world.settle().await;
        let met = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&met);
        let first = world.raced_cx(point, move |other| {
            count.fetch_add(1, Ordering::SeqCst);
            async move { pass(&other).await }
        });
        world.trigger("d", "r").await;
        for _ in 0..4 {
            pass(&first).await;
        }
        world.check().await;
        let attempts = world.attempts("d", "r", "a").await;
        assert_eq!(attempts.len(), 1, "{point}: {attempts:?}");
        assert_eq!(world.ti("d", "r", "a").await.try_number, 1, "{point}");
        assert!(met.load(Ordering::SeqCst) > 0, "nobody was met at {point}");
        world.finish().await;
        for task in ["a", "b"] {
            assert_eq!(world.outcomes("d", "r", task).await, "success none", "{point}");
        }
    }
}

/// I27: every connection of a role is taken by something slow, and its heart, which has one of its own,
/// beats on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heart_beats_though_every_connection_of_its_role_is_taken() {
    let mut world = World::at(Place::database(), &[TWO], World::settings(), 1).await;
    world.share(&["one"], 1).await;
    let job = world.workers[0].job.unwrap();
    let (role, heart) = (world.another(true), world.another(true));
    let mut taken = Vec::new();
    let patience = Duration::from_secs(2);
    while let Ok(tx) = tokio::time::timeout(patience, role.store.begin("slow")).await {
        taken.push(tx.unwrap());
    }
    assert!(taken.len() > 1, "{} connections", taken.len());
    let before = world.job(job).await.renew_seq;
    for n in 1..4 {
        let beat = Beat { job, seq: before + n, loop_age: Span::ZERO };
        renew(&heart, &[beat]).await.unwrap();
    }
    assert_eq!(world.job(job).await.renew_seq, before + 3);
}
