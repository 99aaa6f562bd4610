//! What a person does with workers, and the questions of 02:40.

use crate::world::{BEAT, TTL, Worker, World, exit, stay};
use fencepost_core::id::JobId;
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_engine::Pass;
use fencepost_engine::error::{EngineError, Refusal};
use fencepost_engine::explain::{Gate, GateStatus, explain};
use fencepost_engine::liveness::{Beat, renew};
use fencepost_engine::operations::inspect::{Found, Question, inspect};
use fencepost_engine::operations::workers::{self, confirm, drain, mortals, remove, resume};
use fencepost_engine::scheduler::Scheduler;

/// Longer than a living worker is silent.
const SILENCE: Span = BEAT.times(4);

const TWO: &str = "
dag_id: d
tasks:
  a: {run: x}
  b: {run: x, depends_on: [a]}
";

fn job(world: &World) -> JobId {
    world.workers[0].job.unwrap()
}

async fn ask(world: &World, question: Question) -> Vec<Found> {
    inspect(&world.cx, question).await.unwrap()
}

#[tokio::test]
async fn a_draining_worker_keeps_what_it_has_and_claims_nothing_until_it_is_resumed() {
    let mut world = World::of(&[TWO]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let drained = drain(&world.cx, "one", "anna", Some("new kernel")).await.unwrap();
    assert_eq!(drained.leases, 1);
    // Asked again, it is so already.
    drain(&world.cx, "one", "anna", None).await.unwrap();
    world.machine.finish("a", exit(0));
    world.settle().await;
    assert_eq!(world.outcomes("d", "r", "a").await, "success none");
    assert_eq!(world.machine.ledger.len(), 1, "b was started by a draining worker");
    resume(&world.cx, "one", "anna", None).await.unwrap();
    world.settle().await;
    world.machine.finish("b", exit(0));
    world.finish().await;
    let kinds: Vec<String> = world.events().await.into_iter().map(|e| e.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "worker_drained").count(), 1);
}

#[tokio::test]
async fn explain_says_that_no_scheduler_lives() {
    let mut world = World::shared(&[TWO], &["one"], 1).await;
    world.settle().await;
    let code = async |world: &World| blocking(world, "a").await.map(|gate| gate.code);
    world.trigger("d", "r").await;
    Scheduler.pass(&world.cx).await.unwrap();
    assert_ne!(code(&world).await, Some("scheduler_down"), "nobody has one, as in standalone mode");
    let _scheduler = world.register(JobKind::Scheduler, "s1").await;
    assert_ne!(code(&world).await, Some("scheduler_down"));
    world.pass_time(TTL);
    assert_eq!(code(&world).await, Some("scheduler_down"));
}

/// The one gate that blocks.
async fn blocking(world: &World, task: &str) -> Option<Gate> {
    let told = explain(&world.cx, "d", "r", Some((task, None))).await.unwrap();
    told.gates.into_iter().find(|gate| gate.status == GateStatus::Blocking)
}

#[tokio::test]
async fn explain_says_what_is_known_of_an_attempt_that_is_not_released() {
    let mut world = World::shared(&[TWO], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(blocking(&world, "a").await, None, "it runs");
    world.workers[0].is_paused = true;
    world.pass_time(SILENCE);
    let gate = blocking(&world, "a").await.unwrap();
    assert_eq!(gate.code, "previous_attempt_not_released");
    assert!(gate.text.contains("(silent), last heard of"), "{}", gate.text);
    world.cancel("d", "r").await;
    let gate = blocking(&world, "a").await.unwrap();
    assert!(gate.text.contains("is asked to end (cancel)"), "{}", gate.text);
}

#[tokio::test]
async fn a_worker_whose_loop_stands_still_is_given_no_claims() {
    let mut world = World::shared(&[TWO], &["one"], 1).await;
    world.settle().await;
    world.trigger("d", "r").await;
    world.plan().await;
    let beat = |seq, age| Beat { job: job(&world), seq, loop_age: Span::from_secs(age) };
    renew(&world.cx, &[beat(1_000, 61)]).await.unwrap();
    assert!(world.claim_by_hand(1).await.is_empty());
    renew(&world.cx, &[beat(1_001, 0)]).await.unwrap();
    assert_eq!(world.claim_by_hand(1).await.len(), 1);
}

#[tokio::test]
async fn a_word_about_a_worker_ends_what_it_had_and_its_late_report_is_refused() {
    let mut world = World::of(&[TWO]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let found = mortals(&world.cx, "one").await.unwrap();
    assert_eq!(found.len(), 1);
    world.workers[0].is_paused = true;
    let done = confirm(&world.cx, &found[0], "anna", Some("burnt")).await.unwrap();
    assert_eq!((done.leases, workers::liveness(&done.job, world.now())), (0, "lost"));
    assert_eq!(world.outcomes("d", "r", "a").await, "lost infra");
    let attempts = world.attempts("d", "r", "a").await;
    let evidence = attempts[0].evidence.clone().unwrap();
    assert!(evidence.contains("person"), "{evidence}");
    // Nothing of it is left: a second word is about nobody, and it can be taken off the lists.
    assert!(mortals(&world.cx, "one").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_worker_is_removed_only_when_nothing_of_it_is_left() {
    let mut world = World::of(&[TWO]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let own = job(&world).to_string();
    let refused = remove(&world.cx, &own, "anna").await.unwrap_err();
    assert!(matches!(refused, EngineError::Refused(Refusal::WorkerActive { .. })), "{refused}");
    let unknown = drain(&world.cx, "nobody", "anna", None).await.unwrap_err();
    assert_eq!(unknown, Refusal::NoWorker("nobody".into()).into());
}

#[tokio::test]
async fn each_question_finds_what_it_is_about_and_nothing_else() {
    let mut world = World::of(&[TWO]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    for question in Question::ALL {
        let found = ask(&world, question).await;
        let expected = usize::from(question == Question::Schedulers);
        assert_eq!(found.len(), expected, "{question:?}: {found:?}");
        assert_eq!(Question::parse(question.as_str()).unwrap(), question);
    }
    assert!(Question::parse("everything").is_err());
    // A stop in order leaves what runs to the shims: nobody alive has it for a while.
    fencepost_engine::operations::register::leave(&world.cx, job(&world)).await.unwrap();
    let zombies = ask(&world, Question::Zombies).await;
    assert_eq!(zombies.len(), 1, "{zombies:?}");
    assert_eq!(zombies[0].subject, "d/r/a");
    let orphans = ask(&world, Question::Orphans).await;
    assert_eq!(orphans.len(), 1, "{orphans:?}");
}

#[tokio::test]
async fn a_word_about_a_name_is_not_about_the_one_that_beats() {
    let mut world = World::shared(&[TWO], &["one"], 1).await;
    let own = job(&world);
    let refused = mortals(&world.cx, "one").await.unwrap_err();
    assert!(refused.to_string().contains("alive") && refused.to_string().contains("id"));
    assert_eq!(mortals(&world.cx, &own.to_string()).await.unwrap().len(), 1);
    // It falls silent, and another one on that host beats: the word is about the silent one alone.
    world.workers[0].is_paused = true;
    world.live(SILENCE).await;
    world.workers.push(Worker::leased("two", 1));
    world.settle().await;
    let found = mortals(&world.cx, "host").await.unwrap();
    assert_eq!(found.iter().map(|one| one.job.job_id).collect::<Vec<_>>(), [own]);
}
