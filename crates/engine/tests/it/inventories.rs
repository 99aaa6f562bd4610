//! What a worker does not name it is asked about; only its answer acts.

use crate::world::{World, stay};
use fencepost_core::guard::{Guard, Guards};
use fencepost_core::id::{JobId, Token};
use fencepost_core::liveness::inventory::Digest;
use fencepost_core::time::Span;
use fencepost_core::verdict::{Death, Ending};
use fencepost_engine::Settings;
use fencepost_engine::operations::Answer;
use fencepost_engine::operations::beat::{Beat, Beaten, Says, take};
use fencepost_engine::operations::claim::{Wants, claim};
use fencepost_engine::operations::register::{Identity, register};
use fencepost_engine::operations::report::{EndReport, report};
use fencepost_engine::operations::start::{StartRequest, start};
use fencepost_engine::operations::take_over::{Found, Said, take_over};
use fencepost_store::query::installation;

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x}
";

/// A world whose worker is played by hand, with `t` waiting to be claimed.
async fn world(guards: Guards) -> (World, JobId) {
    let settings = Settings { guards, ..World::settings() };
    let mut world = World::with(&[ONE], settings, 1).await;
    world.settle().await;
    let job = world.workers[0].job.unwrap();
    world.workers[0].is_paused = true;
    world.trigger("d", "r").await;
    world.plan().await;
    (world, job)
}

async fn claims(world: &World, job: JobId, call: i64) -> Token {
    let queues = ["default".to_owned()];
    let wants = Wants { call, held: &[], queues: &queues, free_slots: 1 };
    claim(&world.cx, job, &wants).await.unwrap().claimed[0].0.token
}

async fn starts(world: &World, job: JobId, token: Token, call: i64) -> Answer {
    let (start_id, boot_id) = ("s".to_owned(), "boot".to_owned());
    let request = StartRequest { token, start_id, boot_id, call };
    start(&world.cx, job, &[request]).await.unwrap().remove(0)
}

/// An inventory that names these and nothing else.
pub(crate) fn inventory(job: JobId, call: i64, named: &[Token], unanswered: &[i64]) -> Beat {
    Beat {
        job_id: job,
        seq: call,
        loop_age: Span::ZERO,
        call,
        inventory: named.to_vec(),
        says: Says::All,
        unanswered: unanswered.to_vec(),
        unstarted: Vec::new(),
        epoch: 0,
        reconciles: false,
        checkpoints: Vec::new(),
        levels: Vec::new(),
    }
}

/// A beat tells once how what runs is held together: what is lost without another word is judged by that.
#[tokio::test]
async fn a_beat_tells_how_what_runs_is_held_together() {
    let (world, job) = world(Guards::all()).await;
    let token = claims(&world, job, 1).await;
    let told = async |world: &World, call, level: &str| {
        let levels = vec![(token, level.to_owned())];
        says(world, Beat { levels, ..inventory(job, call, &[token], &[]) }).await;
        world.attempt(token).await.containment
    };
    assert_eq!(told(&world, 2, "pidns").await, None, "nothing runs yet");
    starts(&world, job, token, 3).await;
    assert_eq!(told(&world, 4, "no such level").await, None);
    assert_eq!(told(&world, 5, "pidns").await.as_deref(), Some("pidns"));
    assert_eq!(told(&world, 6, "group").await.as_deref(), Some("pidns"), "it is known already");
}

/// Nothing is to be done.
fn peace() -> Beaten {
    Beaten { epoch: 1, ..Beaten::default() }
}

async fn says(world: &World, beat: Beat) -> Beaten {
    take(&world.cx, &[beat]).await.unwrap().remove(0)
}

/// What a worker reports that has nothing of an attempt.
async fn never_ran(world: &World, job: JobId, token: Token) -> Answer {
    ended(world, job, token, (Ending::NeverRan, None)).await
}

async fn ended(
    world: &World,
    job: JobId,
    token: Token,
    (ending, evidence): (Ending, Option<&str>),
) -> Answer {
    let said = EndReport {
        token,
        ending,
        asked: None,
        outputs: Vec::new(),
        level: None,
        message: None,
        exit_code: None,
        signal: None,
        evidence: evidence.map(ToOwned::to_owned),
        checkpoint: None,
        digest: format!("end of {token}"),
    };
    report(&world.cx, job, vec![said]).await.unwrap().remove(0)
}

async fn questioned(world: &World) -> usize {
    world.events().await.iter().filter(|event| event.kind == "attempt_questioned").count()
}

#[tokio::test]
async fn i24_a_ghost_is_asked_about_and_only_the_answer_acts() {
    let (mut world, job) = world(Guards::all()).await;
    let token = claims(&world, job, 1).await;
    assert_eq!(starts(&world, job, token, 2).await, Answer::Accepted);
    for call in [5, 11] {
        let beaten = says(&world, inventory(job, call, &[], &[])).await;
        assert_eq!(beaten.questions, [token]);
        assert_eq!(world.outcomes("d", "r", "t").await, "running");
    }
    assert_eq!(questioned(&world).await, 1, "one line for the first question");
    assert_eq!(never_ran(&world, job, token).await, Answer::Accepted);
    world.workers[0].is_paused = false;
    world.workers[0].forget();
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "never_ran none, success none");
    let late = starts(&world, job, token, 3).await;
    assert!(matches!(late, Answer::Refused(..)), "a start that was denied: {late:?}");
}

#[tokio::test]
async fn one_that_runs_after_all_goes_on() {
    let (world, job) = world(Guards::all()).await;
    let token = claims(&world, job, 1).await;
    starts(&world, job, token, 2).await;
    assert_eq!(says(&world, inventory(job, 5, &[], &[])).await.questions, [token]);
    let said = Said { token, call: 6, found: Found::Running { level: "group".into() } };
    assert_eq!(take_over(&world.cx, job, &said).await.unwrap(), Answer::Accepted);
    // The answer is newer than the inventory that is still on its way.
    assert_eq!(says(&world, inventory(job, 5, &[], &[])).await.questions, []);
    assert_eq!(says(&world, inventory(job, 7, &[token], &[])).await, peace());
    assert_eq!(world.outcomes("d", "r", "t").await, "running");
}

/// An inventory that was taken before the claim's reply came in arrives after the claim; a worker that
/// is asked, and has no reply yet, gives the claim up. How many attempts there are then.
async fn an_old_inventory(guards: Guards, call: i64, unanswered: &[i64]) -> usize {
    let (mut world, job) = world(guards).await;
    let token = claims(&world, job, 4).await;
    for asked in says(&world, inventory(job, call, &[], unanswered)).await.questions {
        assert_eq!(never_ran(&world, job, asked).await, Answer::Accepted);
    }
    world.plan().await;
    // The reply arrives at last.
    starts(&world, job, token, 6).await;
    world.attempts("d", "r", "t").await.len()
}

#[tokio::test]
async fn without_its_number_an_old_inventory_throws_a_claim_away() {
    let off = Guards::all().without(Guard::InventoryNumber);
    for (call, unanswered) in [(3, [].as_slice()), (5, &[4])] {
        assert_eq!(an_old_inventory(Guards::all(), call, unanswered).await, 1);
        assert_eq!(an_old_inventory(off, call, unanswered).await, 2);
    }
}

#[tokio::test]
async fn a_worker_that_numbers_nothing_is_asked_nothing_and_still_learns_what_is_not_its_own() {
    let (world, job) = world(Guards::all()).await;
    claims(&world, job, 0).await;
    // Drawn, and nobody's: its run was deleted.
    let tx = world.cx.store.begin("mint").await.unwrap();
    let foreign = installation::mint(&tx, 1).await.unwrap().remove(0);
    tx.commit().await.unwrap();
    let beaten = says(&world, inventory(job, 0, &[foreign], &[])).await;
    assert_eq!(beaten, Beaten { disowned: vec![foreign], ..peace() });
}

#[tokio::test]
async fn another_digest_asks_for_the_names() {
    let (world, job) = world(Guards::all()).await;
    let token = claims(&world, job, 1).await;
    let of = |tokens: &[Token]| {
        let digest = Digest::of(job.as_u128(), tokens.iter().copied());
        Beat { says: Says::Digest(digest), ..inventory(job, 5, &[], &[]) }
    };
    assert_eq!(says(&world, of(&[token])).await, peace());
    for other in [vec![], vec![token, Token::new(1, 4_000).unwrap()]] {
        let wanted = Beaten { wants_inventory: true, ..peace() };
        assert_eq!(says(&world, of(&other)).await, wanted);
    }
}

#[tokio::test]
async fn an_unanswered_hand_over_becomes_a_question_and_never_a_loss() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let token = world.machine.token_of("t");
    world.restart().await;
    // It registers, and its answer is never sent.
    world.workers[0].is_paused = true;
    let job = world.cx.env.job_id();
    let who = Identity { registration: 99, ..world.workers[0].identity(job) };
    register(&world.cx, &who).await.unwrap();
    let named = |call| inventory(job, call, &[token], &[]);
    assert_eq!(says(&world, named(1)).await.questions, []);
    world.pass_time(world.cx.settings.start_timeout);
    world.plan().await;
    assert_eq!(says(&world, named(7)).await.questions, [token]);
    assert_eq!(world.outcomes("d", "r", "t").await, "running");
    let said = Said { token, call: 8, found: Found::Running { level: "group".into() } };
    assert_eq!(take_over(&world.cx, job, &said).await.unwrap(), Answer::Accepted);
    assert_eq!(says(&world, named(13)).await.questions, []);
}

/// A later worker of the home finds the directory of an attempt whose end was taken before.
#[tokio::test]
async fn that_nothing_is_left_of_one_that_has_ended_is_no_late_write() {
    let mut world = World::of(&[ONE]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    let token = world.attempts("d", "r", "t").await[0].token;
    let job = world.workers[0].job.unwrap();
    let refused = async || {
        let lines = world.events().await;
        lines.iter().filter(|line| line.kind == "write_refused").count()
    };
    let gone = || Ending::Gone(Death::Single);
    let answer = ended(&world, job, token, (gone(), Some("successor"))).await;
    assert!(matches!(answer, Answer::Refused(..)) && refused().await == 0, "{answer:?}");
    let answer = ended(&world, job, token, (gone(), Some("exit_status"))).await;
    assert!(matches!(answer, Answer::Refused(..)) && refused().await == 1, "{answer:?}");
}
