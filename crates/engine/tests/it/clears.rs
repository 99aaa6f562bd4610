//! Clear: what runs again, with which key, and how often.

use crate::graphs::DIAMOND;
use crate::world::{World, clears, exit, gone, names, stay};
use fencepost_core::state::TiState;
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_engine::operations::clear::{ClearRequest, clear};

#[tokio::test]
async fn a_cleared_task_runs_once_more_and_nothing_else_does() {
    let mut world = World::of(&[DIAMOND]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    world.clear("d", "r", &["b"]).await;
    world.finish().await;
    let starts = world.machine.starts("r");
    assert_eq!(starts.values().copied().collect::<Vec<_>>(), [1, 2, 1, 1]);
    assert!(world.shown("d", "r").await.starts_with("success"));
    let attempts = world.attempts("d", "r", "b").await;
    assert_eq!(attempts[1].why.as_str(), "cleared");
    assert_eq!(attempts[1].try_number, 2);
}

#[tokio::test]
async fn a_clear_with_downstream_runs_everything_below_in_order() {
    let mut world = World::of(&[DIAMOND]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    let request = ClearRequest { tasks: names(&["b"]), downstream: true, ..clears("d", "r") };
    let preview =
        clear(&world.cx, &ClearRequest { dry_run: true, ..request.clone() }).await.unwrap();
    assert_eq!(world.shown("d", "r").await, "success: a success, b success, c success, d success");
    assert_eq!(world.clear_by(request).await, preview);
    world.finish().await;
    assert_eq!(world.machine.order()[4..], ["b", "d"]);
}

#[tokio::test]
async fn only_failed_clears_what_failed_and_what_that_kept_from_running() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| exit(u8::from(what.task_id == "b" && what.attempt == 1)));
    world.trigger("d", "r").await;
    world.finish().await;
    world.clear_by(ClearRequest { only_failed: true, ..clears("d", "r") }).await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: a success, b success, c success, d success");
    assert_eq!(world.machine.order(), ["a", "b", "c", "b", "d"]);
}

#[tokio::test]
async fn the_key_changes_only_after_a_success_or_when_asked() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| exit(u8::from(what.task_id == "d")));
    world.trigger("d", "r").await;
    world.finish().await;
    let preview = world.clear("d", "r", &["a", "d"]).await;
    assert_eq!(preview.iter().map(|c| c.new_key).collect::<Vec<_>>(), [true, false]);
    world.finish().await;
    assert_eq!(world.ti("d", "r", "a").await.generation, 1);
    assert_eq!(world.ti("d", "r", "d").await.generation, 0);
    let asked = ClearRequest { tasks: names(&["d"]), new_keys: true, ..clears("d", "r") };
    world.clear_by(asked).await;
    world.finish().await;
    assert_eq!(world.ti("d", "r", "d").await.generation, 1);
}

#[tokio::test]
async fn a_clear_gives_one_more_try_in_every_state() {
    let text = "
dag_id: d
tasks:
  t: {run: x, retries: 2, retry_delay: 1m}
";
    // How many starts before the clear, and in all, if every one of them fails.
    for (state, all) in [("failed", 4), ("up_for_retry", 4), ("running", 4), ("queued", 4)] {
        let mut world = World::of(&[text]).await;
        world.script(move |_| if state == "running" { stay() } else { exit(1) });
        world.trigger("d", "r").await;
        match state {
            "failed" => world.finish().await,
            "queued" => world.plan().await,
            _ => drop(world.settle().await),
        }
        world.clear("d", "r", &["t"]).await;
        world.script(|_| exit(1));
        world.finish().await;
        let ti = world.ti("d", "r", "t").await;
        assert_eq!(world.machine.order().len(), all, "cleared while {state}");
        assert_eq!((ti.state, ti.clears), (TiState::Failed, 1));
        assert!(ti.try_number <= ti.max_tries);
    }
}

#[tokio::test]
async fn a_clear_of_what_runs_stops_it_first_and_starts_it_again() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| if what.attempt == 1 { stay() } else { exit(0) });
    world.trigger("d", "r").await;
    world.settle().await;
    world.clear("d", "r", &["a"]).await;
    world.plan().await;
    assert_eq!(world.ti("d", "r", "a").await.state, TiState::Restarting);
    // Once more changes nothing.
    assert!(world.clear("d", "r", &["a"]).await.is_empty());
    world.script(|_| exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "a").await, "cleared none, success none");
    let told: Vec<&str> =
        world.machine.ledger[..2].iter().map(|(_, what)| what.prev_outcome.as_str()).collect();
    assert_eq!(told, ["first", "cleared"]);
}

#[tokio::test]
async fn a_success_that_crosses_with_a_clear_is_not_taken() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| if what.attempt == 1 { stay() } else { exit(0) });
    world.trigger("d", "r").await;
    world.settle().await;
    world.clear("d", "r", &["a"]).await;
    world.machine.finish("a", crate::world::says("x", serde_json::json!(1)));
    world.script(|_| exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "a").await, "cleared none, success none");
    assert_eq!(world.outputs("d", "r", "a").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_clear_of_a_run_that_is_being_stopped_is_refused() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.cancel("d", "r").await;
    let refused = clear(&world.cx, &clears("d", "r")).await.unwrap_err();
    assert!(matches!(refused, EngineError::Refused(Refusal::StillActive { .. })), "{refused}");
    world.finish().await;
    world.script(|_| exit(0));
    world.clear("d", "r", &[]).await;
    world.finish().await;
    assert!(world.shown("d", "r").await.starts_with("success"));
}

const MAPPED: &str = "
dag_id: d
tasks:
  a: {run: x}
  m: {run: x, depends_on: [a], expand: {x: [1, 2, 3]}}
  last: {run: x, depends_on: [m]}
";

fn one(index: i32) -> ClearRequest {
    ClearRequest { tasks: names(&["m"]), map_index: Some(index), ..clears("d", "r") }
}

#[tokio::test]
async fn one_mapped_instance_is_cleared_alone() {
    for index in 0..3 {
        let mut world = World::of(&[MAPPED]).await;
        world.trigger("d", "r").await;
        world.finish().await;
        world.clear_by(one(index)).await;
        world.finish().await;
        let again = format!("m[{index}]");
        assert_eq!(world.machine.order()[5..], [again]);
        assert!(world.shown("d", "r").await.starts_with("success"));
    }
}

#[tokio::test]
async fn one_mapped_instance_cleared_behind_its_head_waits_for_the_cleared_upstream() {
    for index in 0..3 {
        let mut world = World::of(&[MAPPED]).await;
        world.trigger("d", "r").await;
        world.finish().await;
        world.script(|what| if what.task_id == "a" { stay() } else { exit(0) });
        world.clear("d", "r", &["a"]).await;
        world.settle().await;
        world.clear_by(one(index)).await;
        world.settle().await;
        let name = format!("m[{index}]");
        assert_eq!(world.ti("d", "r", &name).await.state, TiState::None);
        world.machine.finish("a", exit(0));
        world.finish().await;
        assert_eq!(world.machine.order()[5..], ["a".to_owned(), name]);
    }
}

#[tokio::test]
async fn two_mapped_instances_cleared_one_after_the_other_both_run() {
    let mut world = World::of(&[MAPPED]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    world.script(|what| if what.task_id == "a" { stay() } else { exit(0) });
    world.clear("d", "r", &["a"]).await;
    world.settle().await;
    world.clear_by(one(1)).await;
    world.settle().await;
    world.clear_by(one(2)).await;
    // The head in front of them is marked by hand meanwhile.
    world.mark("d", "r", "m[0]", TiState::Failed).await;
    world.settle().await;
    world.machine.finish("a", exit(0));
    world.finish().await;
    assert_eq!(
        world.shown("d", "r").await,
        "success: a success, m[0] failed, m[1] success, m[2] success, last success"
    );
    assert_eq!(world.machine.order()[5..], ["a", "m[1]", "m[2]"]);
}

#[tokio::test]
async fn a_clear_takes_the_outputs_away_and_a_new_success_brings_them_back() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| crate::world::says("n", serde_json::json!(what.attempt)));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.outputs("d", "r", "a").await, ["n=1"]);
    world.clear("d", "r", &["a"]).await;
    assert_eq!(world.outputs("d", "r", "a").await, Vec::<String>::new());
    world.finish().await;
    assert_eq!(world.outputs("d", "r", "a").await, ["n=2"]);
}

#[tokio::test]
async fn a_cleared_poisoned_task_is_released() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| if what.task_id == "a" { gone() } else { exit(0) });
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.ti("d", "r", "a").await.state, TiState::Held);
    world.script(|_| exit(0));
    world.clear("d", "r", &["a"]).await;
    world.finish().await;
    assert!(world.shown("d", "r").await.starts_with("success"));
    let unknown = ClearRequest { tasks: names(&["nothing"]), ..clears("d", "r") };
    let refused = clear(&world.cx, &unknown).await.unwrap_err();
    assert!(matches!(refused, EngineError::Refused(Refusal::NoTask { .. })));
}
