//! DAG files, versions and triggers; runs that are deleted.

use crate::world::{World, exit, read, request, stay};
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_engine::operations::dag_files::{DagFile, load};
use fencepost_engine::operations::run_control::{delete_run, pause_dag};
use fencepost_engine::operations::trigger::{LogicalDate, TriggerRequest, trigger};
use serde_json::json;

const ONE: &str = "
dag_id: d
params:
  n: 1
  kind: {type: string, enum: [a, b], default: a}
tasks:
  t: {run: x}
";

fn two_tasks() -> String {
    format!("{ONE}  u: {{run: x, depends_on: [t]}}\n")
}

#[tokio::test]
async fn a_run_stays_with_the_version_it_began_with() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "old").await;
    world.settle().await;
    world.load("dag0.yaml", &two_tasks()).await;
    world.trigger("d", "new").await;
    world.settle().await;
    world.script(|_| exit(0));
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.shown("d", "old").await, "success: t success");
    assert_eq!(world.shown("d", "new").await, "success: t success, u success");
    world.clear("d", "old", &[]).await;
    world.finish().await;
    assert_eq!(world.shown("d", "old").await, "success: t success");
}

#[tokio::test]
async fn the_same_content_makes_no_second_version() {
    let mut world = World::of(&[ONE]).await;
    let same = format!("# a comment more\n{ONE}");
    assert!(world.load("dag0.yaml", &same).await.new_versions.is_empty());
    assert_eq!(world.dag("d").await.version, 1);
    assert_eq!(world.load("dag0.yaml", &two_tasks()).await.new_versions, ["d"]);
    assert_eq!(world.load("dag0.yaml", ONE).await.new_versions, ["d"]);
    assert_eq!(world.dag("d").await.version, 3);
}

#[tokio::test]
async fn a_file_that_vanishes_makes_its_dag_inactive_while_its_runs_go_on() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.remove("dag0.yaml").await.deactivated, ["d"]);
    assert!(!world.dag("d").await.is_active);
    let refused = trigger(&world.cx, request("d", "r2")).await.unwrap_err();
    assert!(matches!(refused, EngineError::Refused(Refusal::Inactive(_))));
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
    // Back again it is the same version.
    assert!(world.load("dag0.yaml", ONE).await.new_versions.is_empty());
    assert!(world.dag("d").await.is_active);
    world.trigger("d", "r2").await;
}

#[tokio::test]
async fn a_dag_moves_with_its_file_and_a_renamed_dag_leaves_the_old_one_inactive() {
    let mut world = World::of(&[ONE]).await;
    world.present.remove("dag0.yaml");
    assert!(world.load("moved.yaml", ONE).await.new_versions.is_empty());
    let row = world.dag("d").await;
    assert_eq!((row.fileloc.as_str(), row.is_active), ("moved.yaml", true));
    let renamed = ONE.replace("dag_id: d", "dag_id: e");
    let loaded = world.load("moved.yaml", &renamed).await;
    assert_eq!((loaded.new_versions, loaded.deactivated), (vec!["e".into()], vec!["d".into()]));
    assert!(!world.dag("d").await.is_active);
}

#[tokio::test]
async fn of_two_files_with_one_dag_id_the_first_stays_and_the_second_is_told() {
    let mut world = World::of(&[ONE]).await;
    let loaded = world.load("copy.yaml", &two_tasks()).await;
    assert_eq!(loaded.broken, ["copy.yaml"]);
    assert_eq!(world.dag("d").await.fileloc, "dag0.yaml");
    assert_eq!(world.dag("d").await.version, 1);
    // With the first one gone, the second takes its place.
    world.present.remove("dag0.yaml");
    assert_eq!(world.load("copy.yaml", &two_tasks()).await.new_versions, ["d"]);
    assert_eq!(world.dag("d").await.fileloc, "copy.yaml");
}

#[tokio::test]
async fn a_broken_file_leaves_the_last_good_version_at_work() {
    let mut world = World::of(&[ONE]).await;
    let file = DagFile { fileloc: "dag0.yaml".into(), content: Err(json!([{"line": 1}])) };
    let loaded = load(&world.cx, &[file], &world.present).await.unwrap();
    assert_eq!(loaded.broken, ["dag0.yaml"]);
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
}

#[tokio::test]
async fn params_are_merged_over_the_defaults_and_checked() {
    let world = World::of(&[ONE]).await;
    let with = |run_id: &str, params: serde_json::Value| TriggerRequest {
        params: params.as_object().unwrap().clone(),
        ..request("d", run_id)
    };
    let run = trigger(&world.cx, with("r", json!({"kind": "b"}))).await.unwrap();
    assert_eq!(run.params, json!({"n": 1, "kind": "b"}));
    for wrong in [json!({"kind": "c"}), json!({"n": "many"}), json!({"m": 1})] {
        let refused = trigger(&world.cx, with("x", wrong)).await.unwrap_err();
        assert!(matches!(refused, EngineError::Refused(Refusal::Invalid(_))), "{refused}");
    }
    assert_eq!(world.all_runs().await.len(), 1);
}

#[tokio::test]
async fn a_trigger_is_refused_for_what_exists_and_what_does_not() {
    let world = World::of(&[ONE]).await;
    world.trigger("d", "r").await;
    let exists = trigger(&world.cx, request("d", "r")).await.unwrap_err();
    assert!(matches!(exists, EngineError::Refused(Refusal::RunExists { .. })));
    let unknown = trigger(&world.cx, request("nobody", "r")).await.unwrap_err();
    assert!(matches!(unknown, EngineError::Refused(Refusal::NoDag(_))));
    for name in ["../up", "", "a b", "-x"] {
        let wrong = trigger(&world.cx, request("d", name)).await.unwrap_err();
        assert!(matches!(wrong, EngineError::Refused(Refusal::Invalid(_))), "{name}");
    }
    let undated = TriggerRequest { logical_date: LogicalDate::None, ..request("d", "none") };
    assert_eq!(trigger(&world.cx, undated).await.unwrap().logical_date, None);
}

#[tokio::test]
async fn a_run_triggered_while_its_dag_is_paused_waits_for_it() {
    let mut world = World::of(&[ONE]).await;
    pause_dag(&world.cx, "d", true, "me").await.unwrap();
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.run("d", "r").await.state.as_str(), "queued");
    pause_dag(&world.cx, "d", false, "me").await.unwrap();
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
}

#[tokio::test]
async fn nothing_new_of_a_paused_dag_is_queued_and_what_runs_ends() {
    let mut world = World::of(&[&two_tasks()]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    pause_dag(&world.cx, "d", true, "me").await.unwrap();
    world.machine.finish("t", exit(0));
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, "running: t success, u scheduled");
}

#[tokio::test]
async fn a_deleted_run_takes_everything_with_it_and_its_logs_follow_once() {
    let mut world = World::of(&[ONE]).await;
    let running = delete_run(&world.cx, "d", "r", "me").await.unwrap_err();
    assert!(matches!(running, EngineError::Refused(Refusal::NoRun { .. })));
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let running = delete_run(&world.cx, "d", "r", "me").await.unwrap_err();
    assert!(matches!(running, EngineError::Refused(Refusal::StillActive { .. })));
    let token = world.machine.token_of("t");
    world.machine.finish("t", exit(0));
    world.finish().await;
    delete_run(&world.cx, "d", "r", "me").await.unwrap();
    world.settle().await;
    let purged = format!("purge_logs [\"{}\"]", token.as_i64());
    assert_eq!(*world.effects.lock().unwrap(), [purged]);
    assert!(world.all_runs().await.is_empty());
    let left: Vec<String> = world.events().await.into_iter().map(|e| e.kind).collect();
    assert!(left.contains(&"run_deleted".into()) && !left.contains(&"ti_state".into()));
    // The name is free again.
    world.script(|_| exit(0));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_ne!(read("dag0.yaml", ONE).content_hash, read("dag0.yaml", &two_tasks()).content_hash);
}
