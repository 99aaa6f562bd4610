//! Reports: taken once, from the owner, with the current token; all others get the right word.

use crate::world::{World, exit, says, stay};
use fencepost_core::id::Token;
use fencepost_core::verdict::Ending;
use fencepost_engine::operations::register::register;
use fencepost_engine::operations::report::{EndReport, report};
use fencepost_engine::operations::start::{StartRequest, start};
use fencepost_engine::operations::{Answer, Refused};
use serde_json::json;

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x}
";

fn ended(token: Token, ending: Ending, digest: &str) -> EndReport {
    EndReport {
        token,
        ending,
        asked: None,
        outputs: vec![("n".into(), json!(digest))],
        checkpoint: None,
        level: None,
        message: None,
        exit_code: None,
        signal: None,
        evidence: None,
        digest: digest.into(),
    }
}

fn word(answer: &Answer) -> &'static str {
    match answer {
        Answer::Accepted => "accepted",
        Answer::Refused(why, _) => why.as_str(),
    }
}

/// A world in which `t` runs, under a worker that says nothing by itself.
async fn running() -> (World, Token) {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let token = world.machine.token_of("t");
    world.workers[0].is_paused = true;
    (world, token)
}

async fn say(world: &World, reports: Vec<EndReport>) -> Vec<&'static str> {
    let job = world.workers[0].job.unwrap();
    let answers = report(&world.cx, job, reports).await.unwrap();
    world.check().await;
    answers.iter().map(word).collect()
}

#[tokio::test]
async fn the_same_report_again_is_accepted_and_another_is_not() {
    let (mut world, token) = running().await;
    let first = ended(token, Ending::Exit(0), "one");
    assert_eq!(say(&world, vec![first.clone()]).await, ["accepted"]);
    assert_eq!(say(&world, vec![first.clone()]).await, ["accepted"]);
    let other = ended(token, Ending::Exit(1), "two");
    assert_eq!(say(&world, vec![other]).await, ["not_running"]);
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
    assert_eq!(world.outputs("d", "r", "t").await, ["n=\"one\""]);
    let refused = world.events().await.into_iter().filter(|e| e.kind == "write_refused").count();
    assert_eq!(refused, 1);
    // Also long after the run is over and the worker another one.
    world.workers[0].is_paused = false;
    world.restart().await;
    world.settle().await;
    assert_eq!(say(&world, vec![first]).await, ["accepted"]);
}

#[tokio::test]
async fn of_two_reports_in_one_batch_the_first_counts() {
    let (mut world, token) = running().await;
    let (good, bad) = (ended(token, Ending::Exit(0), "one"), ended(token, Ending::Exit(1), "two"));
    let answers = say(&world, vec![good.clone(), bad, good]).await;
    assert_eq!(answers, ["accepted", "not_running", "accepted"]);
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "success none");
}

#[tokio::test]
async fn a_report_of_an_older_attempt_is_superseded_and_changes_nothing() {
    let (mut world, token) = running().await;
    let gone = ended(token, Ending::Gone(fencepost_core::verdict::Death::Single), "gone");
    assert_eq!(say(&world, vec![gone]).await, ["accepted"]);
    world.plan().await;
    let late = ended(token, Ending::Exit(0), "late");
    assert_eq!(say(&world, vec![late]).await, ["superseded"]);
    assert_eq!(world.shown("d", "r").await, "running: t queued");
    assert_eq!(world.outputs("d", "r", "t").await, Vec::<String>::new());
    let job = world.workers[0].job.unwrap();
    let request = StartRequest { token, start_id: "late".into(), boot_id: "boot".into(), call: 0 };
    let answers = start(&world.cx, job, &[request]).await.unwrap();
    assert_eq!(word(&answers[0]), "superseded");
}

#[tokio::test]
async fn a_report_and_a_cancel_end_the_same_way_in_the_order_of_their_commits() {
    let (mut world, token) = running().await;
    let good = ended(token, Ending::Exit(0), "one");
    assert_eq!(say(&world, vec![good]).await, ["accepted"]);
    world.cancel("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t success");

    let (mut world, token) = running().await;
    world.cancel("d", "r").await;
    let good = ended(token, Ending::Exit(0), "one");
    // The report of its end is taken; its success is not.
    assert_eq!(say(&world, vec![good.clone()]).await, ["accepted"]);
    assert_eq!(say(&world, vec![good]).await, ["accepted"]);
    assert_eq!(say(&world, vec![ended(token, Ending::Exit(0), "two")]).await, ["cancelled"]);
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "cancelled: t failed");
    assert_eq!(world.outputs("d", "r", "t").await, Vec::<String>::new());
}

#[tokio::test]
async fn a_worker_speaks_only_for_what_is_its_own() {
    let (mut world, token) = running().await;
    let mut stranger = crate::world::Worker::new("two", &["default"], 1);
    let job = world.cx.env.job_id();
    register(&world.cx, &stranger.identity(job)).await.unwrap();
    stranger.job = Some(job);
    let answers = report(&world.cx, job, vec![ended(token, Ending::Exit(0), "one")]).await.unwrap();
    assert_eq!(word(&answers[0]), "running_elsewhere");
    let request = StartRequest { token, start_id: "x".into(), boot_id: "boot".into(), call: 0 };
    let answers = start(&world.cx, job, std::slice::from_ref(&request)).await.unwrap();
    assert_eq!(word(&answers[0]), "running_elsewhere");
    // The owner, under another start id.
    let own = world.workers[0].job.unwrap();
    let answers = start(&world.cx, own, &[request]).await.unwrap();
    assert_eq!(word(&answers[0]), "running_elsewhere");
    world.workers[0].is_paused = false;
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
}

#[tokio::test]
async fn two_starts_of_one_attempt_in_one_batch_are_one_start() {
    let mut world = World::of(&[ONE]).await;
    world.settle().await;
    world.trigger("d", "r").await;
    world.plan().await;
    let job = world.workers[0].job.unwrap();
    let token = world.claim_one().await;
    let of =
        |id: &str| StartRequest { token, start_id: id.into(), boot_id: "boot".into(), call: 0 };
    let answers = start(&world.cx, job, &[of("a"), of("a"), of("b")]).await.unwrap();
    let words: Vec<&str> = answers.iter().map(word).collect();
    assert_eq!(words, ["accepted", "accepted", "running_elsewhere"]);
    assert!(matches!(answers[2], Answer::Refused(Refused::RunningElsewhere, _)));
    world.check().await;
}

#[tokio::test]
async fn outputs_come_from_the_attempt_that_succeeded() {
    let text = "
dag_id: d
tasks:
  t: {run: x, retries: 1, retry_delay: 1s}
  u: {run: x, depends_on: [t]}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| {
        let mut act = says("n", json!(what.attempt));
        if what.attempt == 1 {
            act.ending = Some(Ending::Exit(1));
        }
        act
    });
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.outputs("d", "r", "t").await, ["n=2"]);
}

#[tokio::test]
async fn a_report_about_a_deleted_run_is_refused_and_spoils_no_other() {
    let (mut world, token) = running().await;
    world.cancel("d", "r").await;
    assert_eq!(say(&world, vec![ended(token, Ending::Stopped, "s")]).await, ["accepted"]);
    world.plan().await;
    fencepost_engine::operations::run_control::delete_run(&world.cx, "d", "r", "me").await.unwrap();
    world.workers[0].is_paused = false;
    world.workers[0].forget();
    world.trigger("d", "r2").await;
    world.settle().await;
    let second = world.machine.running().into_iter().find(|running| *running != token).unwrap();
    world.workers[0].is_paused = true;
    let both = vec![ended(token, Ending::Exit(0), "a"), ended(second, Ending::Exit(0), "b")];
    assert_eq!(say(&world, both).await, ["not_running", "accepted"]);
    world.finish().await;
    assert_eq!(world.shown("d", "r2").await, "success: t success");
}
