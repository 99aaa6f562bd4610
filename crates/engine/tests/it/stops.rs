//! Cancel, kill, mark, time-out, fail-fast: one mechanism, in every state.

use crate::graphs::DIAMOND;
use crate::world::{World, clears, exit, request, stay};
use fencepost_core::state::TiState;
use fencepost_core::time::Span;
use fencepost_core::verdict::Ending;
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_engine::operations::run_control::{AttemptRef, cancel, kill_attempt, pause_run};

const PAIR: &str = "
dag_id: d
tasks:
  t: {run: x, retries: 3, retry_delay: 5m}
  after: {run: x, depends_on: [t]}
";

#[tokio::test]
async fn a_cancelled_queued_run_is_over_at_once() {
    let mut world = World::of(&[PAIR]).await;
    let run = world.trigger("d", "r").await;
    let after = cancel(&world.cx, "d", "r", false, "me").await.unwrap();
    assert_eq!(after.state.as_str(), "cancelled");
    world.settle().await;
    assert!(world.tis_of(&run).await.is_empty());
    let again = cancel(&world.cx, "d", "r", false, "me").await.unwrap_err();
    assert!(matches!(again, EngineError::Refused(Refusal::AlreadyTerminal { .. })), "{again}");
}

#[tokio::test]
async fn a_cancel_before_the_claim_is_final_and_its_attempt_is_never_claimed() {
    let mut world = World::of(&[PAIR]).await;
    world.trigger("d", "r").await;
    world.plan().await;
    assert_eq!(world.shown("d", "r").await, "running: t queued, after none");
    world.cancel("d", "r").await;
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t skipped, after skipped");
    assert_eq!(world.outcomes("d", "r", "t").await, "cancelled none");
    assert!(world.machine.order().is_empty());
}

#[tokio::test]
async fn a_cancel_while_a_retry_waits_is_final_and_no_timer_revives_it() {
    let mut world = World::of(&[PAIR]).await;
    world.script(|_| exit(1));
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.ti("d", "r", "t").await.state, TiState::UpForRetry);
    world.cancel("d", "r").await;
    world.settle().await;
    world.pass_time(Span::from_hours(2));
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t skipped, after skipped");
    assert_eq!(world.machine.order().len(), 1);
}

#[tokio::test]
async fn a_cancel_of_what_runs_ends_when_its_processes_are_gone() {
    let mut world = World::of(&[PAIR]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.cancel("d", "r").await;
    world.plan().await;
    assert_eq!(world.shown("d", "r").await, "running: t running, after skipped");
    assert_eq!(world.pools().await["default_pool"].held, 1);
    // Twice is once.
    world.cancel("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t failed, after skipped");
    assert_eq!(world.outcomes("d", "r", "t").await, "cancelled none");
    assert_eq!(world.pools().await["default_pool"].held, 0);
}

#[tokio::test]
async fn a_success_after_the_stop_is_refused_as_success() {
    let mut world = World::of(&[PAIR]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.cancel("d", "r").await;
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t failed, after skipped");
    assert_eq!(world.outputs("d", "r", "t").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_success_before_the_stop_counts() {
    let mut world = World::of(&[PAIR]).await;
    world.trigger("d", "r").await;
    world.plan().await;
    world.work().await;
    world.work().await;
    assert_eq!(world.ti("d", "r", "t").await.state, TiState::Success);
    world.cancel("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t success, after skipped");
}

#[tokio::test]
async fn a_cleared_run_that_waits_for_its_place_can_be_cancelled() {
    let mut world = World::of(&[DIAMOND]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    world.clear("d", "r", &["b", "d"]).await;
    assert_eq!(world.run("d", "r").await.state.as_str(), "queued");
    world.cancel("d", "r").await;
    world.settle().await;
    let shown = world.shown("d", "r").await;
    assert_eq!(shown, "cancelled: a success, b skipped, c success, d skipped");
    // And cleared again it runs.
    world.clear("d", "r", &["b", "d"]).await;
    world.finish().await;
    assert!(world.shown("d", "r").await.starts_with("success"));
}

#[tokio::test]
async fn a_killed_attempt_fails_its_task_without_another_try() {
    let mut world = World::of(&[PAIR]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let token = world.machine.token_of("t");
    kill_attempt(&world.cx, &AttemptRef::Token(token), "me").await.unwrap();
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "failed: t failed, after upstream_failed");
    assert_eq!(world.outcomes("d", "r", "t").await, "cancelled none");
    let again = kill_attempt(&world.cx, &AttemptRef::Token(token), "me").await.unwrap_err();
    assert!(matches!(again, EngineError::Refused(Refusal::AlreadyTerminal { .. })), "{again}");
}

#[tokio::test]
async fn a_run_past_its_timeout_fails_and_its_tasks_are_stopped() {
    let text = "
dag_id: d
dagrun_timeout: 1h
tasks:
  t: {run: x}
  waits: {run: x, retries: 1, retry_delay: 3h}
  after: {run: x, depends_on: [t]}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| if what.task_id == "t" { stay() } else { exit(1) });
    world.trigger("d", "r").await;
    world.settle().await;
    world.pass_time(Span::from_micros(Span::from_hours(1).as_micros() - 1));
    world.settle().await;
    assert!(world.shown("d", "r").await.starts_with("running: t running, waits up_for_retry"));
    world.pass_time(Span::from_micros(1));
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "failed: t failed, waits skipped, after skipped");
    assert_eq!(world.run("d", "r").await.reason.as_deref(), Some("dagrun_timeout"));
    // Whatever ended has an end.
    let run = world.run("d", "r").await;
    assert_eq!(run.ended_at, Some(world.now()));
    assert!(world.tis_of(&run).await.iter().all(|ti| ti.ended_at.is_some()));
    assert!(world.attempts("d", "r", "t").await.iter().all(|one| one.ended_at.is_some()));
    // Cleared, it gets its time anew.
    world.script(|_| exit(0));
    world.clear("d", "r", &[]).await;
    world.finish().await;
    assert!(world.shown("d", "r").await.starts_with("success"));
}

#[tokio::test]
async fn fail_fast_stops_the_rest_of_the_run() {
    let text = "
dag_id: d
fail_fast: true
tasks:
  a: {run: x}
  b: {run: x}
  c: {run: x, depends_on: [b]}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| if what.task_id == "a" { exit(1) } else { stay() });
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "failed: a failed, b failed, c skipped");
    assert_eq!(world.why("d", "r", "b").await, "failed (fail_fast)");
}

#[tokio::test]
async fn a_mark_decides_in_every_state() {
    for mark in [TiState::Success, TiState::Failed, TiState::Skipped] {
        for state in ["none", "queued", "running", "up_for_retry", "success", "failed", "stopping"]
        {
            let mut world = World::of(&[PAIR]).await;
            world.script(move |what| match (what.task_id.as_str(), state) {
                ("t", "running" | "stopping") => stay(),
                ("t", "up_for_retry") => exit(1),
                _ => exit(0),
            });
            world.trigger("d", "r").await;
            match state {
                "none" | "queued" => world.plan().await,
                "failed" => {
                    world.plan().await;
                    world.mark("d", "r", "t", TiState::Failed).await;
                    world.settle().await;
                }
                _ => drop(world.settle().await),
            }
            if state == "stopping" {
                let token = AttemptRef::Token(world.machine.token_of("t"));
                kill_attempt(&world.cx, &token, "me").await.unwrap();
            }
            let task = if state == "none" { "after" } else { "t" };
            world.mark("d", "r", task, mark).await;
            world.finish().await;
            let ti = world.ti("d", "r", task).await;
            assert_eq!(ti.state, mark, "{task} marked {mark} while {state}");
            assert!(world.run("d", "r").await.state.is_finished());
        }
    }
}

#[tokio::test]
async fn a_mark_of_what_runs_waits_for_its_processes_and_frees_its_slot() {
    let mut world = World::of(&[PAIR]).await;
    world.script(|what| if what.task_id == "t" { stay() } else { exit(0) });
    world.trigger("d", "r").await;
    world.settle().await;
    world.mark("d", "r", "t", TiState::Success).await;
    world.plan().await;
    assert_eq!(world.shown("d", "r").await, "running: t running, after none");
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success, after success");
    assert_eq!(world.outcomes("d", "r", "t").await, "cancelled none");
}

#[tokio::test]
async fn a_mark_of_one_mapped_instance_leaves_the_others_to_run() {
    let text = "
dag_id: d
tasks:
  a: {run: x}
  m: {run: x, depends_on: [a], expand: {x: [1, 2, 3]}}
  last: {run: x, depends_on: [m]}
";
    for name in ["m[0]", "m[1]"] {
        let mut world = World::of(&[text]).await;
        world.script(|what| if what.task_id == "a" { stay() } else { exit(0) });
        world.trigger("d", "r").await;
        world.settle().await;
        world.mark("d", "r", name, TiState::Success).await;
        world.settle().await;
        world.machine.finish("a", exit(0));
        world.finish().await;
        assert_eq!(
            world.shown("d", "r").await,
            "success: a success, m[0] success, m[1] success, m[2] success, last success"
        );
        assert_eq!(world.machine.starts("r").len(), 4);
    }
}

#[tokio::test]
async fn a_mark_that_changes_nothing_leaves_a_finished_run_alone() {
    let mut world = World::of(&[PAIR]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    let before = world.run("d", "r").await;
    world.mark("d", "r", "t", TiState::Success).await;
    let only =
        fencepost_engine::operations::clear::ClearRequest { only_failed: true, ..clears("d", "r") };
    assert!(world.clear_by(only).await.is_empty());
    assert_eq!(world.run("d", "r").await, before);
}

#[tokio::test]
async fn a_failed_run_becomes_good_when_its_failed_leaf_is_marked() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| exit(u8::from(what.task_id == "d")));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.run("d", "r").await.state.as_str(), "failed");
    world.mark("d", "r", "d", TiState::Success).await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: a success, b success, c success, d success");
}

#[tokio::test]
async fn nothing_new_of_a_paused_run_is_queued_until_it_is_resumed() {
    let mut world = World::of(&[PAIR]).await;
    world.trigger("d", "r").await;
    world.plan().await;
    pause_run(&world.cx, "d", "r", true, "me").await.unwrap();
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, "running: t success, after scheduled");
    pause_run(&world.cx, "d", "r", false, "me").await.unwrap();
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success, after success");
    pause_run(&world.cx, "d", "nothing", true, "me").await.unwrap_err();
}

#[tokio::test]
async fn a_cancel_wins_over_a_clear_a_mark_and_a_loss_that_are_under_way() {
    for before in ["clear", "mark"] {
        for ending in [Ending::Stopped, Ending::Exit(0), Ending::Signal(9)] {
            let mut world = World::of(&[PAIR]).await;
            world.script(|_| stay());
            world.trigger("d", "r").await;
            world.settle().await;
            if before == "clear" {
                world.clear("d", "r", &["t"]).await;
            } else {
                world.mark("d", "r", "t", TiState::Success).await;
            }
            world.cancel("d", "r").await;
            let token = world.machine.token_of("t");
            world.machine.end(token, ending);
            world.finish().await;
            assert_eq!(world.shown("d", "r").await, "cancelled: t failed, after skipped");
            assert_eq!(world.machine.order().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_held_task_is_cancelled_at_once() {
    let mut world = World::of(&[PAIR]).await;
    world.script(|_| crate::world::gone());
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.ti("d", "r", "t").await.state, TiState::Held);
    world.cancel("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t skipped, after skipped");
    let unknown = cancel(&world.cx, "nobody", "r", false, "me").await.unwrap_err();
    assert!(matches!(unknown, EngineError::Refused(Refusal::NoDag(_))));
    let unknown = cancel(&world.cx, &request("d", "r").dag_id, "x", false, "me").await.unwrap_err();
    assert!(matches!(unknown, EngineError::Refused(Refusal::NoRun { .. })));
}
