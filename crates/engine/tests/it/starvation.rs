//! What cannot move hides nothing that can (I22, I28).

use crate::world::{World, clears, exit, stay};
use fencepost_engine::operations::clear::clear;

const WIDE: &str = "
dag_id: wide
max_active_runs: 1
max_active_tasks: 500
tasks:
  t0: {run: x}
";

fn wide(tasks: usize) -> String {
    let mut text = WIDE.to_owned();
    for n in 1..tasks {
        text.push_str(&format!("  t{n}: {{noop: true}}\n"));
    }
    text
}

const OTHER: &str = "
dag_id: zz
tasks:
  t: {run: x}
  u: {run: x, depends_on: [t]}
";

#[tokio::test]
async fn marks_of_runs_that_wait_for_their_place_hide_no_other() {
    let mut world = World::of(&[&wide(400), OTHER]).await;
    world.trigger("wide", "r0").await;
    world.finish().await;
    for n in 1..5 {
        world.trigger("wide", &format!("r{n}")).await;
    }
    world.finish().await;
    world.checks = false;
    world.script(|what| if what.task_id == "t0" { stay() } else { exit(0) });
    for n in 0..5 {
        clear(&world.cx, &clears("wide", &format!("r{n}"))).await.unwrap();
    }
    world.settle().await;
    world.trigger("zz", "r").await;
    world.settle().await;
    assert_eq!(world.shown("zz", "r").await, "success: t success, u success");
    world.script(|_| exit(0));
    world.machine.finish("t0", exit(0));
    world.checks = true;
    world.finish().await;
}

const PAST: &str = "
dag_id: past
schedule: {every: 1h}
start_date: 2026-02-28T00:00:00Z
end_date: 2026-02-28T02:00:00Z
catchup: true
";

#[tokio::test]
async fn more_heads_than_a_page_that_wait_for_the_past_hide_no_other() {
    let mut text = format!("{PAST}tasks:\n  first: {{run: x, depends_on_past: true}}\n");
    for n in 0..700 {
        text.push_str(&format!("  t{n}: {{noop: true, depends_on_past: true}}\n"));
    }
    let mut world = World::of(&[&text, OTHER]).await;
    world.checks = false;
    world.script(|what| if what.task_id == "first" { stay() } else { exit(0) });
    for _ in 0..6 {
        world.passes().await;
        world.work().await;
    }
    world.trigger("zz", "r").await;
    world.settle().await;
    assert_eq!(world.shown("zz", "r").await, "success: t success, u success");
    world.script(|_| exit(0));
    world.machine.finish("first", exit(0));
    world.checks = true;
    world.finish().await;
    assert_eq!(world.run_states("past").await.len(), 3);
}

#[tokio::test]
async fn a_version_that_cannot_be_read_stops_only_its_own_runs() {
    let text = "
dag_id: d
max_active_runs: 1
description: old
tasks:
  t: {run: x}
";
    let mut world = World::of(&[text, OTHER]).await;
    world.trigger("d", "old").await;
    world.load("dag0.yaml", &text.replace("old", "new")).await;
    world.undecodable.lock().unwrap().insert("\"old\"".into());
    world.restart().await;
    world.trigger("d", "new").await;
    world.trigger("zz", "r").await;
    let turn = world.settle().await;
    assert!(turn.troubles.iter().any(|trouble| trouble.contains("of another age")), "{turn:?}");
    assert_eq!(world.shown("zz", "r").await, "success: t success, u success");
    assert_eq!(world.shown("d", "new").await, "success: t success");
    assert_eq!(world.run("d", "old").await.state.as_str(), "queued");
    // Readable again, it goes on.
    world.undecodable.lock().unwrap().clear();
    world.finish().await;
    assert_eq!(world.shown("d", "old").await, "success: t success");
}

#[tokio::test]
async fn what_runs_of_a_version_that_cannot_be_read_any_more_is_still_taken_down() {
    let text = "
dag_id: d
description: old
tasks:
  t: {run: x}
  m: {run: x, expand: {x: [1, 2]}}
  after: {run: x, depends_on: [t, m]}
";
    let mut world = World::of(&[text]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.undecodable.lock().unwrap().insert("\"old\"".into());
    world.restart().await;
    world.load("dag0.yaml", &text.replace("old", "new")).await;
    world.trigger("d", "good").await;
    world.machine.finish("t", exit(0));
    world.settle().await;
    assert_eq!(
        world.shown("d", "r").await,
        "running: t success, m[0] running, m[1] running, after none"
    );
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
    // Its books are whole once it can be read.
    world.undecodable.lock().unwrap().clear();
    world.restart().await;
    world.settle().await;
    world.undecodable.lock().unwrap().insert("\"old\"".into());
    world.restart().await;
    // And a cancel ends it, whatever its version says.
    world.cancel("d", "r").await;
    world.settle().await;
    assert_eq!(
        world.shown("d", "r").await,
        "cancelled: t success, m[0] failed, m[1] failed, after skipped"
    );
    for name in ["t", "m[0]", "m[1]"] {
        world.machine.finish(name, exit(0));
    }
    world.script(|_| exit(0));
    world.finish().await;
    assert!(world.shown("d", "good").await.starts_with("success"));
}
