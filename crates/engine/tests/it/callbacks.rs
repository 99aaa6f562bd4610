//! Callbacks: who is told of what, once, whatever the receivers do.

use crate::world::{Delivering, Place, Post, World, defers, exit, gone, stay};
use fencepost_core::callback::Callback;
use fencepost_core::state::{RunState, TiState};
use fencepost_core::time::Span;
use fencepost_engine::Pass;
use fencepost_engine::operations::callbacks::retry;
use fencepost_engine::operations::inspect::{Question, inspect};
use fencepost_store::query::callback::{self, Callback as Row};
use fencepost_store::query::run::Run;
use serde_json::json;
use std::collections::BTreeSet;

async fn rows(world: &World, state: &str) -> Vec<Row> {
    let tx = world.cx.store.read("test").await.unwrap();
    callback::page(&tx, "", (state, ""), 1_000).await.unwrap()
}

const EVERY: &str = "
dag_id: d
on_success_callback: [{slack: {url: 'https://x', text: 'run {{ occasion }} {{ reason }}'}}]
on_failure_callback: [{slack: {url: 'https://x', text: 'run {{ occasion }} {{ reason }}'}}]
default_args:
  on_success_callback: [{slack: {url: 'https://x', text: '{{ ti.task_id }} success'}}]
  on_failure_callback: [{slack: {url: 'https://x', text: '{{ ti.task_id }} failure {{ reason }}'}}]
  on_retry_callback: [{slack: {url: 'https://x', text: '{{ ti.task_id }} retry {{ reason }}'}}]
  on_lost_callback:
    - slack: {url: 'https://x', text: '{{ ti.task_id }} lost {{ ti.lost_evidence.kind }}'}
  on_skipped_callback: [{slack: {url: 'https://x', text: '{{ ti.task_id }} skipped'}}]
tasks:
  good: {run: x}
  bad: {run: x}
  again: {run: x, retries: 1, retry_delay: 1m}
  lost: {run: x}
  cut: {run: x, when: 'false'}
  asks: {run: x}
  nothing: {noop: true}
  after_bad: {run: x, depends_on: [bad]}
  waits: {wait: {interval: 1m}, depends_on: [good]}
  held: {run: x, on_lost: fail}
  m: {run: x, expand: {n: [1, 2]}}
";

/// AC-61: what is told follows from the state that was decided.
#[tokio::test]
async fn each_occasion_is_told_once_to_whom_it_concerns() {
    let mut world = World::of(&[EVERY]).await;
    world.script(|what| match (what.task_id.as_str(), what.attempt) {
        ("bad", _) => exit(1),
        ("again", 1) => exit(3),
        ("lost" | "held", 1) => gone(),
        ("asks", _) => exit(99),
        _ => exit(0),
    });
    world.trigger("d", "r").await;
    world.finish().await;
    world.settle().await;
    // Nobody is told of `after_bad`: it is upstream_failed.
    let expected = [
        "again retry exit",
        "again success",
        "asks skipped",
        "bad failure exit",
        "cut skipped",
        "good success",
        "held failure exit_status",
        "held lost exit_status",
        "lost lost exit_status",
        "lost retry exit_status",
        "lost success",
        "m success",
        "m success",
        "nothing success",
        "run failure leaf_failed",
        "waits success",
    ];
    let told = world.post.told();
    let of = |lines: &[&str]| -> Vec<String> {
        let line = |line: &&str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        lines.iter().map(line).collect()
    };
    let lines: Vec<&str> = told.iter().map(String::as_str).collect();
    assert_eq!(of(&lines), of(&expected), "{told:#?}");
    assert!(
        told.iter().any(|line| line.starts_with("bad failure ") && line.len() > 12),
        "{told:#?}"
    );
    assert!(told.iter().any(|line| line.starts_with("lost lost ") && line.len() > 10), "{told:#?}");
    assert!(rows(&world, "due").await.is_empty() && rows(&world, "dead").await.is_empty());
    // Everything is told once more about what happens once more.
    world.clear("d", "r", &["good"]).await;
    world.finish().await;
    world.settle().await;
    let again = world.post.told();
    assert_eq!(again.iter().filter(|line| *line == "good success").count(), 2, "{again:#?}");
    assert_eq!(again.iter().filter(|line| line.starts_with("bad failure")).count(), 1);
}

/// A deferral is no end, a cancel is one, and a person's mark is what it says.
#[tokio::test]
async fn deferrals_tell_nothing_and_marks_what_they_say() {
    let text = "
dag_id: d
default_args:
  on_success_callback: [{slack: {url: 'https://x', text: '{{ ti.task_id }} success'}}]
  on_failure_callback: [{slack: {url: 'https://x', text: '{{ ti.task_id }} failure'}}]
tasks:
  d: {run: x}
  t: {wait: {interval: 1h}}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| match what.event {
        None => defers(json!({ "interval": "5m" })),
        Some(_) => exit(0),
    });
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.post.told(), Vec::<String>::new());
    world.mark("d", "r", "t", TiState::Failed).await;
    world.finish().await;
    world.settle().await;
    assert_eq!(world.post.told(), ["d success", "t failure"]);
}

const ONE: &str = "
dag_id: d
tasks:
  t:
    noop: true
    on_success_callback:
      - webhook: {url: 'https://down.example/in', headers: {X-Run: '{{ run_id }}'}}
      - webhook: {url: 'https://up.example/in', body: {n: '{{ 40 + 2 }}', u: '{{ run_url }}'}}
";

/// AC-62: a receiver that is down is told later, under the same id, and the others do not wait for it.
#[tokio::test]
async fn a_receiver_that_is_down_is_told_when_it_is_up_again() {
    let mut world = World::of(&[ONE]).await;
    world.post.refuse("down.example", Some("connection refused"));
    world.trigger("d", "r").await;
    world.settle().await;
    let url = "http://fencepost/dags/d/runs/r";
    assert_eq!(world.post.told(), [json!({ "n": 42, "u": url }).to_string()]);
    let due = rows(&world, "due").await;
    assert_eq!((due.len(), due[0].tries), (1, 1));
    assert_eq!(due[0].last_error.as_deref(), Some("connection refused"));
    assert!(due[0].due_at > world.now());
    world.post.refuse("down.example", None);
    world.restart().await;
    world.pass_time(Span::from_mins(1));
    world.settle().await;
    assert!(rows(&world, "due").await.is_empty());
    let delivered = rows(&world, "delivered").await;
    assert_eq!(delivered.iter().find(|row| row.id == due[0].id).map(|row| row.tries), Some(2));
    let last = world.post.deliveries().pop().unwrap();
    assert_eq!(last.id, due[0].id);
    assert_eq!(last.told["task_id"], "t");
    assert_eq!(last.told["occasion"], "success");
    let Callback::Webhook { headers, .. } = last.callback else { panic!() };
    assert_eq!(headers, [("X-Run".to_owned(), "r".to_owned())]);
}

/// What nobody takes is kept, shown, and sent when a person asks for it.
#[tokio::test]
async fn a_callback_that_never_arrives_is_dead_until_a_person_wants_it() {
    let mut world = World::of(&[ONE]).await;
    world.post.refuse("down.example", Some("it answered 500"));
    world.trigger("d", "r").await;
    for _ in 0..100 {
        world.settle().await;
        if !rows(&world, "dead").await.is_empty() {
            break;
        }
        world.pass_time(Span::from_hours(1));
    }
    let dead = rows(&world, "dead").await;
    assert_eq!(dead.len(), 1);
    assert!(dead[0].tries > 3, "{}", dead[0].tries);
    let asked = world.post.asked();
    world.pass_time(Span::from_hours(48));
    world.settle().await;
    assert_eq!(world.post.asked(), asked, "nobody tries by himself");
    let found = inspect(&world.cx, Question::Callbacks).await.unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].detail.contains("it answered 500"), "{found:?}");
    assert!(found[0].detail.contains(&format!("callbacks retry {}", dead[0].id)), "{found:?}");
    world.post.refuse("down.example", None);
    retry(&world.cx, &dead[0].id, "me", None).await.unwrap();
    world.settle().await;
    assert_eq!(world.post.deliveries().last().unwrap().id, dead[0].id);
    // It has arrived: no other round.
    assert!(retry(&world.cx, &dead[0].id, "me", None).await.is_err());
    assert!(retry(&world.cx, "nobody", "me", None).await.is_err());
}

/// I22: a mistake in a callback stops neither what it is about nor the other callbacks.
#[tokio::test]
async fn a_callback_that_cannot_be_rendered_is_dead_and_nothing_else_is() {
    let text = "
dag_id: d
tasks:
  t:
    noop: true
    on_success_callback:
      - slack: {url: 'https://x', text: '{{ conf.missing }}'}
      - webhook: {url: '{{ params.url }}'}
      - slack: {url: 'https://x', text: good}
params: {url: 'ftp://x'}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, "success: t success");
    assert_eq!(world.post.told(), ["good"]);
    let dead = rows(&world, "dead").await;
    let why: Vec<&str> = dead.iter().filter_map(|row| row.last_error.as_deref()).collect();
    assert_eq!(why.len(), 2, "{why:?}");
    assert!(why.iter().any(|why| why.contains("on_success_callback.slack.text")), "{why:?}");
    assert!(why.iter().any(|why| why.contains("must begin with http")), "{why:?}");
    // Nothing can be sent of it, whoever asks.
    let refused = retry(&world.cx, &dead[0].id, "me", None).await.unwrap_err();
    assert!(refused.to_string().contains("could not be rendered"), "{refused}");
}

/// One slow receiver has few places, however much waits for it.
#[tokio::test]
async fn what_waits_for_one_receiver_hides_no_other() {
    let text = "
dag_id: d
params: {host: a}
tasks:
  many:
    noop: true
    expand: {n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]}
    on_success_callback: [{slack: {url: 'https://down.example', text: 'x {{ map_index }}'}}]
  one:
    noop: true
    depends_on: [many]
    on_success_callback: [{slack: {url: 'https://up.example', text: one}}]
";
    let mut world = World::of(&[text]).await;
    world.post.refuse("down.example", Some("no"));
    world.trigger("d", "r").await;
    world.plan().await;
    assert_eq!(world.post.told(), ["one"]);
    // Of the twenty each was tried once, not one of them twenty times.
    assert_eq!(rows(&world, "due").await.iter().map(|row| row.tries).max(), Some(1));
    world.post.refuse("down.example", None);
    world.pass_time(Span::from_mins(1));
    world.settle().await;
    assert_eq!(world.post.told().len(), 21);
}

/// I7: of several schedulers one tells, each thing once.
#[tokio::test]
async fn two_schedulers_tell_each_thing_once() {
    let text = "
dag_id: d
tasks:
  m:
    noop: true
    expand: {n: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}
    on_success_callback:
      - slack: {url: 'https://x.example', text: 'm {{ map_index }}'}
      - slack: {url: 'https://y.example', text: 'y {{ map_index }}'}
      - trigger_dag: other
";
    let other = "{dag_id: other, tasks: {t: {noop: true}}}";
    let mut world = World::at(Place::database(), &[text, other], World::settings(), 1).await;
    world.trigger("d", "r").await;
    // Every pass but those that tell: these are the others'.
    let (one, two) = (world.another(true), world.another(true));
    let mut scheduler = fencepost_engine::scheduler::Scheduler;
    for _ in 0..10 {
        scheduler.pass(&world.cx).await.unwrap();
    }
    let post = Post::default();
    for _ in 0..30 {
        let (mut first, mut second) = (Delivering::to(&post), Delivering::to(&post));
        let (a, b) = tokio::join!(first.pass(&one), second.pass(&two));
        if a.unwrap().moved + b.unwrap().moved == 0 {
            break;
        }
    }
    let ids: BTreeSet<String> = post.deliveries().into_iter().map(|one| one.id).collect();
    assert_eq!((ids.len(), post.asked()), (20, 20));
    assert_eq!(world.run_states("other").await.len(), 10);
    world.settle().await;
    assert_eq!(world.post.asked(), 0, "nothing is left to tell");
}

/// Whoever took a callback and died: it is due again, and known to its receiver by its id.
#[tokio::test]
async fn what_a_dead_scheduler_took_is_told_by_another() {
    let mut world = World::at(Place::database(), &[ONE], World::settings(), 1).await;
    world.trigger("d", "r").await;
    let mut scheduler = fencepost_engine::scheduler::Scheduler;
    for _ in 0..5 {
        scheduler.pass(&world.cx).await.unwrap();
    }
    let (post, dying) = (Post::default(), world.another(true));
    {
        // Its deliveries begin, and their ends are never written down.
        let told = fencepost_engine::callbacks::Told::default();
        let courier = std::sync::Arc::new(post.clone());
        let mut pass = fencepost_engine::callbacks::CallbackPass::new(courier, told);
        pass.pass(&dying).await.unwrap();
        tokio::task::yield_now().await;
    }
    world.settle().await;
    assert_eq!(world.post.asked(), 0, "it is another's for a while");
    world.pass_time(Span::from_mins(2));
    world.settle().await;
    let ids = |post: &Post| -> BTreeSet<String> {
        post.deliveries().into_iter().map(|one| one.id).collect()
    };
    assert_eq!(ids(&world.post).len(), 2);
    assert_eq!(ids(&post), ids(&world.post), "they arrived twice, under the same ids");
}

const LATE: &str = "
dag_id: d
schedule: '0 5 * * *'
timezone: Europe/Berlin
start_date: 2026-03-01
catchup: true
deadline: {at: '07:30', callback: [{slack: {url: 'https://x', text: 'late {{ run_id }}'}}]}
tasks:
  t: {run: x}
";

fn stays() -> crate::world::Act {
    crate::world::stay()
}

/// I15: fired once, at or after its instant, whatever the state; never of a run that has finished.
#[tokio::test]
async fn a_deadline_is_told_once_of_a_run_that_has_not_finished() {
    let mut world = World::of(&[LATE]).await;
    world.script(|_| stays());
    // 2026-03-01 05:00 in Berlin is 04:00 UTC, and its deadline 06:30.
    world.pass_time(Span::from_hours(4));
    world.settle().await;
    assert_eq!(world.count(TiState::Running).await, 1);
    world.pass_time(Span::from_mins(149));
    world.settle().await;
    assert_eq!(world.post.told(), Vec::<String>::new());
    world.pass_time(Span::from_mins(2));
    world.restart().await;
    world.settle().await;
    let late = "late scheduled__2026-03-01T04:00:00Z";
    assert_eq!(world.post.told(), [late]);
    world.pass_time(Span::from_hours(2));
    world.settle().await;
    assert_eq!(world.post.told(), [late]);
    // The next run, a day later, ends in time.
    world.script(|_| exit(0));
    world.machine.finish("t", exit(0));
    for _ in 0..30 {
        world.settle().await;
        world.pass_time(Span::from_hours(1));
    }
    world.settle().await;
    assert_eq!(world.run_states("d").await.len(), 2);
    assert_eq!(world.post.told(), [late]);
}

/// A scheduler that was away over slot and deadline: the deadline is that of the slot.
#[tokio::test]
async fn an_outage_does_not_move_the_deadline() {
    let mut world = World::of(&[LATE]).await;
    world.script(|_| stays());
    world.pass_time(Span::from_hours(9));
    world.settle().await;
    assert_eq!(world.post.told(), ["late scheduled__2026-03-01T04:00:00Z"]);
}

/// Of a run that waits for its turn too, and not of one that a person cancelled before.
#[tokio::test]
async fn a_deadline_counts_from_the_beginning_of_a_triggered_run() {
    let text = "
dag_id: d
max_active_runs: 1
deadline: {after: 10m, callback: [{slack: {url: 'https://x', text: '{{ run_id }}'}}]}
tasks: {t: {run: x}}
";
    let mut world = World::of(&[text]).await;
    world.script(|_| stays());
    for run in ["a", "b", "c"] {
        world.trigger("d", run).await;
    }
    world.settle().await;
    world.cancel("d", "c").await;
    world.pass_time(Span::from_mins(11));
    world.settle().await;
    assert_eq!(world.post.told(), ["a", "b"]);
    let told = world.events().await.into_iter().filter(|event| event.kind == "deadline_passed");
    assert_eq!(told.count(), 2);
}

const COMMANDS: &str = "
dag_id: d
params: {region: emea}
env: {REGION: '{{ params.region }}'}
on_failure_callback: [{run: 'echo ${#x} {{ run_id }}'}]
tasks:
  t: {run: x, on_lost: fail, on_lost_callback: [{run: 'echo {{ ti.task_id }}'}]}
";

async fn runs_of(world: &World, dag_id: &str) -> Vec<Run> {
    world.all_runs().await.into_iter().filter(|run| run.dag_id == dag_id).collect()
}

/// A command is work like any other: a run of the companion, made once, whoever carries it out.
#[tokio::test]
async fn commands_are_runs_of_the_companion() {
    let mut world = World::of(&[COMMANDS]).await;
    world.script(|what| if what.dag_id == "d" { gone() } else { exit(0) });
    world.trigger("d", "r").await;
    world.finish().await;
    world.settle().await;
    world.restart().await;
    world.finish().await;
    world.settle().await;
    let runs = runs_of(&world, "d.callbacks").await;
    let mut said: Vec<(String, String)> = runs
        .iter()
        .map(|run| {
            assert_eq!(run.state, RunState::Success, "{run:?}");
            assert_eq!(run.params["region"], "emea");
            let told = &run.params["fencepost_callback"];
            (told["script"].as_str().unwrap().into(), told["occasion"].as_str().unwrap().into())
        })
        .collect();
    said.sort();
    let expected = [("echo ${#x} r", "failure"), ("echo t", "lost")];
    assert_eq!(said, expected.map(|(script, of)| (script.to_owned(), of.to_owned())));
    assert!(rows(&world, "due").await.is_empty() && rows(&world, "dead").await.is_empty());
}

/// What a run was given may be gone from its DAG when its command is due.
#[tokio::test]
async fn a_command_is_made_though_the_params_of_its_run_are_gone() {
    let mut world = World::of(&[COMMANDS]).await;
    world.script(|what| if what.dag_id == "d" { stay() } else { exit(0) });
    world.trigger("d", "r").await;
    world.settle().await;
    let edited = COMMANDS.replace("params: {region: emea}", "params: {other: 1}");
    let edited = edited.replace("env: {REGION: '{{ params.region }}'}", "");
    assert_eq!(world.load("dag0.yaml", &edited).await.new_versions, ["d", "d.callbacks"]);
    world.mark("d", "r", "t", TiState::Failed).await;
    world.script(|what| if what.dag_id == "d" { exit(1) } else { exit(0) });
    world.finish().await;
    world.settle().await;
    world.finish().await;
    let runs = runs_of(&world, "d.callbacks").await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    assert_eq!((&runs[0].params["other"], runs[0].state), (&json!(1), RunState::Success));
}

#[tokio::test]
async fn a_companion_begins_and_ends_with_the_callbacks_of_its_file() {
    let mut world = World::of(&[COMMANDS]).await;
    assert!(world.dag("d.callbacks").await.is_active);
    let without = "dag_id: d\ntasks: {t: {run: x}}";
    assert_eq!(world.load("dag0.yaml", without).await.deactivated, ["d.callbacks"]);
    assert_eq!(world.load("dag0.yaml", COMMANDS).await.new_versions, ["d"]);
    assert!(world.dag("d.callbacks").await.is_active);
    let mut gone = world.remove("dag0.yaml").await.deactivated;
    gone.sort();
    assert_eq!(gone, ["d", "d.callbacks"]);
    // A name that another file has is no companion's.
    let taken = "dag_id: d.callbacks\ntasks: {t: {run: x}}";
    assert_eq!(world.load("dag1.yaml", taken).await.new_versions, ["d.callbacks"]);
    assert_eq!(world.load("dag0.yaml", COMMANDS).await.broken, ["dag0.yaml"]);
}
