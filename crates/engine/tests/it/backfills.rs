//! Backfills: each slot of the range once, within the backfill's own limit, whatever happens meanwhile.

use crate::world::{World, backfills, exit, stay};
use fencepost_core::retention::{Bounds, Keep};
use fencepost_core::state::{BackfillState, Reprocess, RunState};
use fencepost_core::time::Span;
use fencepost_engine::Pass;
use fencepost_engine::error::EngineError;
use fencepost_engine::explain::{GateStatus, explain};
use fencepost_engine::operations::backfill::{self, BackfillRequest};
use fencepost_engine::operations::run_control::pause_dag;
use fencepost_engine::retention::{Kind, Sweep};
use fencepost_engine::scheduler::Scheduler;
use fencepost_store::query::backfill::Backfill;
use std::collections::BTreeSet;

const DAILY: &str = "
dag_id: d
schedule: '@daily'
start_date: 2026-02-01
catchup: next
max_active_runs: 1
params: {n: 1}
tasks:
  t: {run: x}
";

async fn create(world: &World, request: &BackfillRequest) -> Backfill {
    backfill::create(&world.cx, request).await.unwrap()
}

async fn refused(world: &World, request: &BackfillRequest) -> String {
    match backfill::create(&world.cx, request).await {
        Err(EngineError::Refused(refusal)) => refusal.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn state(world: &World) -> BackfillState {
    world.backfills().await[0].state
}

/// The days of the processes, in the order of their starts.
fn days(world: &World) -> Vec<String> {
    let day = |run_id: &str| run_id.chars().skip("backfill__2026-".len()).take(5).collect();
    world.machine.ledger.iter().map(|(_, what)| day(&what.run_id)).collect()
}

#[tokio::test]
async fn every_missing_slot_runs_once_in_order_within_the_limit() {
    for backwards in [false, true] {
        let mut world = World::of(&[DAILY]).await;
        let request = backfills("d", "2026-02-20", "2026-02-22");
        let mut params = serde_json::Map::new();
        params.insert("n".into(), 7.into());
        let request = BackfillRequest { backwards, max_active_runs: 2, params, ..request };
        let made = create(&world, &request).await;
        assert_eq!((made.slots, made.state), (3, BackfillState::Running));
        world.script(|_| stay());
        world.settle().await;
        assert_eq!(world.machine.running().len(), 2, "{:?}", world.run_states("d").await);
        assert_eq!(state(&world).await, BackfillState::Running);
        world.script(|_| exit(0));
        world.machine.finish("t", exit(0));
        world.settle().await;
        world.machine.finish("t", exit(0));
        world.finish().await;
        let order =
            if backwards { ["02-22", "02-21", "02-20"] } else { ["02-20", "02-21", "02-22"] };
        assert_eq!(days(&world), order);
        assert_eq!(state(&world).await, BackfillState::Completed);
        let run = world.run("d", "backfill__2026-02-20T00:00:00Z").await;
        assert_eq!((run.run_type.as_str(), run.params["n"].as_i64()), ("backfill", Some(7)));
    }
}

#[tokio::test]
async fn the_behavior_decides_about_runs_that_exist_and_the_preview_says_so_before() {
    for (reprocess, expected, successes) in [
        (
            Reprocess::None,
            "4 slots: 2 exist (1 success: kept, 1 failed: kept), 2 missing: create → 2 runs",
            3,
        ),
        (
            Reprocess::Failed,
            "4 slots: 2 exist (1 success: kept, 1 failed: rerun), 2 missing: create → 3 runs",
            4,
        ),
        (
            Reprocess::Completed,
            "4 slots: 2 exist (1 success: rerun, 1 failed: rerun), 2 missing: create → 4 runs",
            4,
        ),
    ] {
        let text = DAILY.replace("catchup: next", "catchup: true").replace("02-01", "02-27");
        let mut world = World::of(&[&text.replace("end", "x")]).await;
        world.script(|what| exit(u8::from(what.run_id.contains("02-28"))));
        world.finish().await;
        // The first day ran well, the second failed; the third and its later ones ran too.
        let earlier = text.replace("2026-02-27", "2026-02-20");
        world.load("dag0.yaml", &earlier).await;
        world.script(|_| exit(0));
        let request = backfills("d", "2026-02-25", "2026-02-28");
        let request = BackfillRequest { reprocess, ..request };
        let before = world.machine.ledger.len();
        let preview = backfill::preview(&world.cx, &request).await.unwrap();
        assert_eq!(preview.text(), expected);
        create(&world, &request).await;
        world.finish().await;
        assert_eq!(world.machine.ledger.len() - before, preview.starts(), "{reprocess}");
        let states = world.run_states("d").await;
        let good = states
            .iter()
            .filter(|(id, state)| *state == RunState::Success && !id.contains("03-01"));
        assert_eq!(good.count(), successes, "{states:?}");
        assert_eq!(state(&world).await, BackfillState::Completed);
    }
}

#[tokio::test]
async fn what_runs_is_left_alone_and_its_own_limit_is_apart_from_the_dag_s() {
    let text = DAILY.replace("catchup: next", "catchup: true").replace("02-01", "03-01");
    let mut world = World::of(&[&text]).await;
    world.script(|_| stay());
    world.settle().await;
    world.load("dag0.yaml", &text.replace("03-01", "02-20")).await;
    let request = backfills("d", "2026-02-27", "2026-03-01");
    let request =
        BackfillRequest { max_active_runs: 5, reprocess: Reprocess::Completed, ..request };
    create(&world, &request).await;
    world.settle().await;
    // One of the schedule, whose limit is 1, and two of the backfill.
    assert_eq!(world.machine.running().len(), 3);
    let runs = world.all_runs().await;
    let of_backfill = runs.iter().filter(|run| run.backfill_pk.is_some()).count();
    assert_eq!((runs.len(), of_backfill), (3, 2));
}

#[tokio::test]
async fn a_pause_of_it_or_of_its_dag_starts_nothing_until_it_is_over() {
    for of_dag in [false, true] {
        let mut world = World::of(&[DAILY]).await;
        let key = create(&world, &backfills("d", "2026-02-20", "2026-02-22")).await.backfill_pk;
        let gate = async |world: &World, run_id: &str| {
            let explained = explain(&world.cx, "d", run_id, None).await.unwrap();
            explained.gates.iter().find(|g| g.status == GateStatus::Blocking).map(|g| g.code)
        };
        let pause = async |world: &World, paused| {
            if of_dag {
                pause_dag(&world.cx, "d", paused, "me").await.map(drop).unwrap();
            } else {
                backfill::pause(&world.cx, key, paused, "me").await.map(drop).unwrap();
            }
        };
        world.script(|_| stay());
        world.settle().await;
        let last = "backfill__2026-02-22T00:00:00Z";
        assert_eq!(gate(&world, last).await, Some("backfill_full"));
        pause(&world, true).await;
        world.settle().await;
        let code = if of_dag { "dag_paused" } else { "backfill_paused" };
        assert_eq!(gate(&world, last).await, Some(code));
        world.machine.finish("t", exit(0));
        world.pass_time(Span::from_hours(1));
        world.settle().await;
        assert_eq!(days(&world).len(), 1);
        world.script(|_| exit(0));
        pause(&world, false).await;
        world.settle().await;
        world.finish().await;
        assert_eq!(days(&world).len(), 3);
    }
}

#[tokio::test]
async fn a_cancel_stops_what_runs_and_makes_no_more() {
    let mut world = World::of(&[DAILY]).await;
    world.script(|_| stay());
    let request = backfills("d", "2026-02-01", "2026-02-22");
    let key = create(&world, &BackfillRequest { max_active_runs: 2, ..request }).await.backfill_pk;
    world.settle().await;
    backfill::cancel(&world.cx, key, "me").await.unwrap();
    world.plan().await;
    assert_eq!(world.machine.running().len(), 2, "nobody has told the worker yet");
    assert_eq!(state(&world).await, BackfillState::Cancelling);
    world.settle().await;
    assert_eq!(state(&world).await, BackfillState::Cancelled);
    assert!(world.machine.running().is_empty());
    let states = world.run_states("d").await;
    assert_eq!(states.len(), 22);
    assert!(states.iter().all(|(_, state)| *state == RunState::Cancelled), "{states:?}");
    // What is over is not paused, and another one may follow, which runs what was cancelled.
    assert!(backfill::pause(&world.cx, key, true, "me").await.is_err());
    world.script(|_| exit(0));
    let request = backfills("d", "2026-02-01", "2026-02-02");
    create(&world, &BackfillRequest { reprocess: Reprocess::Failed, ..request }).await;
    world.finish().await;
    let states = world.run_states("d").await;
    assert_eq!(states.iter().filter(|(_, state)| *state == RunState::Success).count(), 2);
}

#[tokio::test]
async fn what_cannot_be_filled_is_refused_with_its_reason() {
    let manual = "dag_id: m\ntasks:\n  t: {run: x}\n";
    let past = "dag_id: p\nschedule: '@daily'\ntasks:\n  t: {run: x, depends_on_past: true}\n";
    let often = "dag_id: o\nschedule: '* * * * *'\ncatchup: next\ntasks:\n  t: {run: x}\n";
    let world = World::of(&[DAILY, manual, past, often]).await;
    let range = ("2026-02-20", "2026-02-22");
    let of = |dag: &str| backfills(dag, range.0, range.1);
    let no = |text: String, part: &str| assert!(text.contains(part), "{text}");
    no(refused(&world, &of("x")).await, "there is no DAG `x`");
    no(refused(&world, &of("m")).await, "has no schedule");
    no(refused(&world, &of("p")).await, "failed or completed");
    let back = BackfillRequest { backwards: true, reprocess: Reprocess::Failed, ..of("p") };
    no(refused(&world, &back).await, "cannot go backwards");
    no(refused(&world, &backfills("d", "2026-02-22", "2026-02-20")).await, "is after");
    no(refused(&world, &backfills("d", "2027-01-01", "2027-02-01")).await, "no slot");
    no(refused(&world, &backfills("o", "2025-01-01", "2026-01-01")).await, "more than 50000");
    no(refused(&world, &BackfillRequest { max_active_runs: 0, ..of("d") }).await, "at least 1");
    create(&world, &of("d")).await;
    no(refused(&world, &of("d")).await, "under way");
}

/// A run of a backfill that a person clears counts in its DAG's limit, whether the backfill is over or
/// not: it never waits for a backfill that will not come to it.
#[tokio::test]
async fn a_cleared_run_of_a_backfill_runs_again() {
    for cancelled in [false, true] {
        let mut world = World::of(&[DAILY]).await;
        let key = create(&world, &backfills("d", "2026-02-20", "2026-02-22")).await.backfill_pk;
        world.settle().await;
        world.finish().await;
        if cancelled {
            drop(backfill::cancel(&world.cx, key, "me").await);
        }
        world.clear("d", "backfill__2026-02-21T00:00:00Z", &[]).await;
        world.finish().await;
        assert_eq!(days(&world), ["02-20", "02-21", "02-22", "02-21"]);
    }
}

#[tokio::test]
async fn a_slot_has_one_run_of_the_schedule_or_of_a_backfill() {
    let text = DAILY.replace("catchup: next", "catchup: true").replace("02-01", "02-20");
    let mut world = World::of(&[&text]).await;
    pause_dag(&world.cx, "d", true, "me").await.unwrap();
    create(&world, &backfills("d", "2026-02-20", "2026-03-01")).await;
    pause_dag(&world.cx, "d", false, "me").await.unwrap();
    let other = world.another(true);
    let (mut one, mut two) = (Scheduler, Scheduler);
    for _ in 0..20 {
        let (first, second) = tokio::join!(one.pass(&world.cx), two.pass(&other));
        assert!(first.is_ok() && second.is_ok());
    }
    world.finish().await;
    let runs = world.all_runs().await;
    let dates: BTreeSet<_> = runs.iter().map(|run| run.logical_date).collect();
    assert_eq!((runs.len(), dates.len()), (10, 10));
}

#[tokio::test]
async fn many_slots_are_made_page_by_page_and_few_wait() {
    let text = DAILY.replace("@daily", "@hourly");
    let mut world = World::of(&[&text]).await;
    world.checks = false;
    let request = backfills("d", "2026-02-10", "2026-02-20");
    create(&world, &BackfillRequest { max_active_runs: 16, ..request }).await;
    let mut most = 0;
    for _ in 0..400 {
        let turn = world.turn().await;
        let of = world.backfills().await.remove(0);
        assert!(of.running <= 16);
        most = most.max(of.queued);
        if turn.moved == 0 {
            break;
        }
    }
    assert!(most <= 128, "{most} waited");
    assert_eq!(world.all_runs().await.len(), 264);
    assert_eq!(state(&world).await, BackfillState::Completed);
    world.check().await;
}

/// What is known of one goes when it is old, and never while it is under way; its runs stay.
#[tokio::test]
async fn an_old_backfill_is_forgotten_and_its_runs_are_not() {
    let mut world = World::of(&[DAILY]).await;
    create(&world, &backfills("d", "2026-02-20", "2026-02-22")).await;
    world.finish().await;
    world.script(|_| stay());
    create(&world, &backfills("d", "2026-02-10", "2026-02-11")).await;
    world.settle().await;
    world.pass_time(Span::from_hours(24 * 91));
    let bounds = Bounds::of(&Keep::default(), world.now());
    for (is_dry, left) in [(true, 2), (false, 1)] {
        let sweep = Sweep::new(bounds, &[Kind::Events]);
        let mut sweep = if is_dry { sweep.dry() } else { sweep };
        while sweep.step(&world.cx).await.unwrap() {}
        assert_eq!(sweep.found().removed["backfills"], 1, "dry: {is_dry}");
        assert_eq!(world.backfills().await.len(), left);
    }
    assert_eq!(state(&world).await, BackfillState::Running);
    assert_eq!(world.all_runs().await.len(), 5);
}
