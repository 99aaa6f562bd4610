//! Attempts that nobody claims, claims that nobody starts.

use crate::world::{World, exit};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Span;
use fencepost_engine::Settings;
use fencepost_engine::operations::claim::{Wants, claim, release};
use fencepost_engine::operations::start::{StartRequest, start};
use fencepost_engine::operations::{Answer, Refused};

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x, queued_timeout: 20m}
";

async fn claims_it(world: &mut World) -> fencepost_core::id::Token {
    // Its worker registers and claims by hand, and then says nothing more.
    world.settle().await;
    world.trigger("d", "r").await;
    world.plan().await;
    let token = world.claim_one().await;
    world.workers[0].is_paused = true;
    token
}

fn starts(token: fencepost_core::id::Token) -> StartRequest {
    StartRequest { token, start_id: "late".into(), boot_id: "boot".into(), call: 0 }
}

#[tokio::test]
async fn an_attempt_that_nobody_claims_is_made_anew_and_costs_nothing() {
    let mut world = World::of(&[ONE]).await;
    world.workers[0].is_paused = true;
    world.trigger("d", "r").await;
    world.settle().await;
    world.pass_time(Span::from_mins(20));
    world.settle().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "never_ran none, queued");
    world.workers[0].is_paused = false;
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "never_ran none, success none");
    assert_eq!(world.ti("d", "r", "t").await.try_number, 1);
    let attempts = world.attempts("d", "r", "t").await;
    assert_eq!(attempts[0].reason.as_deref(), Some("queued_timeout"));
    assert_eq!(attempts[1].prev_outcome, "first");
}

#[tokio::test]
async fn a_claim_that_is_not_started_is_taken_back_and_its_late_start_refused() {
    let mut world = World::of(&[ONE]).await;
    let token = claims_it(&mut world).await;
    world.pass_time(Span::from_secs(60));
    world.plan().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "never_ran none, queued");
    let job = world.workers[0].job.unwrap();
    let late = start(&world.cx, job, &[starts(token)]).await.unwrap();
    assert!(matches!(&late[0], Answer::Refused(Refused::Superseded, _)), "{late:?}");
    assert!(world.machine.order().is_empty());
    world.workers[0].is_paused = false;
    world.finish().await;
    assert_eq!(world.machine.order(), ["t"]);
}

#[tokio::test]
async fn a_claim_is_not_taken_back_before_its_time() {
    let mut world = World::of(&[ONE]).await;
    let token = claims_it(&mut world).await;
    world.pass_time(Span::from_secs(59));
    world.plan().await;
    assert_eq!(world.attempt(token).await.state, AttemptState::Claimed);
    let job = world.workers[0].job.unwrap();
    let answers = start(&world.cx, job, &[starts(token)]).await.unwrap();
    assert_eq!(answers, [Answer::Accepted]);
    world.pass_time(Span::from_hours(3));
    world.plan().await;
    assert_eq!(world.attempt(token).await.state, AttemptState::Running);
}

/// The second try is claimed, and begins half a minute later: nothing of the first one is held against it.
#[tokio::test]
async fn a_slow_start_of_a_retry_inherits_nothing() {
    let text = ONE.replace("queued_timeout: 20m", "retries: 1, retry_delay: 1s");
    let mut world = World::of(&[&text]).await;
    world.script(|_| exit(1));
    world.trigger("d", "r").await;
    world.settle().await;
    world.workers[0].is_paused = true;
    world.pass_time(Span::from_hours(1));
    world.plan().await;
    let token = world.claim_one().await;
    world.pass_time(Span::from_secs(30));
    world.plan().await;
    let job = world.workers[0].job.unwrap();
    let answers = start(&world.cx, job, &[starts(token)]).await.unwrap();
    assert_eq!(answers, [Answer::Accepted]);
    world.plan().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "failed user, running");
    let attempts = world.attempts("d", "r", "t").await;
    assert_ne!(attempts[0].start_id, attempts[1].start_id);
    assert_eq!(attempts[1].started_at, Some(world.now()));
}

#[tokio::test]
async fn requeues_without_a_start_are_bounded_and_a_clear_begins_anew() {
    let settings = Settings { requeue_limit: 3, ..World::settings() };
    let mut world = World::with(&[ONE], settings, 1).await;
    world.workers[0].is_paused = true;
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.why("d", "r", "t").await, "failed (queued_timeout)");
    assert_eq!(world.attempts("d", "r", "t").await.len(), 4);
    world.clear("d", "r", &[]).await;
    world.settle().await;
    world.pass_time(Span::from_mins(20));
    world.settle().await;
    assert_eq!(world.ti("d", "r", "t").await.state.as_str(), "queued");
    world.workers[0].is_paused = false;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
}

#[tokio::test]
async fn a_start_sets_the_count_of_requeues_back() {
    let settings = Settings { requeue_limit: 3, ..World::settings() };
    let text = "
dag_id: d
tasks:
  t: {run: x, queued_timeout: 20m, retries: 9, retry_delay: 1s}
";
    let mut world = World::with(&[text], settings, 1).await;
    world.script(|what| exit(u8::from(what.try_number < 6)));
    world.trigger("d", "r").await;
    for _ in 0..5 {
        for _ in 0..2 {
            world.workers[0].is_paused = true;
            world.pass_time(Span::from_secs(1));
            world.settle().await;
            world.pass_time(Span::from_mins(20));
            world.settle().await;
        }
        world.workers[0].is_paused = false;
        world.settle().await;
    }
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
    assert_eq!(world.machine.order().len(), 6);
}

#[tokio::test]
async fn a_claim_that_is_handed_back_is_replaced_at_once() {
    let mut world = World::of(&[ONE]).await;
    let token = claims_it(&mut world).await;
    let job = world.workers[0].job.unwrap();
    assert_eq!(release(&world.cx, job, &[token]).await.unwrap(), [Answer::Accepted]);
    // Once more changes nothing.
    release(&world.cx, job, &[token]).await.unwrap();
    world.workers[0].is_paused = false;
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "never_ran none, success none");
}

#[tokio::test]
async fn a_claim_whose_reply_was_lost_is_delivered_again_within_the_slots() {
    let text = "
dag_id: d
tasks:
  m: {run: x, expand: {x: [1, 2, 3, 4, 5, 6]}}
";
    let mut world = World::of(&[text]).await;
    world.workers[0].slots = 2;
    world.settle().await;
    world.trigger("d", "r").await;
    world.plan().await;
    let job = world.workers[0].job.unwrap();
    let queues = ["default".to_owned()];
    let wants = Wants { call: 0, held: &[], queues: &queues, free_slots: 2 };
    let first = claim(&world.cx, job, &wants).await.unwrap();
    let again = claim(&world.cx, job, &wants).await.unwrap();
    let tokens = |work: &fencepost_engine::operations::claim::Work| {
        work.claimed.iter().map(|(attempt, _)| attempt.token).collect::<Vec<_>>()
    };
    assert_eq!(tokens(&first), tokens(&again));
    world.finish().await;
    assert_eq!(world.machine.order().len(), 6);
}
