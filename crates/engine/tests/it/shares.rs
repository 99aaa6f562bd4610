//! One with very much to do leaves the others their share: of a turn, and of what is given out.

use crate::world::{SCAN, TTL, World, declare, stay};
use fencepost_core::state::TiState;
use fencepost_core::time::{BootInstant, Span};
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::liveness::Watch;
use fencepost_engine::operations::pools::{self, PoolChange};
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::{Cx, Pass};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Instances: more than a page of a recovery, and than a batch of the dispatcher.
const MANY: usize = 1_100;

fn wide() -> String {
    let list: Vec<String> = (0..MANY).map(|n| n.to_string()).collect();
    format!(
        "
dag_id: wide
max_active_tasks: 5000
default_args: {{pool: big}}
tasks:
  t: {{run: x, expand: {{x: [{}]}}}}
",
        list.join(", ")
    )
}

const OTHER: &str = "
dag_id: other
default_args: {pool: big}
tasks:
  t: {run: x}
";

/// The same context on a machine so slow that each look at the clock takes a second.
fn slow(cx: &Cx) -> Cx {
    let (mut cx, micros) = (cx.clone(), AtomicI64::new((cx.env.boottime)().as_micros()));
    let second = Span::from_secs(1).as_micros();
    cx.env.boottime =
        Arc::new(move || BootInstant::from_micros(micros.fetch_add(second, Ordering::Relaxed)));
    cx
}

/// A world whose only worker ran all of them and is lost; with the context, slow, and the watch of who finds it.
async fn bereft() -> (World, Cx, Watch) {
    let mut world = World::shared(&[&wide(), OTHER], &["one"], 1).await;
    let change = PoolChange { slots: Some(5_000), ..PoolChange::default() };
    pools::set(&world.cx, "big", &change, "me").await.unwrap();
    world.checks = false;
    world.workers[0].slots = 5_000;
    world.script(|_| stay());
    world.trigger("wide", "r").await;
    world.settle().await;
    let job = world.workers[0].job.unwrap();
    world.workers[0].is_paused = true;
    let renew_seq = world.job(job).await.renew_seq;
    world.pass_time(TTL.plus(SCAN));
    let (cx, mut watch) = (slow(&world.cx), Watch::default());
    declare(&cx, job, renew_seq).await;
    watch.pass(&cx).await.unwrap();
    (world, cx, watch)
}

async fn waiting(world: &World, dag_id: &str) -> usize {
    let run = world.run(dag_id, "r").await;
    let tis = world.tis_of(&run).await;
    tis.iter().filter(|ti| ti.state == TiState::Scheduled).count()
}

#[tokio::test]
async fn a_recovery_of_many_goes_on_in_the_next_turn() {
    let (world, cx, mut watch) = bereft().await;
    assert_eq!(waiting(&world, "wide").await, 1_000, "a page");
    watch.pass(&cx).await.unwrap();
    assert_eq!(waiting(&world, "wide").await, MANY);
    watch.pass(&cx).await.unwrap();
    assert!(world.events().await.iter().any(|line| line.kind == "job_settled"));
}

#[tokio::test]
async fn the_dispatcher_lets_the_other_passes_work_between_its_batches() {
    let (world, cx, _) = bereft().await;
    let report = Dispatcher.pass(&cx).await.unwrap();
    assert_eq!((report.moved, waiting(&world, "wide").await), (512, 1_000 - 512));
}

#[tokio::test]
async fn of_equal_priorities_the_dag_with_least_in_hand_comes_first() {
    let (world, cx, _) = bereft().await;
    world.trigger("other", "r").await;
    Scheduler.pass(&cx).await.unwrap();
    assert_eq!((waiting(&world, "wide").await, waiting(&world, "other").await), (1_000, 1));
    Dispatcher.pass(&cx).await.unwrap();
    assert_eq!(waiting(&world, "other").await, 0, "it is in the first batch");
    assert!(waiting(&world, "wide").await > 0);
}
