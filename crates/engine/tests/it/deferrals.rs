//! Deferred work: waits, processes that defer and resume, answers of people; each event once.

use crate::world::{Act, World, defers, exit, gone, stay};
use fencepost_core::state::TiState;
use fencepost_core::time::{Span, Timestamp};
use fencepost_core::verdict::Asked;
use fencepost_core::wait::Look;
use fencepost_engine::operations::answer::{Reply, answer};
use fencepost_engine::operations::inspect::{Question, inspect};
use serde_json::json;

fn reply(task: &str, approves: bool) -> Reply {
    Reply {
        dag_id: "d".into(),
        run_id: "r".into(),
        task_id: task.into(),
        map_index: None,
        approves,
        by: "anna".into(),
        reason: None,
    }
}

#[tokio::test]
async fn a_timer_ends_its_wait_at_its_time_without_process_or_slot() {
    let text = "
dag_id: d
max_active_tasks: 1
tasks:
  w: {wait: {interval: 10m}, expand: {n: [1, 2, 3, 4, 5]}, max_active_tis_per_dag: 1}
  after: {run: x, depends_on: [w]}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.settle().await;
    // AC-52: five of them wait beside each other under a limit of one.
    assert_eq!(world.count(TiState::Deferred).await, 5);
    assert_eq!(world.pools().await["default_pool"].held, 0);
    let due = world.triggers().await[0].due_at.unwrap();
    assert_eq!(due.since(world.now()), Span::from_mins(10));
    world.pass_time(Span::from_micros(Span::from_mins(10).as_micros() - 1));
    world.settle().await;
    assert_eq!(world.count(TiState::Deferred).await, 5);
    world.pass_time(Span::from_micros(1));
    world.settle().await;
    assert_eq!(world.outcomes("d", "r", "w[2]").await, "deferred none");
    assert_eq!(world.why("d", "r", "w[2]").await, "success (event)");
    assert_eq!(world.machine.order(), ["after"]);
    assert_eq!(world.triggers().await, []);
    world.finish().await;
}

#[tokio::test]
async fn a_timer_that_fell_due_while_everything_was_down_fires_once_at_the_start() {
    let text = "
dag_id: d
tasks:
  w: {wait: {until: '{{ logical_date }}'}}
  v: {wait: {interval: 30s}}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.settle().await;
    world.pass_time(Span::from_hours(3));
    world.restart().await;
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, "success: w success, v success");
    let fired = world.events().await.into_iter().filter(|e| e.from.as_deref() == Some("deferred"));
    assert_eq!(fired.count(), 2);
}

#[tokio::test]
async fn a_wait_that_takes_too_long_fails_or_skips_with_nobody_looking() {
    let text = "
dag_id: d
tasks:
  hard: {wait: {file: /never, timeout: 1h}}
  soft: {wait: {file: /never, timeout: 1h, soft_fail: true}}
  late: {wait: {interval: 2h, timeout: 1h}, retries: 3}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.settle().await;
    world.pass_time(Span::from_hours(1));
    // AC-57: no triggerer lives; the passes of a scheduler end them.
    world.settle().await;
    assert_eq!(world.why("d", "r", "hard").await, "failed (wait_timeout)");
    assert_eq!(world.why("d", "r", "soft").await, "skipped (wait_timeout)");
    assert_eq!(world.why("d", "r", "late").await, "failed (wait_timeout)");
    assert_eq!(world.triggers().await, []);
    world.finish().await;
}

#[tokio::test]
async fn a_wait_whose_template_is_wrong_fails_its_task_alone() {
    let text = "
dag_id: d
tasks:
  w: {wait: {until: '{{ params.when }}'}}
  x: {run: x}
params: {when: soon}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "failed: w failed, x success");
    assert_eq!(world.why("d", "r", "w").await, "failed (template_error)");
    let message = world.attempts("d", "r", "w").await[0].message.clone().unwrap();
    assert!(message.contains("`until` must be an instant"), "{message}");
}

const ONE: &str = "
dag_id: d
tasks:
  t: {run: x, retries: 1, retry_delay: 1m}
";

#[tokio::test]
async fn a_process_that_defers_resumes_in_the_same_try_and_is_told_why() {
    let mut world = World::of(&[ONE]).await;
    world.script(|what| match what.attempt {
        1 => defers(json!({ "interval": "5m", "context": { "page": 7 } })),
        2 => {
            assert_eq!((what.try_number, what.prev_outcome.as_str()), (1, "deferred"));
            let event = what.event.clone().unwrap();
            assert_eq!(event["status"], "success");
            assert_eq!(event["context"]["page"], 7);
            // AC-54: it defers again.
            defers(json!({ "interval": "5m" }))
        }
        // The process that replaces a resumed one knows it too.
        3 => gone(),
        4 => {
            assert_eq!((what.try_number, what.prev_outcome.as_str()), (1, "lost"));
            assert_eq!(what.event.clone().unwrap()["kind"], "timer");
            exit(1)
        }
        _ => {
            assert_eq!((what.try_number, &what.event), (2, &None));
            exit(0)
        }
    });
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.why("d", "r", "t").await, "deferred (deferred)");
    assert_eq!(world.pools().await["default_pool"].held, 0);
    world.finish().await;
    assert_eq!(
        world.outcomes("d", "r", "t").await,
        "deferred none, deferred none, lost infra, failed user, success none"
    );
    let why: Vec<&str> =
        world.attempts("d", "r", "t").await.iter().map(|a| a.why.as_str()).collect();
    assert_eq!(why, ["first", "resumed", "resumed", "replaces", "retry"]);
}

#[tokio::test]
async fn the_timeout_of_a_wait_spans_the_deferrals_of_a_try() {
    let mut world = World::of(&[ONE]).await;
    // AC-59: it polls by deferring for an hour again and again.
    world.script(|_| defers(json!({ "interval": "1h", "timeout": "150m" })));
    world.trigger("d", "r").await;
    let began = world.now();
    world.finish().await;
    assert_eq!(world.why("d", "r", "t").await, "failed (wait_timeout)");
    assert_eq!(world.outcomes("d", "r", "t").await, "deferred none, deferred none, deferred none");
    let took = world.ti("d", "r", "t").await.ended_at.unwrap().since(began);
    assert_eq!(took, Span::from_mins(150));
}

#[tokio::test]
async fn a_defer_file_that_cannot_be_taken_is_an_ordinary_failure_that_says_so() {
    let mut world = World::of(&[ONE]).await;
    world.script(|what| match what.attempt {
        1 => defers(json!({ "sleep": "5m" })),
        _ => exit(100),
    });
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.outcomes("d", "r", "t").await, "failed user, failed user");
    assert_eq!(world.why("d", "r", "t").await, "failed (no_defer_file)");
    let message = world.attempts("d", "r", "t").await[0].message.clone().unwrap();
    assert!(message.contains("unknown key `sleep`"), "{message}");
}

#[tokio::test]
async fn whoever_ends_a_wait_takes_its_trigger_along() {
    let text = "
dag_id: d
tasks:
  marked: {wait: {interval: 1h}}
  cleared: {wait: {interval: 1h}}
  cancelled: {wait: {interval: 1h}}
  process: {run: x}
";
    let mut world = World::of(&[text]).await;
    world.script(|_| defers(json!({ "interval": "1h" })));
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.triggers().await.len(), 4);
    world.mark("d", "r", "marked", TiState::Success).await;
    assert_eq!(world.triggers().await.len(), 3);
    let before = world.ti("d", "r", "cleared").await.token;
    world.clear("d", "r", &["cleared"]).await;
    assert_eq!(world.triggers().await.len(), 2);
    world.settle().await;
    assert!(world.ti("d", "r", "cleared").await.token > before);
    world.cancel("d", "r").await;
    assert_eq!(world.triggers().await, []);
    world.settle().await;
    // I13: no timer revives it.
    let ends = world.shown("d", "r").await;
    world.pass_time(Span::from_hours(2));
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, ends);
    let expected = "cancelled: marked success, cleared skipped, cancelled skipped, process skipped";
    assert_eq!(ends, expected);
    assert_eq!(world.machine.order(), ["process"]);
}

#[tokio::test]
async fn a_condition_is_looked_at_until_it_holds_and_what_was_seen_is_kept() {
    let text = "
dag_id: d
tasks:
  w: {wait: {file: /in/ready, poke_interval: 1m}}
";
    let mut world = World::of(&[text]).await;
    let path = || "/in/ready".to_owned();
    world.trigger("d", "r").await;
    world.settle().await;
    let first = world.triggers().await.pop().unwrap();
    assert_eq!(first.memory["looks"], 1);
    let next = first.next_at.unwrap().since(world.now());
    assert!(next >= Span::from_mins(1) && next <= Span::from_secs(66), "{next}");
    // Looks that fail come later and later, and are no failure of the task.
    let trouble = Look::Trouble("permission denied".into());
    world.looker.0.lock().unwrap().insert(path(), trouble);
    for _ in 0..3 {
        let at = world.triggers().await[0].next_at.unwrap();
        world.clock.set(at);
        world.settle().await;
    }
    let tired = world.triggers().await.pop().unwrap();
    assert_eq!(tired.memory["troubles"], 3);
    assert!(tired.next_at.unwrap().since(world.now()) >= Span::from_mins(8));
    let found = inspect(&world.cx, Question::Triggers).await.unwrap();
    assert!(found[0].detail.contains("4 looks, the last: permission denied"), "{found:?}");
    // A restart forgets nothing of it.
    world.restart().await;
    world.looker.0.lock().unwrap().insert(path(), Look::Met(json!({})));
    world.settle().await;
    assert_eq!(world.count(TiState::Deferred).await, 1);
    world.finish().await;
    assert_eq!(world.why("d", "r", "w").await, "success (event)");
}

#[tokio::test]
async fn a_wait_for_another_run_sees_it_as_it_is_now() {
    let text = "
dag_id: d
tasks:
  run: {wait: {external_run: {dag_id: e, run_id: r}}}
  good: {wait: {external_task: {dag_id: e, task_id: a, run_id: r}}}
  bad: {wait: {external_task: {dag_id: e, task_id: b, run_id: r}, soft_fail: true}}
  gone: {wait: {external_task: {dag_id: e, task_id: nobody, run_id: r}}}
";
    let other = "
dag_id: e
tasks:
  a: {run: x}
  b: {run: x}
";
    let mut world = World::of(&[text, other]).await;
    world.script(|what| exit(u8::from(what.task_id == "b")));
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.count(TiState::Deferred).await, 4);
    // AC-55: it ended while nobody looked.
    world.trigger("e", "r").await;
    world.finish().await;
    let expected = "failed: run failed, good success, bad skipped, gone failed";
    assert_eq!(world.shown("d", "r").await, expected);
    assert_eq!(world.why("d", "r", "run").await, "failed (wait_failed)");
}

#[tokio::test]
async fn a_person_answers_once() {
    let text = "
dag_id: d
tasks:
  yes: {wait: {approval: Ship it?}}
  no: {wait: {approval: {subject: Ship it?, body: really}}}
  never: {wait: {approval: {subject: Ship it?, fail_on_reject: true}}}
  late: {wait: {approval: Ship it?, timeout: 1h}}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.settle().await;
    answer(&world.cx, &reply("yes", true)).await.unwrap();
    answer(&world.cx, &reply("no", false)).await.unwrap();
    answer(&world.cx, &reply("never", false)).await.unwrap();
    let again = answer(&world.cx, &reply("yes", false)).await.unwrap_err();
    assert!(again.to_string().contains("success, and asks nobody"), "{again}");
    world.pass_time(Span::from_hours(1));
    world.finish().await;
    let expected = "failed: yes success, no skipped, never failed, late failed";
    assert_eq!(world.shown("d", "r").await, expected);
    let by = |e: &fencepost_store::query::event::Logged| {
        e.task_id.as_deref() == Some("yes") && e.actor == "anna"
    };
    assert_eq!(world.events().await.iter().filter(|e| by(e)).count(), 1);
}

#[tokio::test]
async fn a_stop_that_crosses_with_a_deferral_wins() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    let token = world.machine.token_of("t");
    world.machine.finish("t", defers(json!({ "interval": "1h" })));
    world.cancel("d", "r").await;
    world.settle().await;
    assert_eq!(world.triggers().await, []);
    assert_eq!(world.why("d", "r", "t").await, "failed (cancel)");
    assert_eq!(world.attempt(token).await.outcome.unwrap().as_str(), "cancelled");
}

#[tokio::test]
async fn asked_without_exit_code_100_nothing_is_deferred() {
    let mut world = World::of(&[ONE]).await;
    world.script(|_| Act { asked: Some(Asked::Defer(json!({ "interval": "1h" }))), ..exit(0) });
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.why("d", "r", "t").await, "success (exit)");
    assert!(world.now() < Timestamp::from_micros(i64::MAX));
}
