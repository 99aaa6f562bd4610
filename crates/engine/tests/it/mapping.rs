//! Mapped tasks whose elements are known only when their turn comes.

use crate::world::{Act, What, World, clears, exit, names, says};
use fencepost_core::state::TiState;
use fencepost_engine::operations::clear::ClearRequest;
use serde_json::{Value, json};

const FILES: &str = "
dag_id: d
params: {letters: [a, b]}
tasks:
  list: {run: x}
  load: {run: x, depends_on: [list], expand: {file: '{{ outputs.list.files }}', of: '{{ params.letters }}'}}
  last: {run: x, depends_on: [load]}
";

fn lists(files: Value) -> impl Fn(&What) -> Act + Send + Sync + 'static {
    move |what| if what.task_id == "list" { says("files", files.clone()) } else { exit(0) }
}

/// What an instance is mapped over.
async fn mapped(world: &World, name: &str) -> Value {
    serde_json::from_str(&world.ti("d", "r", name).await.mapped.unwrap()).unwrap()
}

#[tokio::test]
async fn outputs_and_params_give_the_instances_when_their_turn_comes() {
    let mut world = World::of(&[FILES]).await;
    world.script(lists(json!(["x", {"y": 1}])));
    world.trigger("d", "r").await;
    world.plan().await;
    assert_eq!(world.shown("d", "r").await, "running: list queued, load none, last none");
    world.finish().await;
    assert_eq!(
        world.shown("d", "r").await,
        "success: list success, load[0] success, load[1] success, load[2] success, \
         load[3] success, last success"
    );
    assert_eq!(world.ti("d", "r", "last").await.upstream.success, 4);
    assert_eq!(mapped(&world, "load[1]").await, json!({ "file": "x", "of": "b" }));
    assert_eq!(mapped(&world, "load[2]").await, json!({ "file": { "y": 1 }, "of": "a" }));
}

#[tokio::test]
async fn an_empty_list_of_a_template_skips_the_task() {
    let mut world = World::of(&[FILES]).await;
    world.script(lists(json!([])));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.why("d", "r", "load").await, "skipped (empty_expand)");
    assert_eq!(world.ti("d", "r", "last").await.state, TiState::Skipped);
}

#[tokio::test]
async fn what_gives_no_list_fails_only_its_own_task() {
    for wrong in [json!("x"), json!({ "a": 1 }), Value::Null] {
        let mut world = World::of(&[FILES]).await;
        world.script(lists(wrong));
        world.trigger("d", "r").await;
        world.finish().await;
        assert_eq!(world.why("d", "r", "load").await, "failed (expand_error)");
        assert_eq!(world.ti("d", "r", "last").await.state, TiState::UpstreamFailed);
        let told = world.events().await.into_iter().find(|e| e.kind == "template_error").unwrap();
        assert!(told.reason.unwrap().contains("`file` of `expand` must give a list"));
    }
}

#[tokio::test]
async fn params_map_a_task_without_upstreams_and_a_condition_comes_first() {
    let text = "
dag_id: d
params: {n: [1, 2, 3], go: false}
tasks:
  m: {run: x, expand: {n: '{{ params.n }}'}}
  not: {run: x, expand: {n: '{{ params.n }}'}, when: '{{ params.go }}'}
  noop: {noop: true, expand: {n: '{{ params.n }}'}, depends_on: [m]}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(
        world.shown("d", "r").await,
        "success: m[0] success, m[1] success, m[2] success, not skipped, \
         noop[0] success, noop[1] success, noop[2] success"
    );
}

/// Cleared with its upstream, a task is expanded anew: it grows or shrinks, and keeps its history.
#[tokio::test]
async fn a_cleared_expansion_grows_and_shrinks() {
    let mut world = World::of(&[FILES]).await;
    world.script(lists(json!(["x", "y"])));
    world.trigger("d", "r").await;
    world.finish().await;
    for (files, shown, success) in [
        (json!(["x"]), "load[0] success, load[1] success, load[2] removed, load[3] removed", 2),
        (json!(["u", "v", "w"]), "load[4] success, load[5] success", 6),
        (json!([]), "load[0] skipped, load[1] skipped, load[2] skipped", 0),
    ] {
        world.script(lists(files));
        world.clear("d", "r", &["list", "load", "last"]).await;
        world.finish().await;
        let all = world.shown("d", "r").await;
        assert!(all.contains(shown), "{all}");
        assert_eq!(world.ti("d", "r", "last").await.upstream.success, success);
    }
    assert_eq!(mapped(&world, "load[5]").await, json!({ "file": "w", "of": "b" }));
}

#[tokio::test]
async fn one_cleared_instance_of_an_expansion_is_what_it_was() {
    let mut world = World::of(&[FILES]).await;
    world.script(lists(json!(["x", "y"])));
    world.trigger("d", "r").await;
    world.finish().await;
    world.script(lists(json!(["z"])));
    world.clear("d", "r", &["list"]).await;
    let one = ClearRequest { tasks: names(&["load"]), map_index: Some(3), ..clears("d", "r") };
    world.clear_by(one).await;
    world.finish().await;
    assert_eq!(world.ti("d", "r", "load[3]").await.state, TiState::Success);
    assert_eq!(mapped(&world, "load[3]").await, json!({ "file": "y", "of": "b" }));
}
