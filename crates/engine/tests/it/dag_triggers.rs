//! Tasks that trigger runs of other DAGs.

use crate::world::{World, exit, says};
use fencepost_core::state::TiState;
use serde_json::json;

const OTHER: &str = "
dag_id: other
params: {day: none, n: 0, list: []}
tasks:
  t: {run: x}
";

#[tokio::test]
async fn a_task_triggers_a_run_with_typed_params_and_without_a_worker() {
    let text = "
dag_id: d
tasks:
  a: {run: x, outputs: {n: integer}}
  t:
    depends_on: [a]
    trigger_dag:
      dag_id: other
      run_id: 'by_{{ run_id }}'
      logical_date: '2026-03-01T00:00:00Z'
      params: {day: 'day {{ outputs.a.n }}', n: '{{ outputs.a.n }}', list: [1, 2]}
  last: {run: x, depends_on: [t]}
";
    let mut world = World::of(&[text, OTHER]).await;
    world.script(|what| if what.task_id == "a" { says("n", json!(7)) } else { exit(0) });
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: a success, t success, last success");
    assert_eq!(world.shown("other", "by_r").await, "success: t success");
    let run = world.run("other", "by_r").await;
    assert_eq!(run.params, json!({ "day": "day 7", "n": 7, "list": [1, 2] }));
    assert_eq!(run.logical_date.unwrap().to_string(), "2026-03-01T00:00:00.000Z");
    assert_eq!(run.triggered_by, "d/r/t");
    assert!(world.attempts("d", "r", "t").await.is_empty());
}

/// What the scheduler does itself waits for the run before as everything else does.
#[tokio::test]
async fn triggers_and_expansions_wait_for_the_run_before() {
    let text = "
dag_id: d
params: {n: [1]}
default_args: {depends_on_past: true}
tasks:
  t: {trigger_dag: other}
  m: {run: x, expand: {n: '{{ params.n }}'}}
";
    let mut world = World::of(&[text, OTHER]).await;
    world.script(|what| exit(u8::from(what.task_id == "m")));
    for run in ["r1", "r2"] {
        world.trigger("d", run).await;
        world.settle().await;
        world.pass_time(fencepost_core::time::Span::from_secs(1));
    }
    assert_eq!(world.shown("d", "r1").await, "failed: t success, m[0] failed");
    assert_eq!(world.shown("d", "r2").await, "running: t success, m none");
}

#[tokio::test]
async fn a_mapped_task_triggers_a_run_for_each_element() {
    let text = "
dag_id: d
tasks:
  t: {trigger_dag: {dag_id: other, run_id: 'o{{ n }}', params: {n: '{{ n }}'}}, expand: {n: [1, 2, 3]}}
";
    let mut world = World::of(&[text, OTHER]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    for n in 1..=3 {
        let run = world.run("other", &format!("o{n}")).await;
        assert_eq!(run.params["n"], json!(n));
    }
}

#[tokio::test]
async fn what_is_refused_fails_its_task_and_says_why() {
    for (of, why) in [
        ("nowhere", "no DAG"),
        ("{dag_id: other, params: {what: 1}}", "unknown param `what`"),
        ("{dag_id: other, params: {n: x}}", "param `n`"),
        ("{dag_id: d, run_id: r}", "exists"),
        ("{dag_id: other, logical_date: soon}", "`soon` is no instant"),
        ("{dag_id: '{{ outputs.t.x }}'}", "outputs"),
    ] {
        let text = format!(
            "dag_id: d\ntasks:\n  t: {{noop: true}}\n  it: {{depends_on: [t], trigger_dag: {of}}}\n"
        );
        let mut world = World::of(&[&text, OTHER]).await;
        world.trigger("d", "r").await;
        world.finish().await;
        assert_eq!(world.ti("d", "r", "it").await.state, TiState::Failed, "{of}");
        assert_eq!(world.why("d", "r", "it").await, "failed (trigger_refused)");
        let events = world.events().await;
        let said = events.iter().rfind(|e| e.task_id.as_deref() == Some("it")).unwrap();
        let reason = said.reason.clone().unwrap_or_default();
        assert!(reason.contains(why), "{of}: {reason}");
    }
}
