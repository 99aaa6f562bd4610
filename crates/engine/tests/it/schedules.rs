//! Schedules: the set of runs is the set of slots, each once, whatever happens in between (I17).

use crate::world::{World, exit, stay};
use fencepost_core::state::{RunState, TiState};
use fencepost_core::time::Span;
use fencepost_engine::operations::run_control::{delete_run, pause_dag};

fn hourly(catchup: &str, more: &str) -> String {
    format!(
        "
dag_id: d
schedule: '@hourly'
start_date: 2026-02-28T22:00:00Z
catchup: {catchup}
{more}
tasks:
  t: {{run: x}}
"
    )
}

/// The hours of the scheduled runs, in the order in which they were made.
async fn slots(world: &World) -> Vec<String> {
    let runs = world.all_runs().await;
    let id = |run: &fencepost_store::query::run::Run| {
        run.run_id.trim_start_matches("scheduled__").trim_end_matches(":00:00Z").to_owned()
    };
    runs.iter().map(id).collect()
}

#[tokio::test]
async fn catchup_makes_every_slot_since_the_start_and_each_new_one() {
    let mut world = World::of(&[&hourly("true", "")]).await;
    world.settle().await;
    assert_eq!(slots(&world).await, ["2026-02-28T22", "2026-02-28T23", "2026-03-01T00"]);
    world.pass_time(Span::from_mins(59));
    world.settle().await;
    assert_eq!(slots(&world).await.len(), 3);
    world.pass_time(Span::from_mins(1));
    world.settle().await;
    assert_eq!(slots(&world).await.last().unwrap(), "2026-03-01T01");
}

#[tokio::test]
async fn without_catchup_only_the_newest_due_slot_runs() {
    let mut world = World::of(&[&hourly("false", "")]).await;
    world.settle().await;
    assert_eq!(slots(&world).await, ["2026-03-01T00"]);
    world.pass_time(Span::from_hours(5));
    world.restart().await;
    world.settle().await;
    assert_eq!(slots(&world).await, ["2026-03-01T00", "2026-03-01T05"]);
}

#[tokio::test]
async fn catchup_next_begins_with_the_next_slot() {
    let mut world = World::of(&[&hourly("next", "")]).await;
    world.settle().await;
    assert!(slots(&world).await.is_empty());
    world.pass_time(Span::from_hours(1));
    world.settle().await;
    assert_eq!(slots(&world).await, ["2026-03-01T01"]);
}

#[tokio::test]
async fn an_unpause_applies_the_catchup_rule_to_what_fell_due_meanwhile() {
    for (catchup, made) in [
        ("true", vec!["2026-03-01T01", "2026-03-01T02", "2026-03-01T03"]),
        ("false", vec!["2026-03-01T03"]),
        ("next", vec![]),
    ] {
        let mut world = World::of(&[&hourly(catchup, "")]).await;
        world.settle().await;
        let before = slots(&world).await.len();
        pause_dag(&world.cx, "d", true, "me").await.unwrap();
        for _ in 0..3 {
            world.pass_time(Span::from_hours(1));
            world.settle().await;
        }
        assert_eq!(slots(&world).await.len(), before, "paused");
        pause_dag(&world.cx, "d", false, "me").await.unwrap();
        world.settle().await;
        assert_eq!(slots(&world).await[before..], made, "catchup: {catchup}");
    }
}

#[tokio::test]
async fn a_pause_that_ends_before_the_next_slot_skips_nothing() {
    for catchup in ["true", "false", "next"] {
        let mut world = World::of(&[&hourly(catchup, "")]).await;
        world.settle().await;
        let before = slots(&world).await.len();
        world.pass_time(Span::from_mins(10));
        pause_dag(&world.cx, "d", true, "me").await.unwrap();
        world.pass_time(Span::from_mins(5));
        world.settle().await;
        pause_dag(&world.cx, "d", false, "me").await.unwrap();
        world.settle().await;
        assert_eq!(slots(&world).await.len(), before, "catchup: {catchup}");
        world.pass_time(Span::from_mins(45));
        world.settle().await;
        assert_eq!(slots(&world).await[before..], ["2026-03-01T01"], "catchup: {catchup}");
    }
}

#[tokio::test]
async fn an_edit_of_the_schedule_makes_no_past_slot_again() {
    let mut world = World::of(&[&hourly("true", "")]).await;
    world.settle().await;
    let before = slots(&world).await;
    world.finish().await;
    for run in world.all_runs().await {
        delete_run(&world.cx, "d", &run.run_id, "me").await.unwrap();
    }
    world.load("dag0.yaml", &hourly("true", "").replace("@hourly", "0,30 * * * *")).await;
    world.settle().await;
    assert!(slots(&world).await.is_empty(), "{:?}", slots(&world).await);
    world.load("dag0.yaml", &hourly("true", "").replace("02-28", "02-20")).await;
    world.settle().await;
    assert!(slots(&world).await.is_empty());
    world.pass_time(Span::from_hours(1));
    world.settle().await;
    assert_eq!(slots(&world).await, ["2026-03-01T01"]);
    assert_eq!(before.len(), 3);
}

#[tokio::test]
async fn an_edit_of_something_else_loses_no_slot_that_is_due_in_that_moment() {
    for catchup in ["next", "true", "false"] {
        let mut world = World::of(&[&hourly(catchup, "")]).await;
        world.settle().await;
        world.pass_time(Span::from_hours(1));
        world.load("dag0.yaml", &hourly(catchup, "description: other words")).await;
        world.settle().await;
        assert_eq!(slots(&world).await.last().unwrap(), "2026-03-01T01", "{catchup}");
    }
}

#[tokio::test]
async fn a_long_catchup_keeps_few_runs_waiting_and_makes_every_slot_once() {
    let text = hourly("true", "max_active_runs: 4").replace("02-28T22", "02-20T00");
    let mut world = World::of(&[&text]).await;
    world.checks = false;
    let mut most = 0;
    for _ in 0..600 {
        let turn = world.settle().await;
        let runs = world.all_runs().await;
        let waiting = runs.iter().filter(|run| run.state == RunState::Queued).count();
        most = most.max(waiting);
        if runs.len() == 217 && world.unfinished_runs().await.is_empty() {
            break;
        }
        let soon = world.now().plus(Span::from_secs(6));
        world.clock.set(turn.next_due.filter(|at| *at > world.now()).unwrap_or(soon).min(soon));
    }
    assert!(most <= 4 + 32, "{most} waited");
    let made = slots(&world).await;
    assert_eq!(made.len(), 217);
    assert!(made.is_sorted());
    world.check().await;
}

/// Clock jumps, crashes, pauses and store failures; the runs must be the slots, each once.
#[tokio::test]
async fn a_random_series_of_jumps_crashes_and_pauses_makes_each_slot_once() {
    for seed in 0..30 {
        let text = hourly("true", "max_active_runs: 3");
        let mut world = World::with(&[&text], World::settings(), seed).await;
        world.checks = false;
        let random = world.random.clone();
        let mut newest = world.now();
        for _ in 0..40 {
            match random.below(6) {
                0 => world.restart().await,
                1 => drop(pause_dag(&world.cx, "d", random.chance(50), "me").await),
                2 => world.pass_time(Span::from_mins(-20)),
                _ => {
                    let minutes = i64::try_from(random.below(150)).unwrap();
                    world.pass_time(Span::from_mins(minutes));
                }
            }
            newest = newest.max(world.now());
            world.faults.by_chance(Some((random.clone(), 15)));
            world.turn().await;
            world.faults.by_chance(None);
        }
        world.clock.set(newest);
        pause_dag(&world.cx, "d", false, "me").await.unwrap();
        for _ in 0..200 {
            let turn = world.settle().await;
            if turn.next_due.is_none_or(|at| at.since(newest) >= Span::from_mins(1)) {
                break;
            }
            world.pass_time(Span::from_secs(6));
        }
        let start = "2026-02-28T22:00:00Z".parse::<fencepost_core::time::Timestamp>().unwrap();
        let expected = newest.since(start).as_secs() / 3_600 + 1;
        let made = slots(&world).await;
        assert_eq!(i64::try_from(made.len()).unwrap(), expected, "seed {seed}: {made:?}");
        world.check().await;
    }
}

fn past(more: &str) -> String {
    format!(
        "
dag_id: d
schedule: '@daily'
start_date: 2026-02-26
end_date: 2026-02-28
catchup: true
{more}
tasks:
  t: {{run: x, depends_on_past: true}}
"
    )
}

#[tokio::test]
async fn a_run_that_depends_on_the_past_waits_for_it_and_follows_it() {
    let mut world = World::of(&[&past("")]).await;
    world.script(|_| stay());
    world.settle().await;
    assert_eq!(world.machine.order().len(), 1);
    assert_eq!(world.count(TiState::None).await, 2);
    for expected in 2..=3 {
        world.machine.finish("t", exit(0));
        world.settle().await;
        assert_eq!(world.machine.order().len(), expected);
    }
    let runs: Vec<&str> = world.machine.ledger.iter().map(|(_, w)| w.run_id.as_str()).collect();
    assert!(runs.is_sorted());
    world.machine.finish("t", exit(0));
    world.finish().await;
}

#[tokio::test]
async fn a_failure_in_the_past_blocks_until_it_is_cleared_marked_or_deleted() {
    for mend in ["clear", "mark", "delete"] {
        let mut world = World::of(&[&past("")]).await;
        let first = "scheduled__2026-02-26T00:00:00Z";
        world.script(move |what| exit(u8::from(what.run_id == first && what.attempt == 1)));
        world.settle().await;
        assert_eq!(world.machine.order().len(), 1);
        match mend {
            "clear" => drop(world.clear("d", first, &[]).await),
            "mark" => world.mark("d", first, "t", TiState::Success).await,
            _ => delete_run(&world.cx, "d", first, "me").await.unwrap(),
        }
        world.finish().await;
        let states = world.run_states("d").await;
        assert!(states.iter().all(|(_, state)| *state == RunState::Success), "{mend}: {states:?}");
    }
}

#[tokio::test]
async fn an_older_cleared_run_and_a_newer_blocked_one_do_not_wait_for_each_other() {
    let text = past("max_active_runs: 1");
    let text = format!("{text}  u: {{run: x, depends_on: [t]}}\n");
    let mut world = World::of(&[&text]).await;
    let first = "scheduled__2026-02-26T00:00:00Z";
    world.script(move |what| exit(u8::from(what.run_id == first && what.attempt == 1)));
    world.settle().await;
    let running = |states: Vec<(String, RunState)>| {
        states.into_iter().filter(|(_, state)| *state == RunState::Running).count()
    };
    assert_eq!(running(world.run_states("d").await), 1);
    world.lowered.insert("d".into());
    world.clear("d", first, &[]).await;
    // Its first task is good now; while its second one runs, the newer run gets nothing.
    world.script(|what| if what.task_id == "u" { stay() } else { exit(0) });
    world.settle().await;
    assert_eq!(world.shown("d", first).await, "running: t success, u running");
    assert_eq!(world.machine.running().len(), 1);
    assert_eq!(world.machine.ledger.last().unwrap().1.run_id, first);
    world.script(|_| exit(0));
    world.machine.finish("u", exit(0));
    world.finish().await;
    let states = world.run_states("d").await;
    assert!(states.iter().all(|(_, state)| *state == RunState::Success), "{states:?}");
}

#[tokio::test]
async fn a_past_run_that_was_cancelled_before_it_began_blocks_nobody() {
    let mut world = World::of(&[&past("max_active_runs: 1")]).await;
    world.script(|_| stay());
    world.settle().await;
    let middle = "scheduled__2026-02-27T00:00:00Z";
    world.cancel("d", middle).await;
    world.script(|_| exit(0));
    world.machine.finish("t", exit(0));
    world.finish().await;
    assert_eq!(world.shown("d", "scheduled__2026-02-28T00:00:00Z").await, "success: t success");
    assert_eq!(world.run("d", middle).await.state, RunState::Cancelled);
}
