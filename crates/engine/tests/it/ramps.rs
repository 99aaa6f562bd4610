//! Recovered work comes back by the ramp of its pool, and fresh work passes beside it.

use crate::world::{TTL, Worker, World, exit, stay};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, JobKind};
use fencepost_core::time::{Span, Timestamp};
use fencepost_engine::Settings;
use fencepost_engine::explain::explain;
use fencepost_engine::operations::Answer;
use fencepost_engine::operations::claim::{Wants, claim, release};

const FOUR_SLOTS: &str = "
dag_id: d
tasks:
  t: {run: x, pool: p, expand: {x: [1, 2, 3, 4]}}
";
const FRESH: &str = "
dag_id: fresh
tasks:
  f: {run: x}
";

/// A world in which the one worker, with four tasks of a pool of four slots, is lost, and another has
/// come in its place.
async fn lost(settings: Settings) -> World {
    let mut world = World::with(&[FOUR_SLOTS, FRESH], settings, 1).await;
    world.share(&["one"], 1).await;
    let tx = world.cx.store.begin("test").await.unwrap();
    fencepost_store::query::pool::make(&tx, "p", 4, "").await.unwrap();
    tx.commit().await.unwrap();
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.machine.running().len(), 4);
    world.workers[0].is_paused = true;
    let job = world.workers[0].job.unwrap();
    world.until_lost(job).await;
    world.workers.push(Worker::leased("two", 8));
    world
}

/// When each attempt that came back was claimed, in order, in milliseconds from the first.
async fn claims(world: &World) -> Vec<i64> {
    let run = world.run("d", "r").await;
    let mut at: Vec<Timestamp> = Vec::new();
    for ti in world.tis_of(&run).await {
        let attempts = world.attempts_of(&ti).await;
        at.extend(attempts.iter().filter(|a| a.ramp.is_some()).filter_map(|a| a.claimed_at));
    }
    at.sort_unstable();
    at.iter().map(|claimed| claimed.since(at[0]).as_millis()).collect()
}

/// Lets the world go on in small steps.
async fn go_on(world: &mut World, span: Span) {
    let (step, end) = (Span::from_millis(50), world.now().plus(span));
    while world.now() < end {
        world.settle().await;
        let next = world.now().plus(step);
        world.clock.set(next);
    }
}

#[tokio::test]
async fn what_was_lost_comes_back_by_the_ramp_and_faster_with_each_second_that_goes_well() {
    let mut world = lost(Settings::default()).await;
    go_on(&mut world, Span::from_secs(4)).await;
    let claims = claims(&world).await;
    assert_eq!(claims.len(), 4, "{claims:?}");
    // One a second at first; twice as fast after each start that makes a second's worth.
    assert!(claims[1] >= 1_000 && claims[2] >= claims[1] + 500, "{claims:?}");
    assert!(claims[3] < 4_000, "{claims:?}");
    let kinds: Vec<String> = world.events().await.into_iter().map(|line| line.kind).collect();
    assert!(kinds.iter().any(|kind| kind == "ramp_delayed"), "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind == "ramp_rate"), "{kinds:?}");
}

/// What a ramp says of an instant that was is asked again: it waits for no clock to come round.
#[tokio::test]
async fn a_store_s_clock_that_was_set_back_keeps_no_recovered_work_waiting() {
    let mut world = lost(Settings::default()).await;
    go_on(&mut world, Span::from_millis(200)).await;
    assert_eq!(claims(&world).await.len(), 1, "the others wait");
    world.clock.jump(Span::from_secs(-4 * 3_600));
    go_on(&mut world, Span::from_secs(20)).await;
    assert_eq!(claims(&world).await.len(), 4);
}

#[tokio::test]
async fn fresh_work_is_not_held_up_behind_it() {
    let mut world = lost(Settings::default()).await;
    world.settle().await;
    world.trigger("fresh", "r").await;
    world.settle().await;
    let state = world.attempts("fresh", "r", "f").await[0].state;
    assert_eq!(state, AttemptState::Running);
    let run = world.run("d", "r").await;
    let mut waiting = 0;
    for ti in world.tis_of(&run).await {
        let last = world.attempts_of(&ti).await.pop().unwrap();
        if last.state == AttemptState::Queued {
            waiting += 1;
            let task = Some((ti.task_id.as_str(), Some(ti.key.map_index)));
            let why = explain(&world.cx, "d", "r", task).await.unwrap();
            assert!(why.summary.contains("recovered work of pool `p`: 3 waiting"), "{why:?}");
            assert!(why.gates.iter().any(|gate| gate.code == "recovery_ramp"));
        }
    }
    assert_eq!(waiting, 3);
}

#[tokio::test]
async fn a_start_that_the_infrastructure_fails_halves_the_pace() {
    let mut world = lost(Settings::default()).await;
    world.workers.clear();
    world.plan().await;
    // One that is claimed and never started.
    let job = world.register(JobKind::Worker, "three").await.job;
    let queues = ["default".to_owned()];
    let wants = Wants { call: 1, held: &[], queues: &queues, free_slots: 4 };
    let claimed: Vec<Token> =
        claim(&world.cx, job, &wants).await.unwrap().claimed.iter().map(|(a, _)| a.token).collect();
    assert_eq!(claimed.len(), 1);
    let next = world.now().plus(Settings::default().start_timeout.plus(Span::from_secs(1)));
    world.clock.set(next);
    world.plan().await;
    let look = world.cx.store.read("test").await.unwrap();
    let ramps = fencepost_store::query::ramp::list(&look).await.unwrap();
    assert_eq!(ramps.len(), 1);
    assert_eq!((ramps[0].0.as_str(), ramps[0].1.rate), ("p", 500));
    drop(look);
    let again = world.attempt(claimed[0]).await;
    let ti = world.tis_of(&world.run("d", "r").await).await;
    let ti = ti.into_iter().find(|ti| ti.key == again.ti).unwrap();
    let last = world.attempts_of(&ti).await.pop().unwrap();
    assert_eq!(last.ramp.as_deref(), Some("p"), "it comes back by the ramp again");
}

/// A worker that leaves in order, or that drains, hands back what it has not started: nothing has failed.
#[tokio::test]
async fn what_a_worker_hands_back_does_not_slow_a_ramp() {
    let mut world = lost(Settings::default()).await;
    world.workers.clear();
    world.plan().await;
    let job = world.register(JobKind::Worker, "three").await.job;
    let queues = ["default".to_owned()];
    let wants = Wants { call: 1, held: &[], queues: &queues, free_slots: 4 };
    let claimed = claim(&world.cx, job, &wants).await.unwrap().claimed;
    let tokens: Vec<Token> = claimed.iter().map(|(attempt, _)| attempt.token).collect();
    assert_eq!(tokens.len(), 1);
    let answers = release(&world.cx, job, &tokens).await.unwrap();
    assert_eq!(answers, [Answer::Accepted]);
    assert_eq!(world.attempt(tokens[0]).await.state, AttemptState::Ended);
    let look = world.cx.store.read("test").await.unwrap();
    let ramps = fencepost_store::query::ramp::list(&look).await.unwrap();
    assert_eq!((ramps[0].0.as_str(), ramps[0].1.rate), ("p", 1_000), "as before");
}

/// Recovered work of a queue that nobody serves is told as that, and not as waiting for its ramp.
#[tokio::test]
async fn recovered_work_that_no_worker_can_take_is_told_as_that() {
    let mut world = lost(Settings::default()).await;
    world.workers.pop();
    world.plan().await;
    let why = explain(&world.cx, "d", "r", Some(("t", Some(0)))).await.unwrap();
    assert!(why.summary.contains("no live worker serves queue `default`"), "{why:?}");
}

#[tokio::test]
async fn a_ramp_ends_when_nothing_waits_for_it() {
    let mut world = lost(Settings::default()).await;
    world.script(|_| exit(0));
    world.finish().await;
    let next = world.now().plus(TTL);
    world.clock.set(next);
    world.settle().await;
    let look = world.cx.store.read("test").await.unwrap();
    assert_eq!(fencepost_store::query::ramp::list(&look).await.unwrap(), []);
    let ended = world.events().await.iter().filter(|line| line.kind == "ramp_ended").count();
    assert_eq!(ended, 1);
}

#[tokio::test]
async fn a_rate_of_its_own_bounds_it() {
    let settings =
        Settings { recovery_initial: 100, recovery_max_rate: Some(1), ..Settings::default() };
    let mut world = lost(settings).await;
    go_on(&mut world, Span::from_secs(5)).await;
    let claims = claims(&world).await;
    assert_eq!(claims.len(), 4);
    assert!(claims.windows(2).all(|two| two[1] - two[0] >= 1_000), "{claims:?}");
}
