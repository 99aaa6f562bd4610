//! Leases among processes: who is declared lost and when, and what becomes of its attempts.

use crate::world::{BEAT, SCAN, TTL, World, exit, stay};
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::state::{AttemptState, JobKind, JobState};
use fencepost_core::time::Span;
use fencepost_engine::Settings;
use fencepost_engine::liveness::{Beat, renew};
use fencepost_engine::operations::register::{Identity, register};
use fencepost_engine::operations::take_over::{Found, Said, take_over};
use fencepost_engine::operations::{Answer, Refused};

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x, retries: 3}
";
const MANY: &str = "
dag_id: d
tasks:
  t: {run: x, expand: {x: [1, 2, 3, 4, 5, 6]}}
";

/// A world whose first worker runs `t` and then falls silent.
async fn silent(file: &str, watchers: usize) -> World {
    let mut world = World::shared(&[file], &["one"], watchers).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.workers[0].is_paused = true;
    world
}

#[tokio::test]
async fn a_silent_worker_is_lost_after_its_ttl_and_its_task_is_replaced_elsewhere() {
    let mut world = silent(ONE, 1).await;
    let (job, token) = (world.workers[0].job.unwrap(), world.machine.token_of("t"));
    let took = world.until_lost(job).await;
    assert!(took >= TTL && took <= TTL.plus(SCAN.times(2)).plus(BEAT), "{took}");
    world.workers.push(crate::world::Worker::leased("two", 8));
    world.script(|_| exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
    let attempts = world.attempts("d", "r", "t").await;
    assert!(attempts[1].token > token && attempts[1].replaces == Some(token));
    assert_eq!(world.ti("d", "r", "t").await.try_number, 1, "the user's retries are untouched");
    let evidence: serde_json::Value =
        serde_json::from_str(attempts[0].evidence.as_deref().unwrap()).unwrap();
    assert_eq!(evidence["kind"], "expiry");
    assert_eq!(evidence["job"], job.to_string());
    for key in ["at", "last_heartbeat_at", "lease_expires_at", "declared_by", "term"] {
        assert!(!evidence[key].is_null(), "{key} is missing in {evidence}");
    }
    let incidents = world.incidents().await;
    assert_eq!((incidents.len(), incidents[0].attempts), (1, 1));
    assert_eq!((incidents[0].job_id, incidents[0].kind.as_str()), (job, "alone"));
    assert!(incidents[0].settled_at.is_some());
}

#[tokio::test]
async fn a_worker_that_beats_is_never_lost_whatever_the_store_s_clock_does() {
    let mut world = World::shared(&[ONE], &["one", "two"], 2).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    for step in [0, 7_200, -3_600, 40, -40, 86_400, -86_400] {
        world.clock.jump(Span::from_secs(step));
        world.live(TTL.times(2)).await;
    }
    assert_eq!(world.incidents().await.len(), 0);
    world.machine.finish("t", exit(0));
    world.settle().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

#[tokio::test]
async fn a_clock_that_went_back_delays_a_declaration_by_one_ttl_at_most() {
    let mut world = silent(ONE, 1).await;
    let job = world.workers[0].job.unwrap();
    world.clock.jump(Span::from_hours(-2));
    let took = world.until_lost(job).await;
    assert!(took <= TTL.times(2).plus(SCAN.times(3)).plus(BEAT), "{took}");
}

/// A beat arrives after the scan that found the job expired, and before its declaration.
async fn beat_before_the_declaration(guards: Guards) -> JobState {
    let settings = Settings { guards, ..World::settings() };
    let mut world = World::with(&[ONE], settings, 1).await;
    world.share(&["one"], 0).await;
    world.workers[0].is_paused = true;
    let job = world.workers[0].job.unwrap();
    world.raced("declare:begin", move |cx| async move {
        let beat = Beat { job, seq: 1_000, loop_age: Span::ZERO };
        renew(&cx, &[beat]).await.unwrap();
    });
    world.live(TTL.plus(BEAT).plus(SCAN.times(3))).await;
    world.job(job).await.state
}

#[tokio::test]
async fn a_beat_that_comes_before_the_declaration_wins() {
    assert_eq!(beat_before_the_declaration(Guards::all()).await, JobState::Running);
}

#[tokio::test]
async fn without_compare_and_set_a_declaration_condemns_one_that_just_beat() {
    // The store's clock would see it too: each of the two is enough.
    let guards = Guards::all().without(Guard::DeclareCompareAndSet).without(Guard::StoreClock);
    assert_eq!(beat_before_the_declaration(guards).await, JobState::Lost);
}

#[tokio::test]
async fn two_schedulers_declare_one_death_once() {
    let mut world = silent(MANY, 2).await;
    let job = world.workers[0].job.unwrap();
    world.until_lost(job).await;
    world.settle().await;
    let incidents = world.incidents().await;
    assert_eq!((incidents.len(), incidents[0].attempts), (1, 6));
    let lost = world.events().await.iter().filter(|line| line.kind == "job_lost").count();
    assert_eq!(lost, 1);
}

#[tokio::test]
async fn a_claim_that_was_never_started_costs_nothing() {
    let mut world = World::shared(&[ONE], &["one"], 1).await;
    world.trigger("d", "r").await;
    world.workers[0].is_paused = true;
    world.settle().await;
    let job = world.workers[0].job.unwrap();
    world.claim_one().await;
    world.until_lost(job).await;
    world.settle().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "never_ran none, queued");
}

#[tokio::test]
async fn a_lost_worker_claims_starts_and_takes_over_nothing() {
    let mut world = silent(ONE, 1).await;
    let (job, token) = (world.workers[0].job.unwrap(), world.machine.token_of("t"));
    world.until_lost(job).await;
    world.settle().await;
    assert!(world.claim_by_hand(1).await.is_empty());
    let late = world.start_by_hand(token, "late").await;
    assert!(matches!(late, Answer::Refused(Refused::Fenced, _)), "{late:?}");
    let taken =
        take_over(&world.cx, job, &Said { token, call: 0, found: Found::NeverRan }).await.unwrap();
    assert!(matches!(taken, Answer::Refused(Refused::Fenced, _)), "{taken:?}");
}

#[tokio::test]
async fn one_that_wakes_up_ends_what_it_had_and_is_a_new_job() {
    let mut world = silent(ONE, 1).await;
    let (job, token) = (world.workers[0].job.unwrap(), world.machine.token_of("t"));
    world.until_lost(job).await;
    assert!(world.machine.running().is_empty(), "its shim ended it before the lease did");
    world.settle().await;
    world.script(|_| exit(0));
    world.workers[0].is_paused = false;
    world.finish().await;
    // What it says of the old attempt comes too late, and is told so.
    assert_eq!(world.workers[0].refusals, [(token, Refused::Superseded)]);
    assert_ne!(world.workers[0].job, Some(job));
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
}

#[tokio::test]
async fn a_report_that_comes_before_its_page_is_taken() {
    let mut world = silent(ONE, 1).await;
    let (job, token) = (world.workers[0].job.unwrap(), world.machine.token_of("t"));
    world.machine.finish("t", exit(0));
    // Declared, and nothing worked off yet: the page's transaction fails.
    world.faults.fail("settle_page:begin");
    while world.job(job).await.state != JobState::Lost {
        world.pass_time(SCAN);
        world.turn().await;
    }
    assert_eq!(world.attempt(token).await.state, AttemptState::Running);
    world.workers[0].is_paused = false;
    world.turn().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
    world.faults.fail("");
    world.finish().await;
    assert_eq!(world.incidents().await[0].attempts, 0);
}

#[tokio::test]
async fn a_silent_scheduler_or_server_is_lost_and_nothing_is_run_again() {
    let mut world = World::shared(&[ONE], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    let scheduler = world.register(JobKind::Scheduler, "s").await;
    let server = world.register(JobKind::Server, "other").await;
    world.live(TTL.times(2)).await;
    for job in [scheduler.job, server.job] {
        assert_eq!(world.job(job).await.state, JobState::Lost);
    }
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

/// What its predecessor's lease says is nothing about it: an attempt lives by its own worker's.
#[tokio::test]
async fn a_replacement_lives_by_the_lease_of_its_own_worker() {
    let mut world = silent(ONE, 1).await;
    world.until_lost(world.workers[0].job.unwrap()).await;
    world.workers.push(crate::world::Worker::leased("two", 8));
    world.live(TTL.times(4)).await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, running");
    assert_eq!(world.incidents().await.len(), 1);
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
}

/// It starts a task and dies before its first beat: its registration counts as one.
#[tokio::test]
async fn a_worker_that_never_beats_is_found_after_its_ttl() {
    let mut world = World::shared(&[ONE], &["one"], 1).await;
    world.workers.clear();
    world.trigger("d", "r").await;
    world.plan().await;
    world.workers.push(crate::world::Worker::leased("two", 8));
    let job = world.register(JobKind::Worker, "two").await.job;
    world.workers[0].job = Some(job);
    world.workers[0].is_paused = true;
    let token = world.claim_one().await;
    assert_eq!(world.start_by_hand(token, "s").await, Answer::Accepted);
    let took = world.until_lost(job).await;
    assert!(took >= TTL && took <= TTL.plus(SCAN.times(2)).plus(BEAT), "{took}");
    world.settle().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, queued");
}

/// A name says nothing: only who comes back to the home takes over what its predecessor had.
#[tokio::test]
async fn a_worker_of_the_same_name_in_another_home_takes_nothing_over() {
    let mut world = silent(ONE, 1).await;
    let (old, token) = (world.workers[0].job.unwrap(), world.machine.token_of("t"));
    let mut other = world.workers[0].clone();
    other.forget();
    let job = world.cx.env.job_id();
    let who = Identity { home_id: "another".into(), ..other.identity(job) };
    assert!(register(&world.cx, &who).await.unwrap().is_empty());
    assert_eq!(world.attempt(token).await.job_id, Some(old));
    assert_eq!(world.job(old).await.state, JobState::Running, "nobody ended it");
    let took = world.until_lost(old).await;
    assert!(took >= TTL, "{took}");
    world.settle().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, queued");
}

#[tokio::test]
async fn the_next_run_begins_when_the_one_before_was_recovered() {
    let text = ONE.replace("tasks:", "max_active_runs: 1\ntasks:");
    let mut world = silent(&text, 1).await;
    world.trigger("d", "next").await;
    world.live(TTL.over(2)).await;
    assert_eq!(world.run("d", "next").await.state.as_str(), "queued");
    world.until_lost(world.workers[0].job.unwrap()).await;
    world.script(|_| exit(0));
    world.workers.push(crate::world::Worker::leased("two", 8));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
    assert_eq!(world.shown("d", "next").await, "success: t success");
}
