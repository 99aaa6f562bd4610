//! Shapes of DAGs: what runs, in which order, and how the run ends.

use crate::world::{World, exit, gone, says, tally};
use fencepost_core::trigger_rule::TriggerRule;
use serde_json::json;

pub(crate) const DIAMOND: &str = "
dag_id: d
tasks:
  a: {run: a}
  b: {run: b, depends_on: [a]}
  c: {run: c, depends_on: [a]}
  d: {run: d, depends_on: [b, c]}
";

#[tokio::test]
async fn a_line_of_tasks_runs_in_its_order() {
    let text = "
dag_id: d
tasks:
  third: {run: x, depends_on: [second]}
  second: {run: x, depends_on: [first]}
  first: {run: x}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.machine.order(), ["first", "second", "third"]);
    assert_eq!(
        world.shown("d", "r").await,
        "success: third success, second success, first success"
    );
}

#[tokio::test]
async fn a_diamond_runs_each_task_once_after_its_upstreams() {
    let mut world = World::of(&[DIAMOND]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.machine.order(), ["a", "b", "c", "d"]);
    assert_eq!(world.shown("d", "r").await, "success: a success, b success, c success, d success");
}

#[tokio::test]
async fn a_failure_fails_what_needs_it_and_nothing_beside_it() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| exit(u8::from(what.task_id == "b")));
    world.trigger("d", "r").await;
    world.finish().await;
    let shown = world.shown("d", "r").await;
    assert_eq!(shown, "failed: a success, b failed, c success, d upstream_failed");
}

#[tokio::test]
async fn a_run_whose_leaves_are_well_succeeds_whatever_failed_before() {
    let text = "
dag_id: d
tasks:
  a: {run: a}
  b: {run: b, depends_on: [a], trigger_rule: all_failed}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| exit(u8::from(what.task_id == "a")));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: a failed, b success");
}

/// What Airflow's documentation says of each rule, for upstreams that ended like this, spelled out
/// without the code under test.
fn expected(rule: TriggerRule, ends: &[&str]) -> &'static str {
    let count = |word: &str| ends.iter().filter(|end| **end == word).count();
    let (good, bad, skipped) = (count("success"), count("failed"), count("skipped"));
    let runs = |yes: bool, otherwise| if yes { "success" } else { otherwise };
    let broken = if bad > 0 { "upstream_failed" } else { "skipped" };
    match rule {
        TriggerRule::AllSuccess => runs(good == ends.len(), broken),
        TriggerRule::AllFailed => runs(bad == ends.len(), "skipped"),
        TriggerRule::AllDone | TriggerRule::Always => "success",
        TriggerRule::AllDoneMinOneSuccess | TriggerRule::OneSuccess => runs(good > 0, broken),
        TriggerRule::OneFailed => runs(bad > 0, "skipped"),
        TriggerRule::OneDone => runs(good + bad > 0, "skipped"),
        TriggerRule::NoneFailed => runs(bad == 0, "upstream_failed"),
        TriggerRule::NoneFailedMinOneSuccess => runs(bad == 0 && good > 0, broken),
        TriggerRule::NoneSkipped => runs(skipped == 0, "skipped"),
        TriggerRule::AllSkipped => runs(skipped == ends.len(), "skipped"),
    }
}

#[tokio::test]
async fn every_trigger_rule_decides_as_documented_for_all_ends_of_two_upstreams() {
    let mut text = String::from("dag_id: d\ntasks:\n  x: {run: x}\n  y: {run: y}\n");
    for (_, name) in TriggerRule::ALL {
        text.push_str(&format!("  {name}: {{run: z, depends_on: [x, y], trigger_rule: {name}}}\n"));
    }
    let codes = [("success", 0), ("failed", 1), ("skipped", 99)];
    for (x, x_code) in codes {
        for (y, y_code) in codes {
            let mut world = World::of(&[&text]).await;
            world.script(move |what| match what.task_id.as_str() {
                "x" => exit(x_code),
                "y" => exit(y_code),
                _ => exit(0),
            });
            world.trigger("d", "r").await;
            world.finish().await;
            for (rule, name) in TriggerRule::ALL {
                let state = world.ti("d", "r", name).await.state;
                assert_eq!(state.as_str(), expected(rule, &[x, y]), "{name} after {x}, {y}");
            }
        }
    }
}

#[tokio::test]
async fn a_task_that_fires_on_the_first_end_is_not_decided_again_by_the_second() {
    let text = "
dag_id: d
tasks:
  x: {run: x}
  y: {run: y, depends_on: [x]}
  z: {run: z, depends_on: [x, y], trigger_rule: one_success}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| exit(u8::from(what.task_id == "y")));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: x success, y failed, z success");
    assert_eq!(world.machine.starts("r")["z"], 1);
}

#[tokio::test]
async fn a_fan_of_two_hundred_comes_together_once() {
    let mut text = String::from("dag_id: d\nmax_active_tasks: 500\ntasks:\n  first: {run: x}\n");
    let names: Vec<String> = (0..200).map(|n| format!("t{n}")).collect();
    for name in &names {
        text.push_str(&format!("  {name}: {{run: x, depends_on: [first]}}\n"));
    }
    text.push_str(&format!("  last: {{run: x, depends_on: [{}]}}\n", names.join(", ")));
    let mut world = World::of(&[&text]).await;
    world.workers[0].slots = 300;
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.machine.starts("r").len(), 202);
    assert!(world.machine.starts("r").values().all(|n| *n == 1));
    assert_eq!(world.machine.order().last().unwrap(), "last");
}

#[tokio::test]
async fn mapped_tasks_are_the_cross_product_of_their_lists() {
    let text = "
dag_id: d
tasks:
  m: {run: x, expand: {x: [1, 2], y: [a, b, c]}}
  last: {run: x, depends_on: [m]}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| exit(u8::from(what.map_index == 4)));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(
        world.shown("d", "r").await,
        "failed: m[0] success, m[1] success, m[2] success, m[3] success, m[4] failed, \
         m[5] success, last upstream_failed"
    );
}

#[tokio::test]
async fn a_task_after_mapped_ones_waits_for_all_of_them() {
    let text = "
dag_id: d
tasks:
  m: {run: x, expand: {x: [1, 2, 3]}, max_active_tis_per_dagrun: 1}
  last: {run: x, depends_on: [m]}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.machine.order(), ["m[0]", "m[1]", "m[2]", "last"]);
    assert_eq!(world.ti("d", "r", "last").await.upstream.success, 3);
}

#[tokio::test]
async fn an_empty_list_skips_the_task_and_what_needs_it() {
    let text = "
dag_id: d
description: empty lists
tasks:
  m: {run: x, expand: {x: [1], y: [1, 2]}}
  needs: {run: x, depends_on: [m]}
  anyway: {run: x, depends_on: [m], trigger_rule: all_done}
";
    let mut world = World::of(&[text]).await;
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: m skipped, needs skipped, anyway success");
    assert_eq!(world.why("d", "r", "m").await, "skipped (empty_expand)");
}

#[tokio::test]
async fn a_condition_decides_and_its_mistake_fails_only_its_own_task() {
    let text = "
dag_id: d
tasks:
  a: {run: x}
  some: {run: x, depends_on: [a], when: '{{ outputs.a.rows > 0 }}'}
  none: {run: x, depends_on: [a], when: '{{ outputs.a.rows > 5 }}'}
  wrong: {run: x, depends_on: [a], when: '{{ outputs.a.lines > 0 }}'}
  after: {run: x, depends_on: [wrong], trigger_rule: all_failed}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| if what.task_id == "a" { says("rows", json!(3)) } else { exit(0) });
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(
        world.shown("d", "r").await,
        "success: a success, some success, none skipped, wrong failed, after success"
    );
    assert_eq!(world.why("d", "r", "none").await, "skipped (when)");
    assert_eq!(world.why("d", "r", "wrong").await, "failed (template_error)");
    let told = world.events().await.into_iter().filter(|e| e.kind == "template_error").count();
    assert_eq!(told, 1);
    assert!(!world.machine.starts("r").contains_key("wrong"));
}

#[tokio::test]
async fn a_chain_of_noops_ends_in_one_pass_without_an_attempt() {
    let mut text = String::from("dag_id: d\ntasks:\n  t0: {noop: true}\n");
    for n in 1..30 {
        text.push_str(&format!("  t{n}: {{noop: true, depends_on: [t{}]}}\n", n - 1));
    }
    let mut world = World::of(&[&text]).await;
    world.trigger("d", "r").await;
    world.passes().await;
    let run = world.run("d", "r").await;
    assert_eq!(run.state.as_str(), "success");
    let tis = world.tis_of(&run).await;
    assert_eq!(tally(tis.iter().map(|ti| ti.state.as_str())), tally(["success"; 30]));
    assert!(world.machine.order().is_empty());
}

#[tokio::test]
async fn a_skip_goes_down_through_a_chain_and_stops_at_a_rule_that_allows_it() {
    let text = "
dag_id: d
tasks:
  a: {run: x}
  b: {run: x, depends_on: [a]}
  c: {run: x, depends_on: [b]}
  d: {run: x, depends_on: [c], trigger_rule: none_failed}
";
    let mut world = World::of(&[text]).await;
    world.script(|what| exit(if what.task_id == "a" { 99 } else { 0 }));
    world.trigger("d", "r").await;
    world.finish().await;
    assert_eq!(world.shown("d", "r").await, "success: a skipped, b skipped, c skipped, d success");
}

#[tokio::test]
async fn each_end_has_one_line_in_the_log_and_is_counted_once() {
    let mut world = World::of(&[DIAMOND]).await;
    world.script(|what| if what.task_id == "b" && what.attempt == 1 { gone() } else { exit(0) });
    world.trigger("d", "r").await;
    world.finish().await;
    let events = world.events().await;
    let ends = events.iter().filter(|e| e.kind == "ti_state" && e.to.as_deref() == Some("success"));
    assert_eq!(tally(ends.map(|e| e.task_id.as_deref().unwrap())), tally(["a", "b", "c", "d"]));
    let run_ends =
        events.iter().filter(|e| e.kind == "run_state").map(|e| e.to.as_deref().unwrap());
    assert_eq!(run_ends.collect::<Vec<_>>(), ["running", "success"]);
    assert_eq!(world.ti("d", "r", "d").await.upstream.success, 2);
}
