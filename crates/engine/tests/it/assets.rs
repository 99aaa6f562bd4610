//! Assets: one event of each for every accepted success, each taken by one run (I7).

use crate::world::{World, defers, exit, read, says, stay};
use fencepost_core::retention::{Bounds, Keep};
use fencepost_core::state::{RunState, RunType, TiState};
use fencepost_core::time::Span;
use fencepost_engine::assets::triggering;
use fencepost_engine::error::EngineError;
use fencepost_engine::explain::explain_dag;
use fencepost_engine::operations::answer::{Reply, answer};
use fencepost_engine::operations::assets::{Emit, emit};
use fencepost_engine::operations::run_control::{delete_run, pause_dag};
use fencepost_engine::retention::{Kind, Sweep};
use fencepost_store::query::asset::{self, view};
use fencepost_store::query::run::Run;
use serde_json::{Value, json};

const PRODUCERS: [&str; 2] = [
    "dag_id: p\ntasks:\n  one: {run: x, outlets: [a]}\n  two: {run: x, outlets: [b, c]}\n",
    "dag_id: q\ntasks:\n  one: {run: x, outlets: [a]}\n",
];
const ALL: &str = "dag_id: all\nschedule: {assets: [a, b]}\ntasks: {t: {run: x}}\n";
const ANY: &str = "dag_id: any\nschedule: {assets: {any: [a, c]}}\ntasks: {t: {run: x}}\n";

async fn outside(world: &World, name: &str) -> Result<i64, EngineError> {
    let request = Emit { asset: name.into(), extra: json!({ "by": "hand" }), by: "anna".into() };
    emit(&world.cx, request).await
}

/// Runs of a DAG that events made, oldest first.
async fn made(world: &World, dag_id: &str) -> Vec<Run> {
    let runs = world.all_runs().await.into_iter();
    runs.filter(|run| run.dag_id == dag_id && run.run_type == RunType::AssetTriggered).collect()
}

/// `a b b` for each run of a DAG: the events that it took.
async fn taken(world: &World, dag_id: &str) -> Vec<String> {
    let tx = world.cx.store.read("test").await.unwrap();
    let mut out = Vec::new();
    for run in made(world, dag_id).await {
        let events = asset::of_run(&tx, run.run_pk, 1_000).await.unwrap();
        let names: Vec<String> = events.into_iter().map(|event| event.asset).collect();
        out.push(names.join(" "));
    }
    out
}

/// `a: 2`, of what is queued for a DAG.
async fn queued(world: &World, dag_id: &str) -> Vec<String> {
    let tx = world.cx.store.read("test").await.unwrap();
    let all = asset::queued(&tx, dag_id).await.unwrap();
    all.iter().map(|one| format!("{}: {}", one.asset, one.count)).collect()
}

/// `a p/r/one[-1]`, of all events, oldest first.
async fn events(world: &World) -> Vec<String> {
    let tx = world.cx.store.read("test").await.unwrap();
    let mut all = view::events(&tx, None, i64::MAX, 1_000).await.unwrap();
    all.reverse();
    let show = |e: &asset::AssetEvent| match e.dag_id.as_str() {
        "" => format!("{} {}", e.asset, e.emitted_by),
        _ => format!("{} {}/{}/{}[{}]", e.asset, e.dag_id, e.run_id, e.task_id, e.map_index),
    };
    all.iter().map(show).collect()
}

#[tokio::test]
async fn two_producers_make_the_runs_of_two_consumers() {
    let mut world = World::of(&[PRODUCERS[0], PRODUCERS[1], ALL, ANY]).await;
    world.trigger("q", "r1").await;
    world.finish().await;
    // One asset of `all` is not enough; `any` runs at once.
    assert_eq!(taken(&world, "any").await, ["a"]);
    assert_eq!(
        (taken(&world, "all").await.len(), queued(&world, "all").await),
        (0, vec!["a: 1".into()])
    );
    world.trigger("q", "r2").await;
    world.trigger("p", "r3").await;
    world.finish().await;
    // A run takes everything that is queued for its DAG, once.
    let all = taken(&world, "all").await;
    assert!(all.iter().all(|names| names.contains('a') && names.contains('b')), "{all:?}");
    let words = |taken: &[String]| taken.join(" ").split(' ').count();
    assert_eq!((words(&all), queued(&world, "all").await.len()), (4, 0));
    assert_eq!(words(&taken(&world, "any").await), 4);
    let run = &made(&world, "all").await[0];
    assert!(run.run_id.starts_with("asset_triggered__2026-03-01T00:00:"), "{}", run.run_id);
    assert_eq!((run.logical_date, run.state), (None, RunState::Success));
    // Its data interval spans those of the runs that produced.
    let first = world.run("q", "r1").await;
    assert_eq!(run.interval_start, first.interval_start);
    assert!(run.interval_end >= world.run("q", "r2").await.interval_end);
}

#[tokio::test]
async fn every_kind_of_task_emits_with_its_success_and_no_other_end_does() {
    let text = "
dag_id: d
tasks:
  run: {run: x, outlets: [o]}
  mapped: {run: x, expand: {n: [1, 2]}, outlets: [o]}
  root: {noop: true, outlets: [o]}
  noop: {noop: true, depends_on: [run], outlets: [o]}
  trigger: {trigger_dag: other, outlets: [o]}
  wait: {wait: {interval: 1m}, outlets: [o]}
  ask: {wait: {approval: Well?}, outlets: [o]}
  defers: {run: x, outlets: [o]}
  fails: {run: x, outlets: [never]}
  skips: {run: x, outlets: [never]}
  unmet: {noop: true, when: 'false', outlets: [never]}
  marked: {run: x, outlets: [never]}
";
    let mut world = World::of(&[text, "dag_id: other\ntasks: {t: {run: x}}\n"]).await;
    world.script(|what| match (what.task_id.as_str(), &what.event) {
        ("fails", _) => exit(1),
        ("skips", _) => exit(99),
        ("marked", _) => stay(),
        ("defers", None) => defers(json!({ "interval": "1m" })),
        _ => exit(0),
    });
    world.trigger("d", "r").await;
    world.settle().await;
    // A deferral is no success.
    assert!(!events(&world).await.iter().any(|e| e.contains("defers") || e.contains("wait")));
    world.mark("d", "r", "marked", TiState::Success).await;
    let reply = Reply {
        dag_id: "d".into(),
        run_id: "r".into(),
        task_id: "ask".into(),
        map_index: None,
        approves: true,
        by: "anna".into(),
        reason: None,
    };
    answer(&world.cx, &reply).await.unwrap();
    world.finish().await;
    let mut found = events(&world).await;
    found.sort();
    let of = |name: &str| format!("o d/r/{name}");
    let expected = [
        "ask[-1]",
        "defers[-1]",
        "mapped[0]",
        "mapped[1]",
        "noop[-1]",
        "root[-1]",
        "run[-1]",
        "trigger[-1]",
        "wait[-1]",
    ];
    assert_eq!(found, expected.map(of));
    assert_eq!(world.why("d", "r", "marked").await, "success (mark)");
    let lines = world.events().await.into_iter().filter(|line| line.kind == "asset_event");
    assert_eq!(lines.count(), expected.len());
}

#[tokio::test]
async fn what_is_refused_as_late_emits_nothing_and_a_clear_emits_anew() {
    let mut world = World::of(&[PRODUCERS[1], ANY]).await;
    world.script(|what| if what.attempt == 1 && what.dag_id == "q" { stay() } else { exit(0) });
    world.trigger("q", "r").await;
    world.settle().await;
    let old = world.machine.token_of("one");
    world.clear("q", "r", &["one"]).await;
    world.machine.end(old, fencepost_core::verdict::Ending::Exit(0));
    world.finish().await;
    // Whatever the old attempt said, only the accepted result counts.
    assert_eq!(events(&world).await, ["a q/r/one[-1]"]);
    world.clear("q", "r", &["one"]).await;
    world.finish().await;
    assert_eq!(events(&world).await, ["a q/r/one[-1]", "a q/r/one[-1]"]);
    assert_eq!(taken(&world, "any").await, ["a", "a"]);
}

#[tokio::test]
async fn what_comes_while_the_consumer_is_paused_waits_for_one_run() {
    let mut world = World::of(&[PRODUCERS[0], PRODUCERS[1], ALL]).await;
    pause_dag(&world.cx, "all", true, "me").await.unwrap();
    for run in ["r1", "r2"] {
        world.trigger("q", run).await;
        world.trigger("p", run).await;
        world.finish().await;
    }
    assert_eq!(
        (taken(&world, "all").await.len(), queued(&world, "all").await.join(", ")),
        (0, "a: 4, b: 2".into())
    );
    world.restart().await;
    pause_dag(&world.cx, "all", false, "me").await.unwrap();
    world.finish().await;
    let all = taken(&world, "all").await;
    assert_eq!((all.len(), all[0].split(' ').count()), (1, 6));
}

#[tokio::test]
async fn a_consumer_counts_from_its_file_on_and_an_edit_keeps_what_it_still_names() {
    let mut world = World::of(&[PRODUCERS[0], PRODUCERS[1]]).await;
    world.trigger("q", "before").await;
    world.finish().await;
    world.load("late.yaml", ALL).await;
    world.settle().await;
    assert_eq!(queued(&world, "all").await, Vec::<String>::new());
    world.trigger("q", "after").await;
    world.finish().await;
    assert_eq!(queued(&world, "all").await, ["a: 1"]);
    // What it still names stays; what it names no more is gone, and the log says so.
    let wider = "dag_id: all\nschedule: {assets: [a, b, d]}\ntasks: {t: {run: x}}\n";
    world.load("late.yaml", wider).await;
    assert_eq!(queued(&world, "all").await, ["a: 1"]);
    let other = "dag_id: all\nschedule: {assets: {any: [b, d]}}\ntasks: {t: {run: x}}\n";
    world.load("late.yaml", other).await;
    assert_eq!(queued(&world, "all").await, Vec::<String>::new());
    let dropped = world.events().await;
    let dropped = dropped.iter().rfind(|line| line.kind == "asset_events_dropped").unwrap();
    assert!(dropped.reason.as_deref().unwrap().starts_with("1 queued events"), "{dropped:?}");
    // A file that is away for a while misses nothing.
    world.remove("late.yaml").await;
    world.trigger("p", "away").await;
    world.finish().await;
    assert_eq!(taken(&world, "all").await, Vec::<String>::new());
    world.load("late.yaml", other).await;
    world.finish().await;
    assert_eq!(taken(&world, "all").await, ["b"]);
    // Without a schedule it takes nothing any more.
    world.load("late.yaml", "dag_id: all\ntasks: {t: {run: x}}\n").await;
    world.trigger("p", "last").await;
    world.finish().await;
    assert_eq!(taken(&world, "all").await, ["b"]);
}

/// AC-76: while the limit is reached nothing is stranded, and what waits is bounded.
#[tokio::test]
async fn events_while_the_limit_is_reached_are_all_taken() {
    let one = "dag_id: any\nschedule: {assets: a}\nmax_active_runs: 1\ntasks: {t: {run: x}}\n";
    let mut world = World::of(&[PRODUCERS[1], one]).await;
    world.script(|_| stay());
    let emitted = 50;
    for _ in 0..emitted {
        outside(&world, "a").await.unwrap();
        world.settle().await;
    }
    let runs = made(&world, "any").await;
    let waiting = runs.iter().filter(|run| run.state == RunState::Queued).count();
    assert_eq!((runs.len(), waiting), (34, 33));
    assert_eq!(queued(&world, "any").await, ["a: 16"]);
    world.script(|_| exit(0));
    for token in world.machine.running() {
        world.machine.end(token, fencepost_core::verdict::Ending::Exit(0));
    }
    world.finish().await;
    let all = taken(&world, "any").await;
    // The run after the last that waited took what had gathered.
    assert_eq!((all.len(), all.join(" ").split(' ').count()), (35, emitted));
    assert_eq!(queued(&world, "any").await, Vec::<String>::new());
}

#[tokio::test]
async fn tasks_are_told_which_events_made_their_run() {
    let mut world = World::of(&[PRODUCERS[0], ALL]).await;
    world.script(|what| match what.task_id.as_str() {
        "one" => says("asset_extra", json!({ "rows": 7 })),
        "two" => says("asset_extra", json!("x".repeat(20_000))),
        _ => exit(0),
    });
    world.trigger("p", "r").await;
    world.finish().await;
    let run = made(&world, "all").await.pop().unwrap();
    let tx = world.cx.store.read("test").await.unwrap();
    let told = Value::Object(triggering(&tx, &run).await.unwrap());
    let one = &told["a"][0];
    assert_eq!((&one["source_dag_id"], &one["source_run_id"]), (&json!("p"), &json!("r")));
    assert_eq!((&one["source_task_id"], &one["source_map_index"]), (&json!("one"), &json!(-1)));
    assert_eq!((&one["extra"], told["a"].as_array().unwrap().len()), (&json!({ "rows": 7 }), 1));
    // What is too large is left out, and says so.
    assert_eq!(told["b"][0]["extra"], json!({ "left_out": "20002 bytes; at most 16384" }));
    let by_hand = world.run("p", "r").await;
    assert_eq!(triggering(&tx, &by_hand).await.unwrap().len(), 0);
}

#[tokio::test]
async fn a_wait_for_an_asset_ends_with_an_event_since_it_began() {
    let text = "
dag_id: d
tasks:
  w: {wait: {asset: a, poke_interval: 10s}}
  back: {wait: {asset: a, since: '2026-03-01T00:00:00Z', poke_interval: 10s}}
  late: {wait: {asset: 'a', timeout: 1h, since: '2026-03-02T00:00:00Z', soft_fail: true}}
";
    let mut world = World::of(&[PRODUCERS[1], text]).await;
    outside(&world, "a").await.unwrap();
    world.pass_time(Span::from_secs(1));
    world.trigger("d", "r").await;
    world.settle().await;
    assert_eq!(world.shown("d", "r").await, "running: w deferred, back success, late deferred");
    outside(&world, "a").await.unwrap();
    world.pass_time(Span::from_secs(20));
    world.settle().await;
    assert_eq!(world.why("d", "r", "w").await, "success (event)");
    world.finish().await;
    assert_eq!(world.why("d", "r", "late").await, "skipped (wait_timeout)");
}

#[tokio::test]
async fn explain_says_what_is_missing_and_who_could_bring_it() {
    let text = "dag_id: c\nschedule: {assets: [a, {any: [b, nobody]}]}\ntasks: {t: {run: x}}\n";
    let mut world = World::of(&[PRODUCERS[0], text]).await;
    let said = |told: fencepost_engine::explain::Explanation| {
        let gate = told.gates.into_iter().find(|gate| gate.code == "assets_missing").unwrap();
        (gate.text, told.next.unwrap_or_default())
    };
    let (text, next) = said(explain_dag(&world.cx, "c").await.unwrap());
    assert_eq!(text, "waits for events of a & (b | nobody); no task produces nobody");
    assert_eq!(next, "fencepost assets emit a");
    outside(&world, "a").await.unwrap();
    world.settle().await;
    let (text, next) = said(explain_dag(&world.cx, "c").await.unwrap());
    let there = "; there are 1 of a since 2026-03-01T00:00:00.000Z; no task produces nobody";
    assert_eq!(text, format!("waits for events of b | nobody{there}"));
    assert_eq!(next, "fencepost assets emit b");
    outside(&world, "nobody").await.unwrap();
    let (text, _) = said(explain_dag(&world.cx, "c").await.unwrap());
    assert!(text.ends_with("the next pass makes a run"), "{text}");
    world.finish().await;
    assert_eq!(taken(&world, "c").await, ["a nobody"]);
}

#[tokio::test]
async fn an_event_from_outside_needs_an_asset_that_somebody_names() {
    let world = World::of(&[PRODUCERS[1]]).await;
    let refused = outside(&world, "ordres").await.unwrap_err();
    assert_eq!(refused.to_string(), "there is no asset `ordres`: no DAG names it");
    outside(&world, "a").await.unwrap();
    let line = world.events().await.into_iter().rfind(|line| line.kind == "asset_event").unwrap();
    assert_eq!((line.actor.as_str(), line.reason.as_deref()), ("anna", Some("a")));
    let large = Emit { asset: "a".into(), extra: json!("x".repeat(17_000)), by: "anna".into() };
    assert!(emit(&world.cx, large).await.is_err());
    assert_eq!(events(&world).await, ["a anna"]);
}

/// Old events go, but those that a run has or a DAG waits with; the queue of a DAG whose file is gone is no reason.
#[tokio::test]
async fn retention_removes_events_that_nobody_has() {
    let mut world = World::of(&[PRODUCERS[0], PRODUCERS[1], ALL, ANY]).await;
    world
        .load("gone.yaml", "dag_id: gone\nschedule: {assets: [a, z]}\ntasks: {t: {run: x}}\n")
        .await;
    world.trigger("q", "r1").await;
    world.finish().await;
    world.remove("gone.yaml").await;
    let sweep = async |world: &World| {
        let mut sweep = Sweep::new(Bounds::of(&Keep::default(), world.now()), &[Kind::Events]);
        while sweep.step(&world.cx).await.unwrap() {}
        sweep.into_found().removed.get("asset events").copied().unwrap_or(0)
    };
    world.pass_time(Span::from_hours(24 * 400));
    // `all` waits with it, and a run of `any` has it.
    assert_eq!(sweep(&world).await, 0);
    let run = made(&world, "any").await.pop().unwrap();
    delete_run(&world.cx, "any", &run.run_id, "me").await.unwrap();
    assert_eq!(sweep(&world).await, 0);
    outside(&world, "b").await.unwrap();
    world.finish().await;
    let run = made(&world, "all").await.pop().unwrap();
    assert_eq!(taken(&world, "all").await, ["a b"]);
    delete_run(&world.cx, "all", &run.run_id, "me").await.unwrap();
    // What was emitted just now is young.
    assert_eq!(sweep(&world).await, 1);
    assert_eq!(events(&world).await, ["b anna"]);
}

/// Taken is taken: a run that is cleared, cancelled or deleted gives nothing back.
#[tokio::test]
async fn a_run_that_is_cleared_has_the_same_events() {
    let mut world = World::of(&[PRODUCERS[1], ANY]).await;
    outside(&world, "a").await.unwrap();
    world.finish().await;
    let run = made(&world, "any").await.pop().unwrap();
    world.clear("any", &run.run_id, &[]).await;
    world.finish().await;
    assert_eq!(taken(&world, "any").await, ["a"]);
    assert_eq!(world.machine.order().len(), 2);
    delete_run(&world.cx, "any", &run.run_id, "me").await.unwrap();
    world.settle().await;
    assert_eq!(made(&world, "any").await.len(), 0);
}

#[test]
fn a_schedule_by_assets_reads_for_people() {
    let dag = read("c.yaml", "schedule: {assets: [a, {any: [b, c]}]}\ntasks: {t: {run: x}}\n").dag;
    assert_eq!(dag.timing.schedule.assets().unwrap().to_string(), "a & (b | c)");
}

/// What comes between the look and the taking, or is more than one run takes, is for the next run.
#[tokio::test]
async fn a_run_takes_what_was_found_and_no_more() {
    let world = World::of(&[PRODUCERS[0], ALL]).await;
    outside(&world, "a").await.unwrap();
    outside(&world, "a").await.unwrap();
    let run = world.trigger("all", "r").await;
    let tx = world.cx.store.read("test").await.unwrap();
    let found = asset::queued(&tx, "all").await.unwrap();
    drop(tx);
    outside(&world, "a").await.unwrap();
    let tx = world.cx.store.begin("test").await.unwrap();
    assert_eq!(asset::take(&tx, "all", run.run_pk, &found).await.unwrap(), 2);
    tx.commit().await.unwrap();
    assert_eq!(queued(&world, "all").await, ["a: 1"]);
}
