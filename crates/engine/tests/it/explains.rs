//! `explain`: each reason code is given for what it names, and blocks. (`recovery_ramp`, `epoch_reconciling`,
//! `held_lost`, `previous_attempt_not_released` and `scheduler_down` are shown where their subjects are.)

use crate::world::{Worker, World, exit, request, stay};
use fencepost_core::time::Span;
use fencepost_engine::error::EngineError;
use fencepost_engine::explain::{Explanation, Gate, GateStatus, explain, explain_dag};
use fencepost_engine::operations::dag_files::{DagFile, load};
use fencepost_engine::operations::pools::{self, PoolChange};
use fencepost_engine::operations::run_control::{pause_dag, pause_run};
use fencepost_engine::operations::trigger::{LogicalDate, TriggerRequest, trigger};
use fencepost_engine::operations::workers::drain;
use serde_json::json;

const TWO: &str = "
dag_id: d
max_active_runs: 1
tasks:
  a: {run: x}
  b: {run: x, depends_on: [a]}
";

/// The one gate that blocks. At most one does, and those behind it are not reached.
fn one(told: &Explanation) -> Gate {
    let blocks = |gate: &Gate| gate.status == GateStatus::Blocking;
    let at = told.gates.iter().position(blocks).unwrap_or_else(|| panic!("{told:#?}"));
    assert!(told.gates[..at].iter().all(|gate| gate.status == GateStatus::Passed), "{told:#?}");
    assert!(told.gates[at + 1..].iter().all(|gate| gate.status == GateStatus::NotReached));
    assert!(told.summary.contains(&told.gates[at].text), "{told:#?}");
    told.gates[at].clone()
}

async fn task(world: &World, run: &str, task: &str) -> Gate {
    one(&explain(&world.cx, "d", run, Some((task, None))).await.unwrap())
}

/// What a task waits for, in a run that was planned and that nobody works on.
async fn planned(dag: &str, pools: &[(&str, u32)], name: &str) -> Gate {
    let mut world = World::of(&[dag]).await;
    for (pool, slots) in pools {
        let change = PoolChange { slots: Some(*slots), description: None };
        pools::set(&world.cx, pool, &change, "me").await.unwrap();
    }
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.pass_time(Span::from_secs(2));
    task(&world, "r", name).await
}

#[tokio::test]
async fn a_dag_or_a_run_that_is_paused() {
    let world = World::of(&[TWO]).await;
    world.trigger("d", "r").await;
    pause_run(&world.cx, "d", "r", true, "me").await.unwrap();
    let told = explain(&world.cx, "d", "r", None).await.unwrap();
    assert_eq!(one(&told).code, "run_paused");
    assert_eq!(told.next.as_deref(), Some("fencepost runs resume d r"));
    pause_dag(&world.cx, "d", true, "anna").await.unwrap();
    let told = explain(&world.cx, "d", "r", None).await.unwrap();
    assert_eq!((one(&told).code, &*one(&told).text), ("dag_paused", "DAG is paused by anna"));
    assert_eq!(one(&explain_dag(&world.cx, "d").await.unwrap()).code, "dag_paused");
}

#[tokio::test]
async fn a_run_that_waits_for_its_place_and_a_task_for_its_upstreams() {
    let mut world = World::of(&[TWO]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    world.trigger("d", "second").await;
    world.settle().await;
    let gate = one(&explain(&world.cx, "d", "second", None).await.unwrap());
    assert_eq!((gate.code, &*gate.text), ("run_queued_max_active_runs", "1 of 1 runs active"));
    assert_eq!(gate.holders, ["r"]);
    assert_eq!(one(&explain_dag(&world.cx, "d").await.unwrap()).holders, ["r"]);
    let gate = task(&world, "r", "b").await;
    assert_eq!((gate.code, &*gate.text), ("upstream_not_done", "waits for a (running)"));
}

#[tokio::test]
async fn a_trigger_rule_that_can_no_longer_hold() {
    let rules = "
dag_id: d
tasks:
  a: {run: x}
  b: {run: x, depends_on: [a]}
  c: {run: x, depends_on: [a], trigger_rule: all_skipped}
  e: {run: x, depends_on: [a], trigger_rule: all_done}
";
    let mut world = World::of(&[rules]).await;
    world.script(|what| if what.task_id == "a" { exit(1) } else { exit(0) });
    world.trigger("d", "r").await;
    world.finish().await;
    let told = explain(&world.cx, "d", "r", Some(("b", None))).await.unwrap();
    let text = "all_success can no longer hold: a (failed) → upstream_failed";
    assert_eq!((one(&told).code, &*one(&told).text), ("trigger_rule_unmet", text));
    let next = "mend it, then  fencepost tasks clear d r a --downstream";
    assert_eq!(told.next.as_deref(), Some(next));
    let gate = task(&world, "r", "c").await;
    assert_eq!(gate.code, "trigger_rule_unmet");
    assert!(gate.text.ends_with("→ skipped"), "{}", gate.text);
    let told = explain(&world.cx, "d", "r", Some(("e", None))).await.unwrap();
    assert!(told.gates.iter().all(|gate| gate.status == GateStatus::Passed), "{told:#?}");
}

#[tokio::test]
async fn a_task_that_depends_on_the_run_before() {
    let past = "
dag_id: d
tasks:
  a: {run: x, depends_on_past: true}
";
    let mut world = World::of(&[past]).await;
    world.script(|_| exit(1));
    for (run, date) in [("one", "2026-02-01T00:00:00Z"), ("two", "2026-02-02T00:00:00Z")] {
        let logical_date = LogicalDate::At(date.parse().unwrap());
        let asked = TriggerRequest { logical_date, ..request("d", run) };
        trigger(&world.cx, asked).await.unwrap();
        world.settle().await;
    }
    let gate = task(&world, "two", "a").await;
    assert_eq!(gate.code, "depends_on_past");
    assert!(gate.text.contains("one"), "{}", gate.text);
}

#[tokio::test]
async fn a_pool_that_is_full_or_too_small_or_missing() {
    let pooled = |slots: u32| {
        format!(
            "dag_id: d\ntasks:\n  a: {{run: x, pool: p}}\n  b: {{run: x, pool: p, pool_slots: {slots}}}\n"
        )
    };
    let gate = planned(&pooled(2), &[("p", 2)], "b").await;
    assert_eq!((gate.code, &*gate.text), ("pool_full", "pool `p` 1/2 slots; needs 2"));
    assert_eq!(gate.holders, ["d ×1"]);
    assert_eq!(planned(&pooled(3), &[("p", 2)], "b").await.code, "pool_too_small");
    let gate = planned(&pooled(1), &[], "b").await;
    assert_eq!((gate.code, &*gate.text), ("pool_missing", "there is no pool `p`"));
}

#[tokio::test]
async fn limits_of_a_dag_and_of_a_task() {
    let limited = "
dag_id: d
max_active_tasks: 1
tasks:
  a: {run: x, priority_weight: 9}
  b: {run: x}
";
    let gate = planned(limited, &[], "b").await;
    assert_eq!((gate.code, &*gate.text), ("dag_task_limit", "max_active_tasks 1/1"));
    for limit in ["max_active_tis_per_dag", "max_active_tis_per_dagrun"] {
        let mapped =
            format!("dag_id: d\ntasks:\n  a: {{run: x, expand: {{x: [1, 2]}}, {limit}: 1}}\n");
        let mut world = World::of(&[&mapped]).await;
        world.script(|_| stay());
        world.trigger("d", "r").await;
        world.settle().await;
        let told = explain(&world.cx, "d", "r", Some(("a", Some(1)))).await.unwrap();
        assert_eq!((one(&told).code, &*one(&told).text), ("task_limit", &*format!("{limit} 1/1")));
    }
}

#[tokio::test]
async fn a_queue_that_nobody_serves_and_workers_that_are_full() {
    let queued = "
dag_id: d
tasks:
  a: {run: x, queue: gpu}
  b: {run: x}
  c: {run: x, depends_on: [b]}
";
    let gate = planned(queued, &[], "a").await;
    let text = "no live worker serves queue `gpu`";
    assert_eq!((gate.code, &*gate.text), ("queue_without_worker", text));
    // One that served it, and is gone, is named; one that drains takes nothing.
    let mut world = World::shared(&[queued], &["one"], 1).await;
    let mut old = Worker::leased("old", 1);
    old.queues = vec!["gpu".into()];
    world.workers.push(old);
    world.settle().await;
    let job = world.workers[1].job.unwrap();
    world.workers[1].is_paused = true;
    world.until_lost(job).await;
    world.trigger("d", "r").await;
    world.plan().await;
    let gate = task(&world, "r", "a").await;
    assert!(gate.text.contains("(last seen: old, "), "{}", gate.text);
    // One worker with one slot, which is taken.
    let mut world = World::of(&[queued]).await;
    world.workers[0].slots = 1;
    world.script(|_| stay());
    for run in ["first", "second"] {
        world.trigger("d", run).await;
        world.settle().await;
    }
    world.pass_time(Span::from_secs(2));
    let gate = task(&world, "second", "b").await;
    assert_eq!((gate.code, &*gate.text), ("workers_full", "1 live workers, 1/1 slots"));
    drain(&world.cx, "one", "anna", None).await.unwrap();
    assert_eq!(task(&world, "second", "b").await.code, "queue_without_worker");
}

#[tokio::test]
async fn a_retry_that_waits_and_a_task_that_asked_to_be_held() {
    let asks = "
dag_id: d
tasks:
  a: {run: x, retries: 1, retry_delay: 5m}
  b: {run: x}
";
    let mut world = World::of(&[asks]).await;
    world.script(|what| if what.task_id == "a" { exit(1) } else { exit(77) });
    world.trigger("d", "r").await;
    world.settle().await;
    let gate = task(&world, "r", "a").await;
    assert_eq!(gate.code, "retry_delay");
    assert!(gate.text.starts_with("try 2 not before 2026-03-01T00:0"), "{}", gate.text);
    let gate = task(&world, "r", "b").await;
    assert_eq!(gate.code, "held");
    assert!(gate.text.contains("a person must decide"), "{}", gate.text);
}

async fn broken(world: &mut World, name: &str) {
    let mistake = json!([{
        "path": name, "line": 41, "column": 5, "severity": "error", "code": "unknown-key",
        "message": "unknown key `need`", "hint": "did you mean `depends_on`?"
    }]);
    world.present.insert(name.into());
    let file = DagFile { fileloc: name.into(), content: Err(mistake) };
    load(&world.cx, &[file], &world.present).await.unwrap();
}

const MISTAKE: &str = "line 41: unknown key `need` (did you mean `depends_on`?)";

#[tokio::test]
async fn a_file_that_cannot_be_read_or_is_gone() {
    let mut world = World::of(&[TWO]).await;
    world.script(|_| stay());
    world.trigger("d", "r").await;
    world.settle().await;
    broken(&mut world, "dag0.yaml").await;
    // What runs goes on with its version, and so does the DAG: told, and in nobody's way.
    let told = explain(&world.cx, "d", "r", None).await.unwrap();
    let gate = told.gates.iter().find(|gate| gate.code == "import_error").unwrap();
    let goes_on = "the run goes on with its own version";
    assert_eq!(gate.text, format!("dag0.yaml {MISTAKE}; {goes_on}"));
    assert_eq!(gate.status, GateStatus::Passed);
    let told = explain_dag(&world.cx, "d").await.unwrap();
    assert_eq!(told.gates[0].text, format!("dag0.yaml {MISTAKE}; version 1 goes on"));
    assert_eq!(told.gates[0].status, GateStatus::Passed);
    // A file that is gone makes no run.
    world.remove("dag0.yaml").await;
    let told = explain_dag(&world.cx, "d").await.unwrap();
    assert_eq!((&*told.state, one(&told).code), ("inactive", "import_error"));
    // Nor does one that never could be read; its DAG is known by its name only.
    broken(&mut world, "new.yaml").await;
    let told = explain_dag(&world.cx, "new").await.unwrap();
    assert_eq!((&*told.state, &*one(&told).text), ("unread", &*format!("new.yaml {MISTAKE}")));
    let unknown = explain_dag(&world.cx, "nothing").await.unwrap_err();
    assert!(matches!(unknown, EngineError::Refused(_)), "{unknown}");
}

#[tokio::test]
async fn a_schedule_whose_next_slot_is_to_come() {
    let daily = "dag_id: d\nschedule: '@daily'\ncatchup: next\ntasks:\n  a: {run: x}\n";
    let mut world = World::of(&[daily, "dag_id: m\ntasks:\n  a: {run: x}\n"]).await;
    world.pass_time(Span::from_hours(1));
    world.settle().await;
    let gate = one(&explain_dag(&world.cx, "d").await.unwrap());
    assert_eq!(gate.code, "not_due");
    assert!(gate.text.starts_with("next run at 2026-03-02T00:00:00"), "{}", gate.text);
    assert!(gate.text.ends_with("(in 23h)"), "{}", gate.text);
    let gate = one(&explain_dag(&world.cx, "m").await.unwrap());
    assert_eq!((gate.code, &*gate.text), ("not_due", "it has no schedule: runs are triggered"));
    // In the moment when it is due nothing blocks.
    world.pass_time(Span::from_hours(23));
    let told = explain_dag(&world.cx, "d").await.unwrap();
    assert!(told.gates.iter().all(|gate| gate.status == GateStatus::Passed), "{told:#?}");
}
