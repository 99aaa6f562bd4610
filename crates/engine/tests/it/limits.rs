//! Limits hold at every instant, and what one lacks holds up nobody else.

use crate::world::{World, clears, exit, read, request, stay};
use fencepost_core::state::{RunState, TiState};
use fencepost_engine::operations::clear::clear;
use fencepost_engine::operations::pools::{self, PoolChange};
use fencepost_engine::operations::trigger::trigger;

async fn pool(world: &World, name: &str, slots: u32) {
    let change = PoolChange { slots: Some(slots), description: None };
    pools::set(&world.cx, name, &change, "me").await.unwrap();
}

const POOLED: &str = "
dag_id: d
tasks:
  one: {run: x, pool: p, expand: {x: [1, 2, 3, 4]}}
  two: {run: x, pool: p, pool_slots: 2, expand: {x: [1, 2, 3]}}
  three: {run: x, pool: p, pool_slots: 3, expand: {x: [1, 2]}}
";

#[tokio::test]
async fn slots_of_a_pool_are_never_exceeded_by_tasks_of_several_slots() {
    let mut world = World::of(&[]).await;
    pool(&world, "p", 6).await;
    world.workers[0].slots = 20;
    world.load("dag0.yaml", POOLED).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    let mut most = 0;
    while !world.run("d", "r").await.state.is_finished() {
        world.settle().await;
        most = most.max(world.pools().await["p"].held);
        assert!(world.pools().await["p"].held <= 6);
        let token = world.machine.running()[0];
        world.machine.end(token, fencepost_core::verdict::Ending::Exit(0));
        world.settle().await;
    }
    assert_eq!(most, 6);
    assert_eq!(world.machine.order().len(), 9);
}

#[tokio::test]
async fn a_shrunk_pool_drains_and_stops_no_other() {
    let other = "
dag_id: e
tasks:
  t: {run: x}
";
    let mut world = World::of(&[other]).await;
    pool(&world, "p", 6).await;
    world.load("pooled.yaml", POOLED).await;
    world.script(|what| if what.dag_id == "d" { stay() } else { exit(0) });
    world.trigger("d", "r").await;
    world.settle().await;
    pool(&world, "p", 1).await;
    world.check().await;
    let held = world.pools().await["p"].held;
    assert!(held > 1 && world.pools().await["p"].shrunk);
    world.trigger("e", "r").await;
    world.settle().await;
    assert_eq!(world.shown("e", "r").await, "success: t success");
    assert_eq!(world.pools().await["p"].held, held);
    for token in world.machine.running() {
        world.machine.end(token, fencepost_core::verdict::Ending::Exit(0));
    }
    world.settle().await;
    assert!(world.pools().await["p"].held <= 1);
    assert!(!world.pools().await["p"].shrunk);
}

#[tokio::test]
async fn the_dag_limit_counts_over_all_of_its_runs() {
    let text = "
dag_id: d
max_active_tasks: 3
tasks:
  m: {run: x, expand: {x: [1, 2]}}
";
    let mut world = World::of(&[text]).await;
    world.script(|_| stay());
    for run in ["r1", "r2", "r3"] {
        world.trigger("d", run).await;
    }
    world.settle().await;
    assert_eq!(world.machine.running().len(), 3);
    world.machine.finish("m[0]", exit(0));
    world.settle().await;
    assert_eq!(world.machine.running().len(), 3);
}

#[tokio::test]
async fn a_task_limit_counts_in_its_run_or_over_all_runs() {
    let text = "
dag_id: d
tasks:
  m: {run: x, expand: {x: [1, 2, 3]}, max_active_tis_per_dagrun: 1}
  n: {run: x, expand: {x: [1, 2, 3]}, max_active_tis_per_dag: 1}
";
    let mut world = World::of(&[text]).await;
    world.workers[0].slots = 20;
    world.script(|_| stay());
    world.trigger("d", "r1").await;
    world.trigger("d", "r2").await;
    world.settle().await;
    let count = |of: &str| world.machine.order().iter().filter(|name| name.starts_with(of)).count();
    assert_eq!((count("m"), count("n")), (2, 1));
}

#[tokio::test]
async fn the_task_limit_holds_behind_a_page_of_blocked_candidates() {
    let many: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let text = format!(
        "
dag_id: d
max_active_tasks: 400
tasks:
  m: {{run: x, priority_weight: 9, max_active_tis_per_dagrun: 2, expand: {{x: [{}]}}}}
  n: {{run: x, max_active_tis_per_dagrun: 1, expand: {{x: [1, 2, 3, 4]}}}}
",
        many.join(", ")
    );
    let mut world = World::of(&[&text]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.plan().await;
    let run = world.run("d", "r").await;
    let tis = world.tis_of(&run).await;
    let queued = |task: &str| {
        tis.iter().filter(|ti| ti.task_id == task && ti.state == TiState::Queued).count()
    };
    assert_eq!((queued("m"), queued("n")), (2, 1));
}

#[tokio::test]
async fn the_order_is_by_priority_then_run_then_file_and_always_the_same() {
    let text = "
dag_id: d
default_args: {weight_rule: absolute}
tasks:
  low: {run: x, priority_weight: 1}
  b: {run: x, priority_weight: 5}
  a: {run: x, priority_weight: 5}
  high: {run: x, priority_weight: 9}
";
    for seed in 0..10 {
        let mut world = World::with(&[text], World::settings(), seed).await;
        world.workers[0].slots = 1;
        world.trigger("d", "r1").await;
        world.trigger("d", "r2").await;
        world.finish().await;
        let order: Vec<String> = world
            .machine
            .ledger
            .iter()
            .map(|(_, what)| format!("{}.{}", what.run_id, what.task_id))
            .collect();
        assert_eq!(
            order,
            ["r1.high", "r2.high", "r1.b", "r1.a", "r2.b", "r2.a", "r1.low", "r2.low"]
        );
    }
}

const CAPPED: &str = "
dag_id: d
max_active_runs: 1
tasks:
  t: {run: x}
";

#[tokio::test]
async fn the_run_limit_holds_for_triggered_and_cleared_runs_alike() {
    let mut world = World::of(&[CAPPED]).await;
    for n in 0..10 {
        trigger(&world.cx, request("d", &format!("r{n}"))).await.unwrap();
    }
    // `check` looks at the limit after every turn.
    world.finish().await;
    for n in 0..10 {
        clear(&world.cx, &clears("d", &format!("r{n}"))).await.unwrap();
    }
    world.script(|_| stay());
    world.settle().await;
    let running =
        world.run_states("d").await.iter().filter(|(_, s)| *s == RunState::Running).count();
    assert_eq!(running, 1);
    world.script(|_| exit(0));
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.machine.order().len(), 20);
}

#[tokio::test]
async fn a_raised_run_limit_takes_effect_in_the_next_pass() {
    let mut world = World::of(&[CAPPED]).await;
    world.script(|_| stay());
    for n in 0..5 {
        world.trigger("d", &format!("r{n}")).await;
    }
    world.settle().await;
    assert_eq!(world.machine.running().len(), 1);
    world.load("dag0.yaml", &CAPPED.replace("max_active_runs: 1", "max_active_runs: 4")).await;
    world.settle().await;
    assert_eq!(world.machine.running().len(), 4);
    assert_ne!(read("x.yaml", CAPPED).content_hash, "");
}

#[tokio::test]
async fn many_queued_runs_of_one_dag_hide_no_other() {
    let other = "
dag_id: zz
tasks:
  t: {run: x}
";
    let mut world = World::of(&[CAPPED, other]).await;
    world.script(|what| if what.dag_id == "d" { stay() } else { exit(0) });
    for n in 0..40 {
        world.trigger("d", &format!("r{n}")).await;
    }
    world.settle().await;
    world.trigger("zz", "r").await;
    world.turn().await;
    world.turn().await;
    assert_eq!(world.machine.starts("r")["t"], 1);
}

#[tokio::test]
async fn a_task_that_wants_more_slots_than_its_pool_has_waits_and_hides_nobody() {
    let text = "
dag_id: d
tasks:
  big: {run: x, pool: p, pool_slots: 4, priority_weight: 9}
  lost: {run: x, pool: nowhere}
  small: {run: x, pool: p}
";
    let mut world = World::of(&[]).await;
    pool(&world, "p", 2).await;
    world.load("dag0.yaml", text).await;
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(
        world.shown("d", "r").await,
        "running: big scheduled, lost scheduled, small success"
    );
    pool(&world, "p", 4).await;
    pool(&world, "nowhere", 1).await;
    world.finish().await;
}
