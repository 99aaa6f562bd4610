//! Roles with a lease of their own: hearts, the assertion before each write, the end of a loop.

use crate::world::{BEAT, SCAN, TTL, World, lease};
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::liveness::Phase;
use fencepost_core::state::{JobKind, JobState};
use fencepost_core::time::Span;
use fencepost_engine::dispatcher::Dispatcher;
use fencepost_engine::drive::{Ended, drive};
use fencepost_engine::liveness::{Beaten, Heart, Stopped, enroll};
use fencepost_engine::operations::dag_files::load;
use fencepost_engine::operations::register::Identity;
use fencepost_engine::scheduler::Scheduler;
use fencepost_engine::{Cx, Pass, Settings};
use fencepost_store::StoreErrorKind;
use fencepost_store::query::installation;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::watch;

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x}
";

/// A world with one watching scheduler, and another scheduler with a lease of its own.
async fn two_schedulers(guards: Guards) -> (World, Cx) {
    let settings = Settings { guards, ..World::settings() };
    let mut world = World::with(&[ONE], settings, 1).await;
    world.share(&["one"], 1).await;
    let own = enrolled(&world, "two").await;
    (world, own)
}

async fn enrolled(world: &World, name: &str) -> Cx {
    let who =
        Identity { kind: JobKind::Scheduler, ..world.workers[0].identity(world.cx.env.job_id()) };
    enroll(&world.cx, &Identity { name: name.into(), ..who }, lease()).await.unwrap()
}

/// Whether a scheduler whose lease is over can still queue a task.
async fn a_stale_scheduler_writes(guards: Guards) -> bool {
    let (mut world, own) = two_schedulers(guards).await;
    world.workers[0].is_paused = true;
    let job = own.own.as_ref().unwrap().job_id;
    world.until_lost(job).await;
    world.trigger("d", "r").await;
    let before = world.shown("d", "r").await;
    let mut errors = Vec::new();
    for pass in [&mut Scheduler as &mut dyn Pass, &mut Dispatcher] {
        errors.extend(pass.pass(&own).await.err());
    }
    let wrote = world.shown("d", "r").await != before;
    assert_eq!(errors.iter().any(|error| error.is_fenced()), !wrote, "{errors:?}");
    wrote
}

#[tokio::test]
async fn a_scheduler_whose_lease_is_over_changes_nothing() {
    assert!(!a_stale_scheduler_writes(Guards::all()).await);
}

#[tokio::test]
async fn without_the_own_lease_assertion_a_stale_scheduler_writes() {
    assert!(a_stale_scheduler_writes(Guards::all().without(Guard::OwnLease)).await);
}

#[tokio::test]
async fn a_scheduler_of_an_older_epoch_changes_nothing() {
    let (world, own) = two_schedulers(Guards::all()).await;
    assert!(own.store.begin("test").await.is_ok());
    let tx = world.cx.store.begin("test").await.unwrap();
    installation::raise_epoch(&tx, 9).await.unwrap();
    tx.commit().await.unwrap();
    let error = own.store.begin("test").await.unwrap_err();
    assert_eq!(error.kind, StoreErrorKind::Fenced);
}

#[tokio::test]
async fn a_heart_that_beats_keeps_its_role_alive_and_one_that_stops_does_not() {
    let (mut world, cx) = two_schedulers(Guards::all()).await;
    let own = Arc::clone(cx.own.as_ref().unwrap());
    let heart = Heart::new(world.cx.clone(), Arc::clone(&own));
    let never = |_: Span| std::future::pending::<()>();
    for _ in 0..20 {
        world.live(BEAT).await;
        assert_eq!(heart.beat_once(&never).await, Beaten::Renewed);
    }
    assert_eq!(own.phase(world.clock.boottime()), Phase::Acting);
    world.live(Span::from_secs(24)).await;
    assert_eq!(own.phase(world.clock.boottime()), Phase::Fencing);
    world.until_lost(own.job_id).await;
    assert_eq!(heart.beat_once(&never).await, Beaten::Over);
}

#[tokio::test]
async fn a_beat_without_an_answer_is_missed_and_says_how_old_the_loop_is() {
    let (world, cx) = two_schedulers(Guards::all()).await;
    let own = Arc::clone(cx.own.as_ref().unwrap());
    let heart = Heart::new(world.cx.clone(), Arc::clone(&own));
    own.turned(world.clock.boottime());
    world.pass_time(Span::from_secs(7));
    let never = |_: Span| std::future::pending::<()>();
    assert_eq!(heart.beat_once(&never).await, Beaten::Renewed);
    assert_eq!(world.job(own.job_id).await.loop_age, Span::from_secs(7));
    // The writer is taken: no answer comes before the deadline.
    let busy = world.cx.store.begin("test").await.unwrap();
    let at_once = |_: Span| std::future::ready(());
    assert!(matches!(heart.beat_once(&at_once).await, Beaten::Missed(_)));
    drop(busy);
    let t0 = world.clock.boottime();
    world.pass_time(SCAN);
    assert_eq!(heart.beat_once(&never).await, Beaten::Renewed);
    assert!(own.phase(t0.plus(SCAN).plus(Span::from_secs(23))) == Phase::Acting);
}

#[tokio::test]
async fn a_heart_and_its_loop_end_when_their_job_is_lost() {
    let (mut world, cx) = two_schedulers(Guards::all()).await;
    let own = Arc::clone(cx.own.as_ref().unwrap());
    world.until_lost(own.job_id).await;
    assert_eq!(world.job(own.job_id).await.state, JobState::Lost);
    let (_stop, stopped) = watch::channel(false);
    let heart = Heart::new(world.cx.clone(), Arc::clone(&own));
    let never = |_: Span| std::future::pending::<()>();
    assert_eq!(heart.run(never, stopped.clone()).await, Stopped::Over);
    let passes: Vec<Box<dyn Pass>> = vec![Box::new(Scheduler), Box::new(Dispatcher)];
    assert_eq!(drive(cx, passes, Arc::default(), stopped).await, Ended::Fenced);
}

#[tokio::test]
async fn a_loop_whose_lease_runs_out_ends_before_anybody_says_so() {
    let (world, cx) = two_schedulers(Guards::all()).await;
    world.pass_time(TTL);
    let (_stop, stopped) = watch::channel(false);
    assert_eq!(drive(cx.clone(), Vec::new(), Arc::default(), stopped).await, Ended::Fenced);
    let job = cx.own.as_ref().unwrap().job_id;
    assert_eq!(world.job(job).await.state, JobState::Running);
}

#[tokio::test]
async fn a_dag_is_active_while_a_live_scheduler_has_its_file() {
    let (mut world, first) = two_schedulers(Guards::all()).await;
    let second = enrolled(&world, "three").await;
    let (has, nothing) = (world.present.clone(), BTreeSet::new());
    load(&first, &[], &has).await.unwrap();
    // An empty folder of one of them switches nothing off, nor does its leaving.
    let loaded = load(&second, &[], &nothing).await.unwrap();
    assert_eq!(loaded.deactivated, Vec::<String>::new());
    assert!(world.dag("d").await.is_active);
    // The one that has it dies: the other's next look counts.
    world.until_lost(first.own.as_ref().unwrap().job_id).await;
    let third = enrolled(&world, "four").await;
    assert_eq!(load(&third, &[], &nothing).await.unwrap().deactivated, ["d"]);
    assert!(!world.dag("d").await.is_active);
}
