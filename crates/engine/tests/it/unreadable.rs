//! Versions that a scheduler cannot read, an older one beside a newer one mostly: nothing is lost by them.

use crate::world::{Delivering, World, exit, stay};
use fencepost_core::time::Span;
use fencepost_engine::Pass;
use fencepost_store::query::asset::view;
use fencepost_store::query::occasion;

const OLD: &str = "
dag_id: d
description: old
tasks:
  t:
    run: x
    outlets: [a]
    on_success_callback: [{slack: {url: 'https://x', text: '{{ ti.task_id }} success'}}]
";
const OTHER: &str = "
dag_id: o
tasks:
  u:
    run: x
    on_success_callback: [{slack: {url: 'https://x', text: '{{ ti.task_id }} success'}}]
";

/// A world whose `d` has succeeded under a version that is not readable any more.
async fn succeeded_unread() -> World {
    let mut world = World::of(&[OLD, OTHER]).await;
    world.script(|what| if what.task_id == "t" { stay() } else { exit(0) });
    world.trigger("d", "r").await;
    world.settle().await;
    world.load("dag0.yaml", &OLD.replace("old", "new")).await;
    world.undecodable.lock().unwrap().insert("\"old\"".into());
    world.restart().await;
    world.machine.finish("t", exit(0));
    world.settle().await;
    world
}

#[tokio::test]
async fn a_success_emits_its_assets() {
    let world = succeeded_unread().await;
    let tx = world.cx.store.read("test").await.unwrap();
    let events = view::events(&tx, None, i64::MAX, 10).await.unwrap();
    let found: Vec<(&str, &str)> =
        events.iter().map(|event| (event.asset.as_str(), event.task_id.as_str())).collect();
    assert_eq!(found, [("a", "t")]);
}

#[tokio::test]
async fn an_occasion_waits_for_who_can_read_it_and_holds_up_no_other() {
    let mut world = succeeded_unread().await;
    world.trigger("o", "r").await;
    let turn = world.settle().await;
    assert_eq!(world.post.told(), ["u success"], "{turn:?}");
    let tx = world.cx.store.read("test").await.unwrap();
    assert!(occasion::any(&tx, 0).await.unwrap());
    drop(tx);
    // Nor does it make work while nobody can: it is passed over for a minute.
    let mut pass = Delivering::to(&world.post);
    let first = pass.pass(&world.cx).await.unwrap();
    assert!(first.troubles.len() == 1 && first.next_due.is_some(), "{first:?}");
    let second = pass.pass(&world.cx).await.unwrap();
    assert!(second.troubles.is_empty() && second.next_due == first.next_due, "{second:?}");
    world.undecodable.lock().unwrap().clear();
    assert_eq!(pass.pass(&world.cx).await.unwrap().moved, 0);
    world.pass_time(Span::from_mins(1));
    assert!(pass.pass(&world.cx).await.unwrap().moved > 0);
    assert_eq!(world.post.told(), ["t success", "u success"]);
    world.finish().await;
    let tx = world.cx.store.read("test").await.unwrap();
    assert!(!occasion::any(&tx, 0).await.unwrap());
}
