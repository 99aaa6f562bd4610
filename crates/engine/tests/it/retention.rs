//! Retention: what is old goes, and nothing that anything rests on (I17, I24, I32, I33).

use crate::world::{Kind as Cut, Place, Trip, Worker, World, exit, gone, stay};
use fencepost_core::id::JobId;
use fencepost_core::retention::{Bounds, Keep, Kept};
use fencepost_core::state::{JobState, RunState, TiState};
use fencepost_core::time::Span;
use fencepost_engine::Pass;
use fencepost_engine::doctor;
use fencepost_engine::liveness::Watch;
use fencepost_engine::operations::confirm_dead::confirm_dead;
use fencepost_engine::operations::register::leave;
use fencepost_engine::operations::run_control::{AttemptRef, pause_dag};
use fencepost_engine::retention::{Found, Kind, Retention, Sweep};
use fencepost_store::query::retention::rows;
use fencepost_store::query::{attempt, attempt_log};

const DAY: Span = Span::from_hours(24);

fn daily(more: &str) -> String {
    format!(
        "
dag_id: d
schedule: '@daily'
start_date: 2026-02-20
catchup: true
{more}
tasks:
  t: {{run: x, depends_on_past: true}}
"
    )
}

const MANUAL: &str = "
dag_id: m
tasks:
  a: {run: x}
  b: {run: x, depends_on: [a]}
";

/// A whole sweep as the settings say.
async fn sweep(world: &World) -> Found {
    run(world, Sweep::new(Bounds::of(&Keep::default(), world.now()), Kind::ALL)).await
}

async fn run(world: &World, mut sweep: Sweep) -> Found {
    for _ in 0..2_000 {
        if !sweep.step(&world.cx).await.unwrap() {
            return sweep.into_found();
        }
    }
    panic!("it never ends: {:?}", sweep.found());
}

async fn names(world: &World) -> Vec<String> {
    world.all_runs().await.into_iter().map(|run| run.run_id).collect()
}

async fn healthy(world: &World) {
    assert_eq!(doctor::examine(&world.cx).await.unwrap().violations, []);
}

/// Rows of every table that runs have rows in.
async fn nothing_is_left(world: &World) {
    let tx = world.cx.store.read("test").await.unwrap();
    assert_eq!(rows::left(&tx).await.unwrap(), None);
    for run_pk in 1..50 {
        let exists = world.all_runs().await.iter().any(|run| run.run_pk == run_pk);
        let sizes = rows::size(&tx, run_pk).await.unwrap();
        assert!(exists || sizes.iter().all(|(_, count)| *count == 0), "run {run_pk}: {sizes:?}");
    }
}

#[tokio::test]
async fn old_runs_go_with_everything_of_theirs_and_the_newest_stays() {
    let mut world = World::at(Place::folder(), &[MANUAL], World::settings(), 1).await;
    for name in ["one", "two", "three"] {
        world.trigger("m", name).await;
        world.finish().await;
        world.pass_time(Span::from_secs(60));
    }
    world.pass_time(DAY.times(89));
    assert_eq!(sweep(&world).await.removed.get("runs"), None);
    assert_eq!(names(&world).await, ["one", "two", "three"]);
    world.pass_time(DAY.times(2));
    let found = sweep(&world).await;
    assert_eq!(names(&world).await, ["three"]);
    assert_eq!((found.removed["runs"], found.removed["task instances"]), (2, 4));
    assert_eq!((found.removed["attempts"], found.kept[&("runs", Kept::Newest)]), (4, 1));
    nothing_is_left(&world).await;
    healthy(&world).await;
    // Where one process is everything, files of the attempts go by the outbox.
    world.settle().await;
    let effects = world.effects.lock().unwrap().join("\n");
    assert_eq!(effects.matches("purge_logs").count(), 2, "{effects}");
}

#[tokio::test]
async fn a_dry_sweep_counts_what_would_go_and_keeps_it() {
    let mut world = World::of(&[MANUAL]).await;
    for name in ["one", "two"] {
        world.trigger("m", name).await;
        world.finish().await;
        world.pass_time(Span::from_secs(60));
    }
    world.pass_time(DAY.times(100));
    let bounds = || Bounds::of(&Keep::default(), world.now());
    let unread = run(&world, Sweep::new(bounds(), Kind::ALL).dry()).await;
    assert!(unread.troubles[0].contains("not read yet"), "{unread:?}");
    // The first sweep of all writes down how long the DAG keeps its runs.
    run(
        &world,
        Sweep::new(Bounds::before(world.now().minus(DAY.times(200)), world.now()), Kind::ALL),
    )
    .await;
    let dry = run(&world, Sweep::new(bounds(), Kind::ALL).dry()).await;
    assert_eq!(names(&world).await, ["one", "two"]);
    let wet = sweep(&world).await;
    assert_eq!(dry.removed["runs"], 1);
    for what in ["runs", "task instances", "attempts", "events"] {
        assert_eq!(dry.removed[what], wet.removed[what], "{what}");
    }
}

#[tokio::test]
async fn a_slot_never_comes_twice_though_its_run_is_forgotten() {
    for catchup in ["true", "false"] {
        let file = daily("").replace("catchup: true", &format!("catchup: {catchup}"));
        let mut world = World::of(&[&file]).await;
        world.finish().await;
        let made = names(&world).await;
        world.pass_time(DAY.times(100));
        pause_dag(&world.cx, "d", true, "me").await.unwrap();
        sweep(&world).await;
        assert!(names(&world).await.len() < made.len().max(2), "nothing went");
        // An edit of its schedule, a restart and an unpause bring nothing back.
        world.load("dag0.yaml", &file.replace("@daily", "0 0 * * *")).await;
        world.restart().await;
        world.load("dag0.yaml", &file).await;
        pause_dag(&world.cx, "d", false, "me").await.unwrap();
        world.finish().await;
        let again = names(&world).await;
        let twice: Vec<&String> =
            again.iter().filter(|name| made.contains(name) && made.last() != Some(name)).collect();
        assert!(twice.is_empty(), "{catchup}: {twice:?}");
        healthy(&world).await;
    }
}

/// A DAG whose last run failed long ago, and was paused since.
async fn failed_and_paused() -> World {
    let one_slot = daily("end_date: 2026-03-02").replace("2026-02-20", "2026-03-01");
    let mut world = World::of(&[&one_slot]).await;
    world.script(|_| exit(1));
    world.finish().await;
    pause_dag(&world.cx, "d", true, "me").await.unwrap();
    world.pass_time(DAY.times(100));
    world
}

#[tokio::test]
async fn the_run_that_the_next_one_looks_back_at_stays() {
    let mut world = failed_and_paused().await;
    let found = sweep(&world).await;
    let (left, kept) = (names(&world).await, found.kept.values().sum::<u64>());
    assert_eq!((left.len() as u64, kept), (1, 1), "{left:?} {found:?}");
    world.script(|_| exit(0));
    pause_dag(&world.cx, "d", false, "me").await.unwrap();
    world.settle().await;
    let next = world.all_runs().await.into_iter().find(|run| run.state == RunState::Running);
    let tis = world.tis_of(&next.unwrap()).await;
    assert_eq!(tis[0].state, TiState::None, "the run before it failed");
}

#[tokio::test]
async fn without_that_rule_the_next_run_forgets_that_the_one_before_it_failed() {
    // A manual run without a date is the newest, so that only this rule keeps the dated one.
    let mut world = failed_and_paused().await;
    world.trigger("d", "newest").await;
    let bounds = Bounds::of(&Keep::default(), world.now());
    run(&world, Sweep::new(bounds, Kind::ALL).ignoring(Kept::Previous)).await;
    world.script(|_| exit(0));
    pause_dag(&world.cx, "d", false, "me").await.unwrap();
    world.settle().await;
    let runs = world.all_runs().await;
    let ran = runs.iter().any(|r| r.run_id.starts_with("sched") && r.state == RunState::Success);
    assert!(ran, "{runs:?}");
}

/// A run that was cancelled while its worker was lost, so that nobody knows what became of the process.
async fn cancelled_with_a_zombie() -> (World, JobId) {
    let mut world = World::shared(&[HOLD], &["one"], 1).await;
    world.script(|_| stay());
    world.trigger("z", "r").await;
    world.settle().await;
    let job = world.workers[0].job.unwrap();
    world.workers[0].is_paused = true;
    world.workers.push(Worker::leased("two", 8));
    world.until_lost(job).await;
    world.cancel("z", "r").await;
    world.script(|_| exit(0));
    world.trigger("z", "later").await;
    world.finish().await;
    world.workers[1].is_paused = true;
    world.watchers.clear();
    world.pass_time(DAY.times(100));
    (world, job)
}

const HOLD: &str = "
dag_id: z
tasks:
  t: {run: x, replace: after_confirmed_dead}
";

#[tokio::test]
async fn what_may_still_run_keeps_its_run_its_job_and_the_incident() {
    let (world, job) = cancelled_with_a_zombie().await;
    let found = sweep(&world).await;
    assert_eq!(found.kept[&("runs", Kept::MayStillRun)], 1, "{found:?}");
    assert!(names(&world).await.contains(&"r".to_owned()));
    assert_eq!(world.job(job).await.state, JobState::Lost);
    assert_eq!(world.incidents().await.len(), 1);
    healthy(&world).await;
    // A person who knows lets it go.
    let token = world.attempts("z", "r", "t").await[0].token;
    confirm_dead(&world.cx, &AttemptRef::Token(token), "anna", None).await.unwrap();
    Watch::default().pass(&world.cx).await.unwrap();
    let found = sweep(&world).await;
    assert_eq!((found.removed["runs"], found.removed["incidents"]), (1, 1), "{found:?}");
    assert_eq!((names(&world).await.len(), world.incidents().await.len()), (1, 0));
    healthy(&world).await;
}

#[tokio::test]
async fn without_that_rule_what_may_still_run_is_forgotten() {
    let (world, job) = cancelled_with_a_zombie().await;
    let bounds = Bounds::of(&Keep::default(), world.now());
    run(&world, Sweep::new(bounds, Kind::ALL).ignoring(Kept::MayStillRun)).await;
    let tx = world.cx.store.read("test").await.unwrap();
    // Nobody is asked about the process any more, and nothing shows that it was ever there.
    assert_eq!(attempt::open_of(&tx, job, 0, 10).await.unwrap().len(), 0);
    assert!(!names(&world).await.contains(&"r".to_owned()));
}

#[tokio::test]
async fn jobs_go_when_nothing_points_to_them_and_their_homes_with_them() {
    let mut world = World::shared(&[MANUAL], &["one", "idle"], 0).await;
    world.trigger("m", "one").await;
    world.finish().await;
    let (busy, idle) = (world.workers[0].job.unwrap(), world.workers[1].job.unwrap());
    for job in [busy, idle] {
        leave(&world.cx, job).await.unwrap();
    }
    for worker in &mut world.workers {
        worker.is_paused = true;
    }
    world.pass_time(DAY.times(10));
    let found = sweep(&world).await;
    let busy_one = world.attempts("m", "one", "a").await[0].job_id.unwrap();
    assert_eq!(world.job(busy_one).await.state, JobState::Stopped, "attempts point to it");
    assert_eq!(found.removed["jobs"], found.removed["homes"], "{found:?}");
    assert!(found.removed["jobs"] >= 1 && found.kept[&("jobs", Kept::Referred)] >= 1, "{found:?}");
    // Without the rule the database itself refuses: a claim is never without its owner's row.
    let bounds = Bounds::of(&Keep::default(), world.now());
    run(&world, Sweep::new(bounds, Kind::ALL).ignoring(Kept::Referred)).await;
    assert_eq!(world.job(busy_one).await.state, JobState::Stopped);
    healthy(&world).await;
}

#[tokio::test]
async fn a_dags_own_retention_counts_in_either_direction() {
    for (own, days, stays) in [("7d", 8, false), ("7d", 6, true), ("365d", 300, true)] {
        let mut world = World::of(&[&format!("{MANUAL}\nretention: {own}\n")]).await;
        for name in ["one", "two"] {
            world.trigger("m", name).await;
            world.finish().await;
            world.pass_time(Span::from_secs(60));
        }
        world.pass_time(DAY.times(days));
        sweep(&world).await;
        assert_eq!(names(&world).await.contains(&"one".to_owned()), stays, "{own} {days}");
    }
}

#[tokio::test]
async fn the_pass_takes_one_step_at_a_time_and_is_quiet_between() {
    let mut world = World::of(&[MANUAL]).await;
    for name in ["one", "two", "three"] {
        world.trigger("m", name).await;
        world.finish().await;
        world.pass_time(Span::from_secs(60));
    }
    world.pass_time(DAY.times(100));
    let mut pass = Retention::new(Keep::default());
    assert!(pass.rests());
    pass.pass(&world.cx).await.unwrap();
    assert!(!pass.rests(), "it has begun, and goes on while the store is quiet");
    let before = names(&world).await;
    for _ in 0..20 {
        assert_eq!(pass.pass(&world.cx).await.unwrap().next_due, None, "not yet");
    }
    assert_eq!(names(&world).await, before);
    for _ in 0..100 {
        world.pass_time(Span::from_millis(250));
        let report = pass.pass(&world.cx).await.unwrap();
        assert_eq!((report.moved, report.troubles.len()), (0, 0));
    }
    assert_eq!(names(&world).await, ["three"]);
    assert!(pass.rests());
    nothing_is_left(&world).await;
}

#[tokio::test]
async fn a_lost_attempt_with_evidence_does_not_keep_its_run() {
    let mut world = World::of(&[MANUAL]).await;
    world.script(|what| if what.attempt == 1 { gone() } else { exit(0) });
    for name in ["one", "two"] {
        world.trigger("m", name).await;
        world.finish().await;
        world.pass_time(Span::from_secs(60));
    }
    world.pass_time(DAY.times(100));
    sweep(&world).await;
    assert_eq!(names(&world).await, ["two"]);
}

#[tokio::test]
async fn logs_go_before_their_runs_piece_by_piece() {
    let mut world = World::of(&[MANUAL]).await;
    world.trigger("m", "one").await;
    world.finish().await;
    let token = world.attempts("m", "one", "a").await[0].token;
    let piece = |n: u64| attempt_log::Piece {
        segment: 0,
        offset: n * 10,
        size: 10,
        late: false,
        content: "b25lIHR3bw==".into(),
    };
    let tx = world.cx.store.begin("test").await.unwrap();
    attempt_log::put(&tx, &(0..250).map(|n| (token, piece(n))).collect::<Vec<_>>()).await.unwrap();
    tx.commit().await.unwrap();
    world.pass_time(DAY.times(29));
    assert_eq!(sweep(&world).await.removed.get("log pieces"), None);
    world.pass_time(DAY.times(2));
    assert_eq!(sweep(&world).await.removed["log pieces"], 250);
    assert_eq!(names(&world).await, ["one"]);
}

/// Two schedulers on a server sweep at once: each run goes once, nobody waits, nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_schedulers_share_a_sweep() {
    let mut world = World::at(Place::database(), &[MANUAL], World::settings(), 1).await;
    for n in 0..20 {
        world.trigger("m", &format!("r{n}")).await;
        world.pass_time(Span::from_secs(1));
    }
    world.finish().await;
    world.pass_time(DAY.times(100));
    let other = world.another(true);
    let bounds = Bounds::of(&Keep::default(), world.now());
    let all = |cx: fencepost_engine::Cx| async move {
        let mut sweep = Sweep::new(bounds, Kind::ALL);
        while sweep.step(&cx).await.unwrap() {}
        sweep.into_found()
    };
    let (one, two) = tokio::join!(all(world.cx.clone()), all(other));
    // What one skipped since the other had it is there for the next sweep.
    let third = sweep(&world).await;
    let runs = |found: &Found| found.removed.get("runs").copied().unwrap_or(0);
    assert_eq!(runs(&one) + runs(&two) + runs(&third), 19, "{one:?} {two:?} {third:?}");
    assert_eq!(names(&world).await.len(), 1);
    nothing_is_left(&world).await;
    healthy(&world).await;
}

/// How a sweep ended: the runs that are left, and what is left of the others.
async fn swept(template: &World, trip: Option<Trip>) -> (Vec<String>, Vec<String>) {
    let mut world = template.fork();
    let bounds = Bounds::of(&Keep::default(), world.now());
    world.faults.arm(trip);
    let mut sweep = Sweep::new(bounds, Kind::ALL);
    for _ in 0..500 {
        let stepped = sweep.step(&world.cx).await;
        if world.faults.is_down() {
            world.restart().await;
            // What it remembered went with the process.
            sweep = Sweep::new(bounds, Kind::ALL);
        }
        match stepped {
            Ok(false) => {
                let points = world.faults.list();
                // A passage of the sweep, not of the looks at what it left.
                world.faults.arm(None);
                nothing_is_left(&world).await;
                healthy(&world).await;
                return (names(&world).await, points);
            }
            // Whatever was cut off: nothing is half there.
            Err(_) => healthy(&world).await,
            Ok(true) => {}
        }
    }
    panic!("it never ends");
}

#[tokio::test]
async fn a_sweep_ends_the_same_whatever_dies() {
    let mut template = World::at(Place::folder(), &[MANUAL], World::settings(), 1).await;
    for name in ["one", "two", "three"] {
        template.trigger("m", name).await;
        template.finish().await;
        template.pass_time(Span::from_secs(60));
    }
    template.pass_time(DAY.times(100));
    let (expected, points) = swept(&template, None).await;
    assert_eq!(expected, ["three"]);
    assert!(points.iter().any(|point| point == "retention:retention_drop"), "{points:?}");
    for at in 1..=points.len() as u64 {
        let is_commit = points[usize::try_from(at).unwrap() - 1].ends_with("commit");
        let kinds: &[Cut] =
            if is_commit { &[Cut::Fail, Cut::Unknown, Cut::Crash] } else { &[Cut::Crash] };
        for kind in kinds {
            let (left, _) = swept(&template, Some(Trip { at, kind: *kind })).await;
            assert_eq!(left, expected, "{kind:?} at passage {at}");
        }
    }
}
