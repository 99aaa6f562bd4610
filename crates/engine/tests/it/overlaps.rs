//! Slots that cannot start when they are due: `start_deadline`, `overlap`, and what depends on the run
//! before. Nothing is dropped silently: each slot has one run, for ever.

use crate::world::{World, exit, stay};
use fencepost_core::state::RunState;
use fencepost_core::time::Span;
use fencepost_engine::Pass;
use fencepost_engine::explain::{GateStatus, explain};
use fencepost_engine::operations::run_control::pause_dag;
use fencepost_engine::scheduler::Scheduler;
use fencepost_store::query::run::Run;

fn hourly(more: &str) -> String {
    format!(
        "
dag_id: d
schedule: '@hourly'
start_date: 2026-03-01T00:00:00Z
{more}
tasks:
  t: {{run: x}}
"
    )
}

/// `00 success`, `01 missed (start_deadline)`: the hours of the runs, in the order of their dates.
async fn shown(world: &World) -> Vec<String> {
    let mut runs = world.all_runs().await;
    runs.sort_by_key(|run| run.logical_date);
    let why = |run: &Run| {
        let reason = || format!(" ({})", run.reason.as_deref().unwrap_or("?"));
        if run.state == RunState::Missed { reason() } else { String::new() }
    };
    let hour = |run: &Run| {
        run.run_id.chars().skip("scheduled__2026-03-01T".len()).take(2).collect::<String>()
    };
    runs.iter()
        .map(|run| hour(run) + &format!(" {}{}", run.state, why(run)))
        .collect::<Vec<String>>()
}

#[tokio::test]
async fn a_slot_that_waits_too_long_for_a_place_is_missed_once() {
    let text = hourly("catchup: true\nmax_active_runs: 1\nstart_deadline: 90m");
    let mut world = World::of(&[&text]).await;
    world.script(|_| stay());
    world.settle().await;
    for _ in 0..2 {
        world.pass_time(Span::from_hours(1));
        world.settle().await;
    }
    assert_eq!(shown(&world).await, ["00 running", "01 queued", "02 queued"]);
    // At its deadline it is in time, and after it is not.
    world.pass_time(Span::from_mins(30));
    world.settle().await;
    assert_eq!(shown(&world).await[1], "01 queued");
    world.pass_time(Span::from_micros(1));
    world.settle().await;
    assert_eq!(shown(&world).await, ["00 running", "01 missed (start_deadline)", "02 queued"]);
    let missed = world.run("d", "scheduled__2026-03-01T01:00:00Z").await;
    assert!(world.tis_of(&missed).await.is_empty());
    let told = explain(&world.cx, "d", &missed.run_id, None).await.unwrap();
    assert_eq!(told.gates[0].code, "start_deadline_passed");
    assert_eq!(told.gates[0].status, GateStatus::Blocking);
    assert!(told.gates[0].text.contains("late; recorded as missed"), "{told:?}");
    let events = world.events().await;
    let of_it = events.iter().filter(|e| e.run_id.as_ref() == Some(&missed.run_id));
    let to_missed = of_it.filter(|e| e.to.as_deref() == Some("missed"));
    assert_eq!(to_missed.count(), 1);
    world.machine.finish("t", exit(0));
    world.settle().await;
    assert_eq!(shown(&world).await[2], "02 running");
}

#[tokio::test]
async fn an_outage_leaves_one_missed_run_for_every_slot_that_is_too_late() {
    for (catchup, missed, started) in [("true", 1_498, 2), ("false", 1_499, 1)] {
        let more = format!("catchup: {catchup}\nstart_deadline: 90m\nmax_active_runs: 100");
        let mut world = World::of(&[&hourly(&more)]).await;
        world.settle().await;
        world.pass_time(Span::from_hours(1_500));
        world.pass_time(Span::from_mins(10));
        world.restart().await;
        world.checks = false;
        world.finish().await;
        let runs = world.all_runs().await;
        let count = |state| runs.iter().filter(|run| run.state == state).count();
        assert_eq!(count(RunState::Missed), missed, "catchup: {catchup}");
        // And the one before the outage.
        assert_eq!(count(RunState::Success), started + 1, "catchup: {catchup}");
        assert_eq!(runs.len(), 1_501);
        world.check().await;
    }
}

#[tokio::test]
async fn without_a_deadline_what_catchup_passes_over_leaves_nothing_and_a_pause_misses_nothing() {
    let mut world = World::of(&[&hourly("catchup: false")]).await;
    world.settle().await;
    world.pass_time(Span::from_hours(5));
    world.settle().await;
    assert_eq!(shown(&world).await, ["00 success", "05 success"]);
    let mut world = World::of(&[&hourly("catchup: false\nstart_deadline: 30m")]).await;
    world.settle().await;
    pause_dag(&world.cx, "d", true, "me").await.unwrap();
    world.pass_time(Span::from_hours(5));
    world.settle().await;
    pause_dag(&world.cx, "d", false, "me").await.unwrap();
    world.settle().await;
    assert_eq!(shown(&world).await, ["00 success", "05 success"]);
}

#[tokio::test]
async fn overlap_says_what_the_next_slots_do_meanwhile() {
    for (overlap, expected) in [
        ("queue", ["00 running", "01 queued", "02 queued", "03 queued"]),
        (
            "skip",
            [
                "00 running",
                "01 missed (overlap_skip)",
                "02 missed (overlap_skip)",
                "03 missed (overlap_skip)",
            ],
        ),
        (
            "latest",
            ["00 running", "01 missed (overlap_latest)", "02 missed (overlap_latest)", "03 queued"],
        ),
    ] {
        let more = format!("catchup: true\nmax_active_runs: 1\noverlap: {overlap}");
        let mut world = World::of(&[&hourly(&more)]).await;
        world.script(|_| stay());
        world.settle().await;
        for _ in 0..3 {
            world.pass_time(Span::from_hours(1));
            world.settle().await;
        }
        assert_eq!(shown(&world).await, expected, "overlap: {overlap}");
        world.script(|_| exit(0));
        world.machine.finish("t", exit(0));
        world.finish().await;
        let ran = if overlap == "skip" {
            1
        } else if overlap == "latest" {
            2
        } else {
            4
        };
        let ended = shown(&world).await;
        assert_eq!(ended.iter().filter(|run| run.ends_with("success")).count(), ran, "{overlap}");
    }
}

#[tokio::test]
async fn a_person_s_run_waits_whatever_overlap_says_and_is_replaced_by_no_slot() {
    for overlap in ["skip", "latest", "replace"] {
        let more = format!("max_active_runs: 1\noverlap: {overlap}");
        let mut world = World::of(&[&hourly(&more).replace("03-01T00", "03-01T01")]).await;
        world.script(|_| stay());
        world.trigger("d", "a").await;
        world.settle().await;
        world.trigger("d", "b").await;
        world.pass_time(Span::from_hours(1));
        world.settle().await;
        assert_eq!(world.run("d", "a").await.state, RunState::Running, "{overlap}");
        assert_eq!(world.run("d", "b").await.state, RunState::Queued, "{overlap}");
    }
}

#[tokio::test]
async fn a_replaced_run_keeps_its_place_until_its_processes_are_gone() {
    let text = hourly("catchup: true\nmax_active_runs: 1\noverlap: replace");
    let mut world = World::of(&[&text]).await;
    world.script(|_| stay());
    world.settle().await;
    world.pass_time(Span::from_hours(1));
    // Passes alone: no worker hears the order yet.
    world.plan().await;
    assert_eq!(shown(&world).await, ["00 running", "01 queued"]);
    let old = world.run("d", "scheduled__2026-03-01T00:00:00Z").await;
    assert_eq!(old.stop_by.as_deref(), Some("scheduler (overlap: replace)"));
    assert_eq!(world.machine.running().len(), 1);
    world.settle().await;
    assert_eq!(shown(&world).await, ["00 cancelled", "01 running"]);
    assert_eq!(world.machine.overlaps, 0);
    world.pass_time(Span::from_hours(2));
    world.settle().await;
    let ended = ["00 cancelled", "01 cancelled", "02 missed (overlap_replace)", "03 running"];
    assert_eq!(shown(&world).await, ended);
}

/// Several schedulers, one after the other on the same moment: what one has done the other finds.
#[tokio::test]
async fn two_schedulers_make_each_slot_once_whatever_its_end() {
    for overlap in ["queue", "skip", "latest", "replace"] {
        let more =
            format!("catchup: true\nmax_active_runs: 1\nstart_deadline: 3h\noverlap: {overlap}");
        let mut world = World::of(&[&hourly(&more)]).await;
        world.script(|what| if what.run_id.contains("T03") { stay() } else { exit(0) });
        let other = world.another(true);
        let (mut one, mut two) = (Scheduler, Scheduler);
        for step in 0..12 {
            world.pass_time(Span::from_mins(if step % 5 == 4 { 240 } else { 30 }));
            let (first, second) = tokio::join!(one.pass(&world.cx), two.pass(&other));
            for result in [first, second] {
                assert!(result.is_ok_and(|report| report.troubles.is_empty()), "{overlap}");
            }
            world.settle().await;
        }
        let runs = world.all_runs().await;
        let hours = world.now().since(runs[0].run_after).as_secs() / 3_600 + 1;
        assert_eq!(
            runs.len(),
            usize::try_from(hours).unwrap(),
            "{overlap}: {:?}",
            shown(&world).await
        );
        let ids: std::collections::BTreeSet<_> = runs.iter().map(|run| &run.run_id).collect();
        assert_eq!(ids.len(), runs.len(), "{overlap}");
    }
}

fn past(more: &str) -> String {
    format!(
        "
dag_id: d
schedule: '@daily'
start_date: 2026-02-27
end_date: 2026-02-28
catchup: true
tasks:
  t: {{run: x, wait_for_downstream: true}}
  u: {{run: x, depends_on: [t]}}
  v: {{run: x, depends_on: [u]}}
{more}
"
    )
}

#[tokio::test]
async fn wait_for_downstream_waits_for_the_tasks_right_after_it_and_no_further() {
    let second = "scheduled__2026-02-28T00:00:00Z";
    let mut world = World::of(&[&past("")]).await;
    world.script(|what| if what.task_id == "t" { exit(0) } else { stay() });
    world.settle().await;
    assert_eq!(world.shown("d", second).await, "running: t none, u none, v none");
    let explained = explain(&world.cx, "d", second, Some(("t", None)));
    let gates = explained.await.unwrap().gates;
    let gate = gates.iter().find(|gate| gate.code == "depends_on_past").unwrap();
    let text = "wait_for_downstream: u after t is running in scheduled__2026-02-27T00:00:00Z";
    assert_eq!(gate.text, text);
    // `v` of the first day has not run, and need not.
    world.machine.finish("u", exit(0));
    world.settle().await;
    assert_eq!(world.shown("d", second).await, "running: t success, u running, v none");
    world.script(|_| exit(0));
    for task in ["u", "v"] {
        world.machine.finish(task, exit(0));
    }
    world.settle().await;
    world.machine.finish("v", exit(0));
    world.finish().await;
}

#[tokio::test]
async fn the_past_is_looked_up_by_the_task_s_name_in_whatever_version() {
    let text = past("  z: {run: x}");
    let mut world = World::of(&[&text]).await;
    world.script(|what| exit(u8::from(what.task_id == "t")));
    world.settle().await;
    let second = "scheduled__2026-02-28T00:00:00Z";
    assert_eq!(world.ti("d", second, "t").await.state.as_str(), "none");
    // Another version has another task at its place; a later run looks for `t` all the same.
    let turned =
        text.replace("tasks:\n", "tasks:\n  a: {run: x}\n").replace("end_date: 2026-02-28", "");
    world.load("dag0.yaml", &turned).await;
    world.settle().await;
    let third = world.ti("d", "scheduled__2026-03-01T00:00:00Z", "t").await;
    assert_eq!(third.state.as_str(), "none");
    let a = world.ti("d", "scheduled__2026-03-01T00:00:00Z", "a").await;
    assert_eq!(a.state.as_str(), "success");
}

/// Airflow's rule: with `catchup: true` what a person triggered is not the past of a slot; else it is.
#[tokio::test]
async fn a_person_s_run_is_the_past_of_a_slot_only_without_catchup() {
    for (catchup, blocks) in [("true", false), ("false", true)] {
        let more = format!("catchup: {catchup}");
        let text = hourly(&more).replace("{run: x}", "{run: x, depends_on_past: true}");
        let mut world = World::of(&[&text]).await;
        world.settle().await;
        world.pass_time(Span::from_mins(30));
        world.script(|what| exit(u8::from(what.run_id == "by_hand")));
        world.trigger("d", "by_hand").await;
        world.settle().await;
        world.pass_time(Span::from_mins(30));
        world.settle().await;
        let ti = world.ti("d", "scheduled__2026-03-01T01:00:00Z", "t").await;
        assert_eq!(ti.state.as_str() == "none", blocks, "catchup: {catchup}");
    }
}
