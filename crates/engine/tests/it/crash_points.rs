//! Exhaustive crash points, in process: a scenario runs once to list every point that it passes;
//! then once more for every point and every way to die there, to the same end.
//!
//! A crash takes all that is in memory with it. Only the store's file and the processes of tasks stay.

use crate::world::{
    Act, Kind, Trip, What, World, backfills, clears, defers, exit, gone, kind_of, request, says,
    stay,
};
use fencepost_engine::error::EngineError;
use fencepost_engine::operations::answer::{Reply, answer};
use fencepost_engine::operations::backfill::{self, BackfillRequest};
use fencepost_engine::operations::clear::clear;
use fencepost_engine::operations::run_control::{cancel, delete_run};
use fencepost_engine::operations::trigger::trigger;
use std::collections::{BTreeMap, BTreeSet};

/// What a person does, once something holds.
#[derive(Debug, Clone, Copy)]
enum Person {
    Triggers,
    /// These two: once a process runs.
    Cancels,
    ClearsRunning,
    /// Once the run is over.
    Clears,
    Deletes,
    /// Once it triggered a run for the first day.
    Backfills,
    /// Once a process runs, and the run that was there before is taken up.
    CancelsBackfill,
    /// Once something is asked.
    Approves,
}

struct Scenario {
    file: &'static str,
    script: fn(&What) -> Act,
    people: &'static [Person],
}

/// How a scenario ended.
#[derive(Debug, PartialEq, Eq)]
struct End {
    runs: Vec<String>,
    /// Starts by run and task.
    starts: BTreeMap<String, usize>,
    /// Successes by run and task.
    successes: BTreeMap<String, usize>,
    outputs: usize,
    /// What callbacks told, each id once.
    told: Vec<String>,
}

const TURNS_MAX: usize = 300;

impl Scenario {
    async fn play(&self, template: &World, trip: Option<Trip>) -> (End, Vec<String>) {
        let mut world = template.fork();
        world.faults.arm(trip);
        let mut people = self.people.iter().copied().peekable();
        // What was asked for and has no answer is asked for again at once.
        let mut is_open = false;
        let mut is_checked = false;
        let mut errors = Vec::new();
        for _ in 0..TURNS_MAX {
            if world.faults.is_down() {
                world.restart().await;
            }
            if let Some(person) = people.peek()
                && (is_open || is_due(&world, *person).await)
            {
                is_open = matches!(act(&world, *person).await, Err(EngineError::Store(_)));
                if is_open {
                    continue;
                }
                // A refusal says that it was done, and its answer lost.
                people.next();
            }
            let turn = world.turn().await;
            errors.extend(turn.errors.iter().cloned());
            if world.faults.has_tripped() && !is_checked {
                is_checked = true;
                world.check().await;
            }
            if turn.moved > 0 || !turn.errors.is_empty() {
                continue;
            }
            if people.peek().is_none() && world.unfinished_runs().await.is_empty() {
                world.check().await;
                return (end(&world).await, world.faults.list());
            }
            if people.peek().is_none() || !is_due(&world, *people.peek().unwrap()).await {
                world.wait(&turn);
            }
        }
        panic!("{:?} never end; {errors:?}", world.unfinished_runs().await);
    }

    /// Plays the scenario with something happening at each passage of a point.
    #[expect(clippy::print_stdout, reason = "the points are listed and counted")]
    async fn everywhere(&self, name: &str) {
        let mut template = World::of(&[self.file]).await;
        template.script(self.script);
        let (expected, points) = self.play(&template, None).await;
        let mut seen = BTreeSet::new();
        let mut stretches: BTreeMap<&[String], usize> = BTreeMap::new();
        let mut worlds = 0;
        for (at, point) in (1_u64..).zip(&points) {
            let mut is_first = seen.insert(point);
            if point.ends_with(":after_commit") {
                let times = stretches.entry(transaction(&points, at)).or_default();
                *times += 1;
                is_first = *times <= OFTEN;
            }
            for kind in kinds(at, point, is_first) {
                let trip = Trip { at, kind: *kind };
                let (found, _) = self.play(&template, Some(trip)).await;
                assert_eq!(found, expected, "{name}: {kind:?} at passage {at}, {point}");
                worlds += 1;
            }
        }
        let (passages, points) = (points.len(), seen.len());
        println!("{name}: {passages} passages of {points} points, {worlds} worlds");
    }
}

/// So often the same transaction is looked at closely: most of them find nothing to do.
const OFTEN: usize = 3;

/// The points of the transaction that is committed at a passage.
fn transaction(points: &[String], at: u64) -> &[String] {
    let end = usize::try_from(at).unwrap();
    let begin = points[..end].iter().rposition(|point| point.ends_with(":begin")).unwrap_or(0);
    &points[begin..end]
}

/// What happens at a passage. In the short form the first passage of every point has one of the
/// verdicts (which one differs from scenario to scenario), the first commits of every transaction (the same statements in the same order) are the last
/// thing that happens or lose their answer, and of all others every eighth has one; the long form
/// plays all of all.
fn kinds(at: u64, point: &str, is_first: bool) -> &'static [Kind] {
    let is_commit = point.ends_with(":after_commit");
    match at % 16 {
        _ if is_long() && is_commit => &[Kind::Fail, Kind::Unknown, Kind::Crash],
        _ if is_first && is_commit => &[Kind::Unknown, Kind::Crash],
        _ if is_long() => &[Kind::Fail, Kind::Crash],
        n if is_first && n % 2 == 0 => &[Kind::Fail],
        _ if is_first => &[Kind::Crash],
        0 => &[Kind::Fail],
        8 => &[Kind::Crash],
        _ => &[],
    }
}

#[expect(clippy::disallowed_methods, reason = "the long form is asked for by a variable")]
fn is_long() -> bool {
    std::env::var("FENCEPOST_TEST_LONG").is_ok()
}

async fn is_due(world: &World, person: Person) -> bool {
    match person {
        Person::Triggers => true,
        Person::Cancels | Person::ClearsRunning => !world.machine.running().is_empty(),
        Person::CancelsBackfill => {
            !world.machine.running().is_empty() && world.unfinished_runs().await.len() == 3
        }
        Person::Approves => world.triggers().await.iter().any(|one| one.kind == "approval"),
        Person::Clears | Person::Deletes | Person::Backfills => {
            !world.all_runs().await.is_empty() && world.unfinished_runs().await.is_empty()
        }
    }
}

async fn act(world: &World, person: Person) -> Result<(), EngineError> {
    let cx = &world.cx;
    match person {
        Person::Triggers => trigger(cx, request("d", "r")).await.map(drop),
        Person::Cancels => cancel(cx, "d", "r", false, "me").await.map(drop),
        Person::ClearsRunning | Person::Clears => clear(cx, &clears("d", "r")).await.map(drop),
        Person::Deletes => delete_run(cx, "d", "r", "me").await,
        Person::Backfills => {
            let request = backfills("d", "2026-02-27", "2026-03-01");
            let reprocess = fencepost_core::state::Reprocess::Completed;
            backfill::create(cx, &BackfillRequest { reprocess, ..request }).await.map(drop)
        }
        Person::Approves => {
            let ask = Reply {
                dag_id: "d".into(),
                run_id: "r".into(),
                task_id: "ask".into(),
                map_index: None,
                approves: true,
                by: "me".into(),
                reason: None,
            };
            answer(cx, &ask).await.map(drop)
        }
        Person::CancelsBackfill => {
            backfill::cancel(cx, world.backfills().await[0].backfill_pk, "me").await.map(drop)
        }
    }
}

async fn end(world: &World) -> End {
    let mut end = End {
        runs: Vec::new(),
        starts: BTreeMap::new(),
        successes: BTreeMap::new(),
        outputs: 0,
        told: world.post.told(),
    };
    for run in world.all_runs().await {
        let shown = world.shown("d", &run.run_id).await;
        let own = kind_of(&run.run_id);
        end.runs.push(format!("{own} {shown}"));
        for ti in world.tis_of(&run).await {
            let name = crate::world::shown(&ti);
            let attempts = world.attempts("d", &run.run_id, &name).await;
            let good = |a: &&fencepost_store::query::attempt::Attempt| {
                a.outcome == Some(fencepost_core::state::Outcome::Success)
            };
            let key = format!("{own} {name}");
            end.successes.insert(key, attempts.iter().filter(good).count());
            end.outputs += world.outputs("d", &run.run_id, &name).await.len();
        }
    }
    let backfills = world.backfills().await;
    end.runs.extend(backfills.iter().map(|of| format!("backfill {}", of.state)));
    for (_, what) in &world.machine.ledger {
        *end.starts.entry(format!("{} {}", kind_of(&what.run_id), what.name())).or_default() += 1;
    }
    end
}

macro_rules! scenario {
    ($name:ident, $file:expr, $script:expr, $people:expr) => {
        #[tokio::test]
        async fn $name() {
            let scenario = Scenario { file: $file, script: $script, people: $people };
            scenario.everywhere(stringify!($name)).await;
        }
    };
}

scenario!(
    each_callback_is_told_once_whatever_dies,
    "
dag_id: d
deadline: {after: 1m, callback: [{slack: {url: 'https://one', text: 'late'}}]}
on_success_callback: [{slack: {url: 'https://one', text: 'run {{ occasion }}'}}]
on_lost_callback:
  - slack: {url: 'https://two', text: '{{ ti.task_id }} lost: {{ ti.lost_evidence.kind }}'}
on_retry_callback:
  - slack: {url: 'https://two', text: '{{ ti.task_id }} again: {{ reason }} {{ try_number }}'}
tasks:
  t: {run: x, retries: 1, retry_delay: 5m}
",
    |what| match what.attempt {
        1 => gone(),
        2 => exit(1),
        _ => exit(0),
    },
    &[Person::Triggers]
);
scenario!(
    a_callback_triggers_one_run_whatever_dies,
    "
dag_id: d
tasks:
  t:
    noop: true
    when: '{{ conf.from is not defined }}'
    on_success_callback:
      - trigger_dag: {dag_id: d, conf: {from: '{{ run_id }}'}}
    on_skipped_callback:
      - slack: {url: 'https://one', text: 'skipped in the run after {{ conf.from }}'}
",
    |_| exit(0),
    &[Person::Triggers]
);

scenario!(
    a_task_triggers_one_run_whatever_dies,
    "
dag_id: d
params: {again: true}
tasks:
  a: {run: x}
  t:
    depends_on: [a]
    when: '{{ params.again }}'
    trigger_dag: {dag_id: d, run_id: 'after_{{ run_id }}', params: {again: false}}
",
    |_| exit(0),
    &[Person::Triggers]
);

scenario!(
    an_event_makes_one_run_whatever_dies,
    "
dag_id: d
schedule: {assets: [x, {any: [y, z]}]}
tasks:
  a: {run: x, when: '{{ dag_run.run_type == \"manual\" }}', outlets: [x]}
  b: {noop: true, when: '{{ dag_run.run_type == \"manual\" }}', outlets: [y]}
",
    |_| exit(0),
    &[Person::Triggers]
);

scenario!(
    a_template_gives_the_same_instances_whatever_dies,
    "
dag_id: d
tasks:
  list: {run: x}
  m: {run: x, depends_on: [list], expand: {f: '{{ outputs.list.files }}'}}
  last: {run: x, depends_on: [m]}
",
    |what| if what.task_id == "list" {
        says("files", serde_json::json!(["a", "b"]))
    } else {
        exit(0)
    },
    &[Person::Triggers]
);

scenario!(
    a_five_task_diamond_ends_the_same_whatever_dies,
    "
dag_id: d
tasks:
  a: {run: x}
  b: {run: x, depends_on: [a]}
  c: {run: x, depends_on: [a]}
  d: {run: x, depends_on: [b, c]}
  e: {noop: true, depends_on: [d]}
",
    |what| says("n", serde_json::json!(what.task_id)),
    &[Person::Triggers]
);
scenario!(
    a_retry_comes_once_whatever_dies,
    "
dag_id: d
tasks:
  t: {run: x, retries: 1, retry_delay: 5m}
",
    |what| exit(u8::from(what.attempt == 1)),
    &[Person::Triggers]
);
scenario!(
    a_replacement_comes_once_whatever_dies,
    "
dag_id: d
tasks:
  t: {run: x}
",
    |what| if what.attempt == 1 { gone() } else { exit(0) },
    &[Person::Triggers]
);
scenario!(
    a_cancel_of_what_runs_is_final_whatever_dies,
    "
dag_id: d
tasks:
  t: {run: x, retries: 3}
  after: {run: x, depends_on: [t]}
",
    |_| stay(),
    &[Person::Triggers, Person::Cancels]
);
scenario!(
    a_clear_of_what_runs_starts_it_once_more_whatever_dies,
    "
dag_id: d
tasks:
  t: {run: x}
",
    |what| if what.attempt == 1 { stay() } else { exit(0) },
    &[Person::Triggers, Person::ClearsRunning]
);
scenario!(
    a_clear_of_a_finished_run_runs_it_once_more_whatever_dies,
    "
dag_id: d
tasks:
  a: {run: x}
  b: {run: x, depends_on: [a]}
",
    |_| exit(0),
    &[Person::Triggers, Person::Clears]
);
scenario!(
    mapped_tasks_run_once_each_whatever_dies,
    "
dag_id: d
tasks:
  m: {run: x, expand: {x: [1, 2, 3]}, max_active_tis_per_dagrun: 2}
  last: {run: x, depends_on: [m]}
",
    |what| says("n", serde_json::json!(what.map_index)),
    &[Person::Triggers]
);
scenario!(
    two_runs_that_depend_on_each_other_both_end_whatever_dies,
    "
dag_id: d
schedule: '@daily'
start_date: 2026-02-27
end_date: 2026-02-28
catchup: true
tasks:
  t: {run: x, depends_on_past: true}
",
    |_| exit(0),
    &[]
);
scenario!(
    a_timeout_fails_the_run_whatever_dies,
    "
dag_id: d
dagrun_timeout: 1h
tasks:
  t: {run: x}
  after: {run: x, depends_on: [t]}
",
    |_| stay(),
    &[Person::Triggers]
);
scenario!(
    a_deleted_run_is_gone_whatever_dies,
    "
dag_id: d
tasks:
  t: {run: x}
",
    |_| exit(0),
    &[Person::Triggers, Person::Deletes]
);
const DAILY: &str = "
dag_id: d
schedule: '@daily'
start_date: 2026-02-01
catchup: next
tasks:
  t: {run: x}
";

scenario!(
    a_backfill_makes_and_reruns_each_slot_once_whatever_dies,
    DAILY,
    |_| exit(0),
    &[Person::Triggers, Person::Backfills]
);
scenario!(
    a_cancelled_backfill_ends_with_what_it_runs_whatever_dies,
    DAILY,
    |what| if what.run_id == "r" { exit(0) } else { stay() },
    &[Person::Triggers, Person::Backfills, Person::CancelsBackfill]
);
scenario!(
    a_deferral_resumes_once_whatever_dies,
    "
dag_id: d
tasks:
  w: {wait: {interval: 5m}}
  t: {run: x, depends_on: [w]}
  other: {wait: {external_task: {dag_id: d, task_id: t, run_id: r}}}
",
    |what| match what.event {
        None => defers(serde_json::json!({ "interval": "5m", "context": 1 })),
        Some(_) => says("n", serde_json::json!(what.try_number)),
    },
    &[Person::Triggers]
);
scenario!(
    a_person_is_heard_once_whatever_dies,
    "
dag_id: d
tasks:
  ask: {wait: {approval: Ship it?}}
  after: {run: x, depends_on: [ask]}
",
    |_| exit(0),
    &[Person::Triggers, Person::Approves]
);
scenario!(
    a_cancel_ends_what_is_deferred_whatever_dies,
    "
dag_id: d
tasks:
  w: {wait: {interval: 5m}}
  f: {wait: {file: /never, timeout: 1h}}
  t: {run: x}
",
    |_| stay(),
    &[Person::Triggers, Person::Cancels]
);
