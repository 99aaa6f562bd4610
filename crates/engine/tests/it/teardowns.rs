//! Setups and teardowns.

use crate::world::{World, exit};

const FILE: &str = "
dag_id: d
tasks:
  up: {run: x, setup: true}
  work: {run: x, depends_on: [up]}
  down: {run: x, depends_on: [up, work], teardown: true}
";

async fn played(fails: &'static [&'static str]) -> World {
    let mut world = World::of(&[FILE]).await;
    world.script(move |what| exit(u8::from(fails.contains(&what.task_id.as_str()))));
    world.trigger("d", "r").await;
    world.finish().await;
    world
}

#[tokio::test]
async fn a_teardown_runs_however_the_work_ended_and_decides_nothing() {
    for (fails, shown) in [
        (&[][..], "success: up success, work success, down success"),
        (&["work"][..], "failed: up success, work failed, down success"),
        (&["down"][..], "success: up success, work success, down failed"),
        (&["up"][..], "failed: up failed, work upstream_failed, down skipped"),
    ] {
        let world = played(fails).await;
        assert_eq!(world.shown("d", "r").await, shown);
    }
    let world = played(&["up"]).await;
    assert_eq!(world.why("d", "r", "down").await, "skipped (no_setup_succeeded)");
}

#[tokio::test]
async fn what_is_cleared_clears_its_setups_and_teardowns() {
    let mut world = played(&["work"]).await;
    world.script(|_| exit(0));
    let cleared = world.clear("d", "r", &["work"]).await;
    let names: Vec<&str> = cleared.iter().map(|cleared| cleared.task_id.as_str()).collect();
    assert_eq!(names, ["up", "work", "down"]);
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: up success, work success, down success");
    assert_eq!(world.machine.order(), ["up", "work", "down", "up", "work", "down"]);
}
