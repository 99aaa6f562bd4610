//! Each guard is needed: with it switched off, what it prevents happens and is seen.
//!
//! The guards of the observer are tested in the core, that of the own lease in `roles`, the compare and
//! set of a declaration in `leases`.

use crate::world::{BEAT, SCAN, TTL, Worker, World, end_report, exit, stay};
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::state::JobState;
use fencepost_core::time::Span;
use fencepost_engine::Settings;
use fencepost_engine::doctor;
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_engine::liveness::{Beat, renew};
use fencepost_engine::operations::Answer;
use fencepost_engine::operations::claim::{Wants, claim};
use fencepost_engine::operations::register::{Identity, register};
use fencepost_engine::operations::report::report;
use fencepost_engine::operations::start::{StartRequest, start};

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x}
";

async fn world(guards: Guards) -> World {
    let settings = Settings { guards, ..World::settings() };
    let mut world = World::with(&[ONE], settings, 1).await;
    world.share(&["one"], 1).await;
    world.script(|_| stay());
    world
}

/// `t` runs at the first worker, which falls silent and is lost; the second one has it then.
async fn replaced(guards: Guards) -> World {
    let mut world = world(guards).await;
    world.machine.counts_overlaps = true;
    world.trigger("d", "r").await;
    world.settle().await;
    world.workers[0].is_paused = true;
    world.workers.push(Worker::leased("two", 8));
    world.until_lost(world.workers[0].job.unwrap()).await;
    world.settle().await;
    world
}

async fn violations(world: &World) -> usize {
    doctor::examine(&world.cx).await.unwrap().violations.len()
}

/// The old attempt's worker says, too late, that it succeeded.
async fn late_result(guards: Guards) -> (Answer, usize) {
    let world = replaced(guards).await;
    let attempts = world.attempts("d", "r", "t").await;
    let said = end_report(attempts[0].token, &exit(0)).unwrap();
    let job = world.workers[0].job.unwrap();
    let answer = report(&world.cx, job, vec![said]).await.unwrap().remove(0);
    (answer, violations(&world).await)
}

#[tokio::test]
async fn without_the_token_check_a_late_result_is_taken() {
    let (answer, found) = late_result(Guards::all()).await;
    assert!(matches!(answer, Answer::Refused(..)) && found == 0, "{answer:?} {found}");
    let (answer, found) = late_result(Guards::all().without(Guard::FinishToken)).await;
    assert!(answer == Answer::Accepted && found > 0, "{answer:?} {found}");
}

/// The old attempt is started once more.
async fn late_start(guards: Guards) -> Answer {
    let world = replaced(guards).await;
    let token = world.attempts("d", "r", "t").await[0].token;
    // By the second worker, whose job is alive: only the token is in the way.
    let job = world.workers[1].job.unwrap();
    let request = StartRequest { token, start_id: "late".into(), boot_id: "boot".into(), call: 0 };
    start(&world.cx, job, &[request]).await.unwrap().remove(0)
}

#[tokio::test]
async fn without_the_token_check_an_old_attempt_is_started_again() {
    assert!(matches!(late_start(Guards::all()).await, Answer::Refused(..)));
    let guards = Guards::all().without(Guard::StartToken);
    assert_eq!(late_start(guards).await, Answer::Accepted);
}

#[tokio::test]
async fn without_the_local_deadline_two_processes_of_one_task_run_at_once() {
    assert_eq!(replaced(Guards::all()).await.machine.overlaps, 0);
    // What a worker without a deadline of its own gives its shims.
    let mut world = world(Guards::all().without(Guard::LocalDeadline)).await;
    world.machine.counts_overlaps = true;
    world.machine.ignores_deadlines = true;
    world.trigger("d", "r").await;
    world.settle().await;
    world.workers[0].is_paused = true;
    world.workers.push(Worker::leased("two", 8));
    world.until_lost(world.workers[0].job.unwrap()).await;
    world.settle().await;
    assert_eq!(world.machine.overlaps, 1);
}

/// A process dies before its request to register arrives; its successor in the home has the claim when
/// it does. Whether the attempt is still the successor's, and that one's job alive.
async fn late_registration(guards: Guards) -> (bool, bool) {
    let mut world = world(guards).await;
    let first = world.workers[0].identity(world.workers[0].job.unwrap());
    world.trigger("d", "r").await;
    world.settle().await;
    let late = Identity { job_id: world.cx.env.job_id(), ..first };
    world.workers[0].forget();
    world.settle().await;
    let second = world.workers[0].job.unwrap();
    let answer = register(&world.cx, &late).await;
    let refused = matches!(answer, Err(EngineError::Refused(Refusal::StaleHome { .. })));
    assert_eq!(refused, answer.is_err(), "{answer:?}");
    let owner = world.attempts("d", "r", "t").await[0].job_id;
    (owner == Some(second), world.job(second).await.state == JobState::Running)
}

#[tokio::test]
async fn without_the_order_of_registrations_a_dead_process_takes_its_home_back() {
    assert_eq!(late_registration(Guards::all()).await, (true, true));
    let guards = Guards::all().without(Guard::RegisterOrder);
    assert_eq!(late_registration(guards).await, (false, false));
}

/// A worker that was declared lost asks for work.
async fn claims_of_the_lost(guards: Guards) -> usize {
    let mut world = world(guards).await;
    world.workers[0].is_paused = true;
    let job = world.workers[0].job.unwrap();
    world.until_lost(job).await;
    world.settle().await;
    world.trigger("d", "r").await;
    world.plan().await;
    world.claim_by_hand(1).await.len()
}

#[tokio::test]
async fn without_a_look_at_the_owner_the_lost_go_on_claiming() {
    assert_eq!(claims_of_the_lost(Guards::all()).await, 0);
    assert_eq!(claims_of_the_lost(Guards::all().without(Guard::OwnerAlive)).await, 1);
}

/// A claim begins, its worker is declared lost and worked off, and the claim goes on.
async fn claims_across_a_declaration(guards: Guards) -> usize {
    let mut world = world(guards).await;
    world.workers[0].is_paused = true;
    let job = world.workers[0].job.unwrap();
    let observed = world.job(job).await.renew_seq;
    world.pass_time(TTL.times(2));
    world.trigger("d", "r").await;
    world.plan().await;
    let cx = world.raced_cx("claim:begin", move |cx| async move {
        crate::world::declare_lost(&cx, job, observed).await;
    });
    let queues = ["default".to_owned()];
    let wants = Wants { call: 0, held: &[], queues: &queues, free_slots: 1 };
    claim(&cx, job, &wants).await.unwrap();
    violations(&world).await
}

#[tokio::test]
async fn without_the_row_lock_a_claim_crosses_a_declaration_and_is_a_ghost() {
    assert_eq!(claims_across_a_declaration(Guards::all()).await, 0);
    let guards = Guards::all().without(Guard::DeclareRowLock);
    assert!(claims_across_a_declaration(guards).await > 0);
}

/// The same beat again and again, from a network that repeats it; its sender is long dead.
async fn a_repeated_beat(guards: Guards) -> JobState {
    let mut world = world(guards).await;
    let job = world.workers[0].job.unwrap();
    world.workers[0].is_paused = true;
    for _ in 0..20 {
        world.live(BEAT).await;
        let beat = Beat { job, seq: 1, loop_age: Span::ZERO };
        renew(&world.cx, &[beat]).await.unwrap();
        let other = Beat { job, seq: 0, loop_age: Span::ZERO };
        renew(&world.cx, &[other]).await.unwrap();
    }
    world.job(job).await.state
}

#[tokio::test]
async fn without_the_order_of_beats_the_dead_live_on() {
    assert_eq!(a_repeated_beat(Guards::all()).await, JobState::Lost);
    let guards = Guards::all().without(Guard::BeatOrder);
    // Read between two repeats, the number changes each time.
    assert_eq!(a_repeated_beat(guards).await, JobState::Running);
}

/// The observer is sure by its own clock, which runs twice as fast as it should.
async fn judged_by_a_fast_clock(guards: Guards) -> JobState {
    let mut world = world(guards.without(Guard::FitToJudge)).await;
    let job = world.workers[0].job.unwrap();
    world.workers[0].is_paused = true;
    for _ in 0..10 {
        world.pass_time(SCAN);
        // Takes back what the store's clock went on.
        world.clock.jump(Span::from_micros(-SCAN.as_micros()));
        world.pass_time(SCAN);
        world.settle().await;
    }
    world.job(job).await.state
}

#[tokio::test]
async fn without_the_store_s_clock_a_fast_observer_condemns_too_early() {
    assert_eq!(judged_by_a_fast_clock(Guards::all()).await, JobState::Running);
    let guards = Guards::all().without(Guard::StoreClock);
    assert_eq!(judged_by_a_fast_clock(guards).await, JobState::Lost);
}
