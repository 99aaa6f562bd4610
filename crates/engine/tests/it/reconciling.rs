//! A new epoch: nothing is dispatched, claimed or started until the workers have come to it, and what
//! the store has forgotten is ended or recorded again (I20).

use crate::world::{SCAN, TTL, World, stay};
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Span;
use fencepost_core::verdict::Ending;
use fencepost_engine::Settings;
use fencepost_engine::explain::{GateStatus, explain};
use fencepost_engine::liveness;
use fencepost_engine::operations::Answer;
use fencepost_engine::operations::beat::{Beat, Beaten, Says, take};
use fencepost_engine::operations::claim::{Wants, claim};
use fencepost_engine::operations::report::{EndReport, report};
use fencepost_engine::operations::start::{StartRequest, start};
use fencepost_engine::operations::take_over::{Found, Said, take_over};
use fencepost_store::query::{attempt, installation};

const TASKS: &str = "
dag_id: d
tasks:
  a: {run: x}
  b: {run: x, on_lost: hold}
";

/// Two instances that wait under tokens of epoch 1, and a worker with a lease that is played by hand.
async fn world(guards: Guards) -> (World, JobId) {
    let settings = Settings { guards, ..World::settings() };
    let mut world = World::with(&[TASKS], settings, 1).await;
    world.checks = false;
    world.share(&["one"], 1).await;
    world.script(|_| stay());
    let job = world.workers[0].job.unwrap();
    world.workers[0].is_paused = true;
    world.trigger("d", "r").await;
    world.plan().await;
    (world, job)
}

/// The store is another one from here on: it may have lost its last commits.
async fn fails_over(world: &World) {
    let tx = world.cx.store.begin("fail_over").await.unwrap();
    assert_eq!(installation::force_epoch(&tx, 1, 1).await.unwrap(), Some(2));
    tx.commit().await.unwrap();
}

async fn claims(world: &World, job: JobId) -> Vec<Token> {
    let queues = ["default".to_owned()];
    let wants = Wants { call: 1, held: &[], queues: &queues, free_slots: 8 };
    let work = claim(&world.cx, job, &wants).await.unwrap();
    work.claimed.iter().map(|(attempt, _)| attempt.token).collect()
}

async fn starts(world: &World, job: JobId, token: Token) -> Result<Answer, String> {
    let (start_id, boot_id) = ("s".to_owned(), "boot".to_owned());
    let request = StartRequest { token, start_id, boot_id, call: 2 };
    let answers = start(&world.cx, job, &[request]).await;
    answers.map(|mut answers| answers.remove(0)).map_err(|error| error.to_string())
}

async fn ended_well(world: &World, job: JobId, token: Token) -> Result<Answer, String> {
    let said = EndReport {
        token,
        ending: Ending::Exit(0),
        asked: None,
        outputs: Vec::new(),
        level: None,
        message: None,
        exit_code: Some(0),
        signal: None,
        evidence: None,
        checkpoint: None,
        digest: format!("{token}"),
    };
    let answers = report(&world.cx, job, vec![said]).await;
    answers.map(|mut answers| answers.remove(0)).map_err(|error| error.to_string())
}

async fn comes(world: &World, job: JobId, runs: &[Token], unstarted: &[Token]) -> Beaten {
    let seq = world.now().as_micros();
    world.pass_time(Span::from_micros(1));
    let beat = whole(job, seq, runs, unstarted);
    take(&world.cx, &[beat]).await.unwrap().remove(0)
}

/// A whole inventory: what runs, and what was not started.
fn whole(job: JobId, seq: i64, runs: &[Token], unstarted: &[Token]) -> Beat {
    Beat {
        job_id: job,
        seq,
        loop_age: Span::ZERO,
        call: seq,
        inventory: [runs, unstarted].concat(),
        says: Says::All,
        unanswered: Vec::new(),
        unstarted: unstarted.to_vec(),
        epoch: 1,
        reconciles: true,
        checkpoints: Vec::new(),
        levels: Vec::new(),
    }
}

/// A scheduler reads the leases for so long; of the workers only `job` beats.
async fn observes(world: &mut World, job: JobId, time: Span) {
    for _ in 0..=time.as_micros() / SCAN.as_micros() {
        world.pass_time(SCAN);
        let beat = liveness::Beat { job, seq: world.now().as_micros(), loop_age: Span::ZERO };
        liveness::renew(&world.cx, &[beat]).await.unwrap();
        world.watch().await;
    }
}

async fn kinds(world: &World, kind: &str) -> usize {
    world.events().await.iter().filter(|event| event.kind == kind).count()
}

#[tokio::test]
async fn i20_what_is_claimed_in_a_new_epoch_is_claimed_after_all_have_come_to_it() {
    let (mut world, job) = world(Guards::all()).await;
    let before = world.attempts("d", "r", "a").await[0].token;
    fails_over(&world).await;
    assert_eq!(claims(&world, job).await, []);
    world.plan().await;
    let why = explain(&world.cx, "d", "r", Some(("a", None))).await.unwrap();
    let gate = why.gates.iter().find(|gate| gate.code == "epoch_reconciling").unwrap();
    assert_eq!((gate.status, &*gate.holders), (GateStatus::Blocking, &["one".to_owned()][..]));
    assert!(comes(&world, job, &[], &[]).await.is_reconciled);
    world.plan().await;
    // `a` waits under a new token, and `b`, which is never to run twice, until a lease is over.
    let attempts = world.attempts("d", "r", "a").await;
    assert_eq!(attempts.iter().map(|a| a.token.epoch()).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(world.outcomes("d", "r", "b").await, "never_ran none");
    assert_eq!(world.ti("d", "r", "a").await.requeues, 0, "it costs nothing");
    let late = starts(&world, job, before).await.unwrap();
    assert!(matches!(late, Answer::Refused(..)), "{late:?}");
    assert_eq!(claims(&world, job).await, [attempts[1].token]);
    let why = explain(&world.cx, "d", "r", Some(("b", None))).await.unwrap();
    assert!(why.summary.contains("may still run it"), "{}", why.summary);
    observes(&mut world, job, TTL).await;
    world.plan().await;
    claims(&world, job).await;
    assert_eq!(world.outcomes("d", "r", "b").await, "never_ran none, claimed");
    assert_eq!(kinds(&world, "epoch_reconciled").await, 1);
}

#[tokio::test]
async fn i20_what_runs_though_the_store_forgot_it_is_recorded_again_or_ended() {
    let (mut world, job) = world(Guards::all()).await;
    let known = world.attempts("d", "r", "a").await[0].token;
    let forgotten = Token::new(1, 900).unwrap();
    fails_over(&world).await;
    // Its claim and its start are lost; a report of it comes too early.
    assert!(ended_well(&world, job, known).await.is_err());
    let beaten = comes(&world, job, &[known, forgotten], &[]).await;
    assert_eq!((&*beaten.disowned, &*beaten.questions), (&[forgotten][..], &[known][..]));
    assert!(!beaten.is_reconciled);
    world.plan().await;
    assert_eq!(claims(&world, job).await, [], "one is to be ended yet");
    let found = Found::Running { level: "pidns".into() };
    let said = Said { token: known, call: world.now().as_micros(), found };
    assert_eq!(take_over(&world.cx, job, &said).await.unwrap(), Answer::Accepted);
    assert!(!comes(&world, job, &[known, forgotten], &[]).await.is_reconciled);
    assert!(comes(&world, job, &[known], &[]).await.is_reconciled);
    world.plan().await;
    assert_eq!(world.outcomes("d", "r", "a").await, "running");
    assert_eq!(ended_well(&world, job, known).await.unwrap(), Answer::Accepted);
    assert_eq!(world.outcomes("d", "r", "a").await, "success none");
    assert_eq!(kinds(&world, "claim_recorded_again").await, 1);
}

#[tokio::test]
async fn i20_an_inventory_of_the_epoch_before_ends_nothing() {
    let (world, job) = world(Guards::all()).await;
    let known = world.attempts("d", "r", "a").await[0].token;
    fails_over(&world).await;
    let seq = world.now().as_micros();
    let before = Beat { reconciles: false, ..whole(job, seq, &[known], &[]) };
    let beaten = take(&world.cx, &[before]).await.unwrap().remove(0);
    assert_eq!(beaten, Beaten { epoch: 2, ..Beaten::default() });
    // One that numbers nothing cannot say that it runs.
    let old = Beat { call: 0, reconciles: false, ..whole(job, seq + 1, &[known], &[]) };
    let beaten = take(&world.cx, &[old]).await.unwrap().remove(0);
    assert_eq!(beaten.disowned, [known]);
    let old = Beat { call: 0, reconciles: false, ..whole(job, seq + 2, &[], &[]) };
    assert!(take(&world.cx, &[old]).await.unwrap()[0].is_reconciled);
}

#[tokio::test]
async fn i20_a_claim_that_is_known_and_not_started_waits_for_the_others() {
    let (mut world, job) = world(Guards::all()).await;
    let claimed = claims(&world, job).await;
    let other = world.register(fencepost_core::state::JobKind::Worker, "two").await.job;
    fails_over(&world).await;
    assert!(comes(&world, job, &[], &claimed).await.is_reconciled);
    world.plan().await;
    assert!(starts(&world, job, claimed[0]).await.is_err(), "the other one has not come");
    assert!(comes(&world, other, &[], &[]).await.is_reconciled);
    world.plan().await;
    assert_eq!(starts(&world, job, claimed[0]).await.unwrap(), Answer::Accepted);
}

#[tokio::test]
async fn i20_one_that_does_not_come_is_waited_for_as_long_as_a_lease() {
    let (mut world, job) = world(Guards::all()).await;
    world.register(fencepost_core::state::JobKind::Worker, "silent").await;
    fails_over(&world).await;
    assert!(comes(&world, job, &[], &[]).await.is_reconciled);
    observes(&mut world, job, TTL.less(SCAN)).await;
    world.plan().await;
    assert_eq!(claims(&world, job).await, []);
    observes(&mut world, job, SCAN).await;
    world.plan().await;
    assert_eq!(claims(&world, job).await.len(), 2);
}

/// One that has not come is silent while the store's clock is set forward by so much; what is claimed
/// thereafter.
async fn claimed_after_a_step(guards: Guards, step: Span) -> usize {
    let (mut world, job) = world(guards).await;
    world.register(fencepost_core::state::JobKind::Worker, "ends what is forgotten").await;
    fails_over(&world).await;
    assert!(comes(&world, job, &[], &[]).await.is_reconciled);
    observes(&mut world, job, SCAN).await;
    world.clock.jump(step);
    observes(&mut world, job, SCAN.times(2)).await;
    world.plan().await;
    claims(&world, job).await.len()
}

#[tokio::test]
async fn i20_a_step_of_the_stores_clock_does_not_shorten_the_wait() {
    let minutes = Span::from_secs(180);
    assert_eq!(claimed_after_a_step(Guards::all(), minutes).await, 0);
    assert_eq!(claimed_after_a_step(Guards::all(), Span::ZERO).await, 0);
}

#[tokio::test]
async fn without_observation_a_step_of_the_stores_clock_ends_the_wait() {
    let guards = Guards::all().without(Guard::FullTtl);
    assert_eq!(claimed_after_a_step(guards, Span::from_secs(180)).await, 2);
    assert_eq!(claimed_after_a_step(guards, Span::ZERO).await, 0);
}

/// A worker that runs `a`, by a claim that the store has forgotten, and has not been heard in the new
/// epoch; another one has. How many tokens of `a` are given out then.
async fn claimed_twice(guards: Guards) -> usize {
    let (mut world, _) = world(guards).await;
    let second = world.register(fencepost_core::state::JobKind::Worker, "two").await.job;
    fails_over(&world).await;
    comes(&world, second, &[], &[]).await;
    world.plan().await;
    claims(&world, second).await.len()
}

#[tokio::test]
async fn without_reconciliation_what_runs_is_claimed_once_more() {
    assert_eq!(claimed_twice(Guards::all()).await, 0);
    assert_eq!(claimed_twice(Guards::all().without(Guard::EpochReconciliation)).await, 2);
}

/// All others have come; a worker of the old epoch claims without having been heard.
async fn claims_of_one_behind(guards: Guards) -> usize {
    let (mut world, job) = world(guards).await;
    fails_over(&world).await;
    observes(&mut world, job, TTL).await;
    world.plan().await;
    claims(&world, job).await.len()
}

#[tokio::test]
async fn without_the_epoch_of_the_caller_one_that_was_not_heard_claims() {
    assert_eq!(claims_of_one_behind(Guards::all()).await, 0);
    assert_eq!(claims_of_one_behind(Guards::all().without(Guard::Epoch)).await, 2);
}

/// A storage snapshot was put back, with a counter below a token that a worker holds.
#[tokio::test]
async fn i2_a_token_above_the_counter_and_an_epoch_above_the_store_s_force_a_new_one() {
    let (world, job) = world(Guards::all()).await;
    let epoch = async || {
        let tx = world.cx.store.read("look").await.unwrap();
        let standing = installation::standing(&tx).await.unwrap().unwrap();
        (standing.epoch, standing.reconciled)
    };
    let first = world.attempts("d", "r", "a").await[0].token;
    comes(&world, job, &[], &[first]).await;
    assert_eq!(epoch().await, (1, 1), "a token that the store has drawn");
    comes(&world, job, &[Token::new(1, 5_000).unwrap()], &[]).await;
    assert_eq!(epoch().await, (2, 1));
    comes(&world, job, &[Token::new(7, 1).unwrap()], &[]).await;
    assert_eq!(epoch().await, (8, 1));
    // What a token has no room for is nobody's epoch.
    let tx = world.cx.store.read("look").await.unwrap();
    assert_eq!(attempt::look(&tx, &[first]).await.unwrap()[0].state, AttemptState::Queued);
}
