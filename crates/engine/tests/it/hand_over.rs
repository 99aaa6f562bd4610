//! A worker dies and another one takes its home over: nothing is lost, nothing is started twice.

use crate::world::{World, exit, stay};
use fencepost_core::time::Span;
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_engine::operations::beat::{self, Beat, Says};
use fencepost_engine::operations::register::{Identity, leave, register};

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x}
";

#[tokio::test]
async fn what_runs_goes_on_under_the_successor_as_the_same_attempt() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let token = world.machine.token_of("t");
    world.pass_time(Span::from_hours(5));
    world.restart().await;
    world.settle().await;
    assert_eq!(world.machine.token_of("t"), token);
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
    assert_eq!(world.attempts("d", "r", "t").await[0].token, token);
    let kinds: Vec<String> = world.events().await.into_iter().map(|e| e.kind).collect();
    assert!(kinds.contains(&"reattached".into()));
}

#[tokio::test]
async fn what_ended_meanwhile_is_reported_by_the_successor() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.faults.down();
    world.machine.finish("t", exit(0));
    world.restart().await;
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

#[tokio::test]
async fn a_claim_that_was_not_started_is_started_under_the_same_token() {
    let mut world = World::of(&[ONE]).await;
    world.settle().await;
    world.trigger("d", "r").await;
    world.plan().await;
    let token = world.claim_one().await;
    world.restart().await;
    world.finish().await;
    assert_eq!(world.machine.ledger[0].0, token);
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

#[tokio::test]
async fn a_start_that_never_happened_is_taken_back_and_made_under_a_new_start_id() {
    let mut world = World::of(&[ONE]).await;
    // It dies between the store's answer and the exec.
    world.settle().await;
    world.trigger("d", "r").await;
    world.plan().await;
    let token = world.claim_one().await;
    world.start_by_hand(token, "old").await;
    world.restart().await;
    world.finish().await;
    let attempts = world.attempts("d", "r", "t").await;
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].token, world.machine.ledger[0].0), (token, token));
    assert_ne!(attempts[0].start_id.as_deref(), Some("old"));
    let kinds: Vec<String> = world.events().await.into_iter().map(|e| e.kind).collect();
    assert!(kinds.contains(&"start_taken_back".into()));
}

#[tokio::test]
async fn a_stop_that_was_asked_for_reaches_the_successor() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.cancel("d", "r").await;
    world.restart().await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t failed");
    assert_eq!(world.outcomes("d", "r", "t").await, "cancelled none");
}

#[tokio::test]
async fn a_stop_of_a_start_that_never_happened_ends_without_a_process() {
    let mut world = World::of(&[ONE]).await;
    world.settle().await;
    world.trigger("d", "r").await;
    world.plan().await;
    let token = world.claim_one().await;
    world.start_by_hand(token, "old").await;
    world.cancel("d", "r").await;
    world.restart().await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t failed");
    assert!(world.machine.order().is_empty());
}

#[tokio::test]
async fn a_registration_whose_answer_was_lost_is_answered_again_in_full() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let token = world.machine.token_of("t");
    let job = world.cx.env.job_id();
    let who = Identity { registration: 99, ..world.workers[0].identity(job) };
    for _ in 0..2 {
        let handed = register(&world.cx, &who).await.unwrap();
        let tokens: Vec<_> = handed.iter().map(|one| one.attempt.token).collect();
        assert_eq!(tokens, [token]);
    }
}

#[tokio::test]
async fn a_registration_that_arrives_after_its_successors_takes_nothing_away() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let old = world.workers[0].identity(world.workers[0].job.unwrap());
    world.restart().await;
    world.settle().await;
    let owner = world.attempt(world.machine.token_of("t")).await.job_id;
    let late = register(&world.cx, &old).await.unwrap_err();
    assert!(matches!(late, EngineError::Refused(Refusal::StaleHome { .. })), "{late}");
    assert_eq!(world.attempt(world.machine.token_of("t")).await.job_id, owner);
    // Nor does its beat bring it back.
    let late = Beat {
        job_id: old.job_id,
        seq: 99,
        loop_age: Span::ZERO,
        call: 0,
        inventory: vec![],
        says: Says::Nothing,
        unanswered: vec![],
        unstarted: vec![],
        epoch: 0,
        reconciles: false,
        checkpoints: vec![],
        levels: Vec::new(),
    };
    beat::take(&world.cx, &[late]).await.unwrap();
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
}

#[tokio::test]
async fn a_worker_that_left_in_order_is_succeeded_too() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    leave(&world.cx, world.workers[0].job.unwrap()).await.unwrap();
    world.restart().await;
    world.settle().await;
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

#[tokio::test]
async fn a_queued_attempt_keeps_its_token_over_a_restart() {
    let mut world = World::of(&[ONE]).await;
    world.trigger("d", "r").await;
    world.plan().await;
    let before = world.ti("d", "r", "t").await.token.unwrap();
    world.restart().await;
    world.finish().await;
    assert_eq!(world.machine.ledger[0].0, before);
    world.trigger("d", "r2").await;
    world.finish().await;
    assert!(world.machine.ledger[1].0.epoch() > before.epoch());
}
