//! Incidents: one death with what it took, open until nobody has to think of it.

use crate::world::{Act, SCAN, TTL, Worker, World, end_report, exit, stay};
use fencepost_core::id::Token;
use fencepost_core::verdict::{Death, Ending};
use fencepost_engine::error::EngineError;
use fencepost_engine::liveness::incidents::close_by_hand;
use fencepost_engine::operations::Answer;
use fencepost_engine::operations::confirm_dead::confirm_dead;
use fencepost_engine::operations::inspect::{Question, inspect};
use fencepost_engine::operations::register::{Identity, register};
use fencepost_engine::operations::report::report;
use fencepost_engine::operations::run_control::AttemptRef;
use fencepost_engine::operations::workers;
use fencepost_store::query::attempt::{self, afterwards};
use fencepost_store::query::incident::Incident;

const TASK: &str = "
dag_id: d
tasks:
  t: {run: x, infra_retries: 9}
";

/// A world whose worker ran `t` at that level and was declared lost; what it left was replaced.
async fn died(level: &str) -> (World, Token) {
    let mut world = World::shared(&[TASK], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let token = world.machine.token_of("t");
    let tx = world.cx.store.begin("test").await.unwrap();
    attempt::set_level(&tx, token, level).await.unwrap();
    tx.commit().await.unwrap();
    world.workers[0].is_paused = true;
    world.until_lost(world.workers[0].job.unwrap()).await;
    world.workers.push(Worker::leased("two", 8));
    world.script(|_| exit(0));
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
    (world, token)
}

async fn doubtful(world: &World, token: Token) -> bool {
    let tx = world.cx.store.read("test").await.unwrap();
    !afterwards::doubtful(&tx, &[token]).await.unwrap().is_empty()
}

/// A scan later: what became of the one incident.
async fn later(world: &mut World) -> Incident {
    world.live(TTL).await;
    let mut found = world.incidents().await;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[tokio::test]
async fn what_the_kernel_has_ended_leaves_no_doubt_and_its_incident_closes_by_itself() {
    let (mut world, token) = died("pidns").await;
    assert!(!doubtful(&world, token).await);
    let closed = later(&mut world).await;
    assert!(closed.closed_at.is_some() && closed.attempts == 1, "{closed:?}");
    let tx = world.cx.store.read("test").await.unwrap();
    assert_eq!(afterwards::of_incident(&tx, closed.id, 0, 10).await.unwrap(), [token]);
    let by = afterwards::replaced_by(&tx, &[token]).await.unwrap();
    assert!(by.len() == 1 && by[0].0 == token && by[0].1 > token, "{by:?}");
}

#[tokio::test]
async fn what_may_still_run_keeps_it_open_until_its_own_late_report() {
    let (mut world, token) = died("group").await;
    assert!(doubtful(&world, token).await);
    let zombies = inspect(&world.cx, Question::Zombies).await.unwrap();
    assert!(zombies.len() == 1 && zombies[0].detail.contains("may still run"), "{zombies:?}");
    assert!(later(&mut world).await.closed_at.is_none());
    let said = end_report(token, &Act { ending: Some(Ending::Exit(0)), ..stay() }).unwrap();
    let job = world.workers[0].job.unwrap();
    report(&world.cx, job, vec![said]).await.unwrap();
    assert!(!doubtful(&world, token).await);
    assert!(later(&mut world).await.closed_at.is_some());
    assert_eq!(world.outcomes("d", "r", "t").await, "lost infra, success none");
}

#[tokio::test]
async fn a_word_about_the_attempt_or_about_its_worker_ends_the_doubt() {
    let (mut world, token) = died("cgroup").await;
    let name = AttemptRef::Token(token);
    confirm_dead(&world.cx, &name, "anna", Some("seen")).await.unwrap();
    assert!(!doubtful(&world, token).await);
    assert!(later(&mut world).await.closed_at.is_some());
    // Twice is once too often: it is over, and known to be.
    let again = confirm_dead(&world.cx, &name, "anna", None).await;
    assert!(matches!(again, Err(EngineError::Refused(_))), "{again:?}");

    let (mut world, token) = died("group").await;
    let meant = workers::mortals(&world.cx, "one").await.unwrap();
    workers::confirm(&world.cx, &meant[0], "anna", None).await.unwrap();
    assert!(!doubtful(&world, token).await);
    assert!(later(&mut world).await.closed_at.is_some());
}

#[tokio::test]
async fn a_person_closes_it_once_and_with_a_reason() {
    let (mut world, token) = died("group").await;
    let open = later(&mut world).await;
    assert!(close_by_hand(&world.cx, open.id, "anna", "scrapped").await.unwrap());
    assert!(!close_by_hand(&world.cx, open.id, "bob", "me too").await.unwrap());
    let closed = later(&mut world).await;
    assert_eq!(closed.closed_by.as_deref(), Some("anna"));
    assert_eq!(closed.close_reason.as_deref(), Some("scrapped"));
    assert!(doubtful(&world, token).await, "that says nothing about the processes");
    let lines = world.events().await;
    assert_eq!(lines.iter().filter(|line| line.kind == "incident_closed").count(), 1);
}

/// Nobody declares it: it comes back, and says what is gone.
#[tokio::test]
async fn a_worker_that_comes_back_without_its_tasks_is_an_incident_by_evidence() {
    let mut world = World::shared(&[TASK], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let (token, dead) = (world.machine.token_of("t"), world.workers[0].job.unwrap());
    world.workers[0].is_paused = true;
    world.machine.end(token, Ending::Gone(Death::Single));
    let successor = world.cx.env.job_id();
    let who = world.workers[0].identity(successor);
    let who = Identity { registration: who.registration + 1, ..who };
    register(&world.cx, &who).await.unwrap();
    let act = Act { ending: Some(Ending::Gone(Death::Single)), ..stay() };
    let mut said = end_report(token, &act).unwrap();
    said.evidence = Some("boot_id".into());
    let answers = report(&world.cx, successor, vec![said]).await.unwrap();
    assert_eq!(answers, [Answer::Accepted]);
    world.workers.push(Worker::leased("two", 8));
    world.script(|_| exit(0));
    world.live(SCAN).await;
    let found = world.incidents().await.remove(0);
    assert_eq!((found.kind.as_str(), found.attempts, found.job_id), ("evidence", 1, dead));
    assert_eq!(found.evidence["kind"], "boot_id");
    assert!(!doubtful(&world, token).await);
    world.live(TTL).await;
    let closed = world.incidents().await.into_iter().find(|one| one.job_id == dead).unwrap();
    assert!(closed.closed_at.is_some(), "{closed:?}");
}
