//! What a sound file becomes: values, defaults, zones, the layering of `default_args` and `env`.

use super::{dag, task};
use fencepost_core::dag::{
    Action, Containment, Elements, OnLost, OutputType, TaskIndex, WeightRule,
};
use fencepost_core::retry::RetryAction;
use fencepost_core::schedule::{Calendar, Catchup, Schedule, Timetable};
use fencepost_core::time::{Span, Timestamp};
use fencepost_core::trigger_rule::TriggerRule;
use serde_json::{Value, json};

#[test]
fn the_smallest_file_has_the_documented_defaults() {
    let dag = dag("tasks:\n  hello:\n    run: echo \"hello, {{ ds }}\"\n");
    assert_eq!(dag.dag_id.as_str(), "test");
    assert_eq!(dag.timing.schedule, Schedule::Manual);
    assert_eq!((dag.timing.timezone.as_str(), dag.timing.timetable), ("UTC", Timetable::Trigger));
    assert_eq!(dag.timing.catchup, Catchup::Newest);
    assert_eq!((dag.limits.max_active_runs, dag.limits.max_active_tasks), (16, 16));
    assert!(!dag.is_paused_upon_creation && !dag.fail_fast);
    let hello = &dag.tasks[0];
    assert_eq!(hello.action, Action::Run("echo \"hello, {{ ds }}\"".into()));
    assert_eq!((hello.retry.retries, hello.infra_retries), (0, 5));
    assert_eq!(hello.retry.retry_delay, Span::from_mins(5));
    assert!(!hello.retry.exponential_backoff);
    assert_eq!((hello.on_lost, hello.containment), (OnLost::Retry, Containment::Auto));
    assert_eq!((hello.limits.pool.as_str(), hello.limits.pool_slots), ("default_pool", 1));
    assert_eq!((hello.limits.queue.as_str(), hello.limits.priority_weight), ("default", 1));
    assert_eq!(hello.limits.weight_rule, WeightRule::Downstream);
    assert_eq!(hello.trigger_rule, TriggerRule::AllSuccess);
    assert_eq!(hello.times.execution_timeout, None);
    assert_eq!(hello.times.queued_timeout, Span::from_mins(20));
    assert_eq!(hello.skip_exit_codes, [99]);
    assert_eq!(hello.shell, ["bash", "-euo", "pipefail"]);
}

#[test]
fn defaults_are_taken_replaced_and_taken_away() {
    let dag = dag("\
default_args:
  retries: 3
  execution_timeout: 1h
  env: {A: '1', B: '2'}
  on_lost: fail
tasks:
  a: {run: x}
  b: {run: x, retries: 0, execution_timeout: null, env: {B: '3', C: '4'}, on_lost: retry}
");
    let [a, b] = [&dag.tasks[0], &dag.tasks[1]];
    assert_eq!((a.retry.retries, b.retry.retries), (3, 0));
    assert_eq!(a.times.execution_timeout, Some(Span::from_hours(1)));
    assert_eq!(b.times.execution_timeout, None);
    assert_eq!((a.on_lost, b.on_lost), (OnLost::Fail, OnLost::Retry));
    let pairs = |env: &[(String, String)]| -> Vec<String> {
        env.iter().map(|(name, value)| format!("{name}={value}")).collect()
    };
    assert_eq!(pairs(&a.env), ["A=1", "B=2"]);
    assert_eq!(pairs(&b.env), ["A=1", "B=3", "C=4"]);
}

#[test]
fn environment_values_are_the_text_as_written() {
    let dag = dag(&task(
        "run: x\nenv: {FLAG: no, V: 1.10, T: 12:30, N: null, ID: 0012345, on: yes, X: 0x10, E: }",
    ));
    let pairs: Vec<String> =
        dag.tasks[0].env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(
        pairs,
        ["FLAG=no", "V=1.10", "T=12:30", "N=null", "ID=0012345", "on=yes", "X=0x10", "E="]
    );
}

const EVERY_KEY: &str = "\
tasks:
  a: {noop: true}
  b:
    command: [sleep, 5, true]
    depends_on: [a, a]
    trigger_rule: all_done
    when: ds > '2026-01-01'
    expand: {x: [1, {k: v}], y: [null, true, 1.5]}
    map_index_template: '{{ x }}'
    depends_on_past: true
    queue: gpu
    pool: warehouse
    pool_slots: 2
    priority_weight: -3
    weight_rule: absolute
    max_active_tis_per_dag: 4
    max_active_tis_per_dagrun: 2
    retries: 0x3
    retry_delay: 2m
    retry_exponential_backoff: true
    max_retry_delay: PT30M
    retry_policy: [{exit_codes: [2, 64], action: fail, reason: bad}, {exit_codes: [75], action: retry, delay: 10m}]
    infra_retries: 7
    on_lost: fail
    replace: after_confirmed_dead
    on_disconnect: keep
    containment: cgroup
    stall_timeout: 5m
    execution_timeout: 1h30m
    queued_timeout: 1h
    kill_grace: 0s
    graceful_exit_codes: [0, 143]
    skip_exit_codes: [99, 100]
    outputs: {path: string, rows: integer}
    working_dir: /srv
    shell: python3 -u
    run_as_user: nobody
";

#[test]
fn every_task_key_reaches_the_task() {
    let dag = dag(EVERY_KEY);
    let b = &dag.tasks[1];
    assert_eq!(b.action, Action::Command(["sleep", "5", "true"].map(String::from).to_vec()));
    assert_eq!(b.depends_on, [TaskIndex(0)]);
    assert_eq!(b.trigger_rule, TriggerRule::AllDone);
    assert_eq!(b.when.as_deref(), Some("ds > '2026-01-01'"));
    let list = |values: &[Value]| Elements::List(values.to_vec());
    assert_eq!(b.expand[0], ("x".into(), list(&[json!(1), json!({"k": "v"})])));
    assert_eq!(b.expand[1].1, list(&[json!(null), json!(true), json!(1.5)]));
    assert_eq!(b.instance_count(), 6);
    assert!(b.depends_on_past);
    assert_eq!((b.limits.queue.as_str(), b.limits.pool.as_str()), ("gpu", "warehouse"));
    assert_eq!((b.limits.pool_slots, b.limits.priority_weight), (2, -3));
    assert_eq!(b.limits.weight_rule, WeightRule::Absolute);
    assert_eq!(b.limits.max_active_tis_per_dag, Some(4));
    assert_eq!(b.limits.max_active_tis_per_dagrun, Some(2));
    assert_eq!((b.retry.retries, b.retry.retry_delay), (3, Span::from_mins(2)));
    assert_eq!(b.retry.max_retry_delay, Some(Span::from_mins(30)));
    assert_eq!(
        (b.retry_rules[0].exit_codes.as_slice(), b.retry_rules[0].action),
        (&[2, 64][..], RetryAction::Fail)
    );
    assert_eq!(b.retry_rules[1].action, RetryAction::Retry { delay: Some(Span::from_mins(10)) });
    assert_eq!((b.infra_retries, b.on_lost, b.containment), (7, OnLost::Fail, Containment::Cgroup));
    assert_eq!(b.times.stall_timeout, Some(Span::from_mins(5)));
    assert_eq!(b.times.execution_timeout, Some(Span::from_mins(90)));
    assert_eq!(b.times.queued_timeout, Span::from_hours(1));
    assert_eq!(b.times.kill_grace, Some(Span::ZERO));
    assert_eq!(
        (b.graceful_exit_codes.as_slice(), b.skip_exit_codes.as_slice()),
        (&[0, 143][..], &[99, 100][..])
    );
    assert_eq!(
        b.outputs,
        [("path".into(), OutputType::String), ("rows".into(), OutputType::Integer)]
    );
    assert_eq!(
        (b.working_dir.as_deref(), b.run_as_user.as_deref()),
        (Some("/srv"), Some("nobody"))
    );
    assert_eq!(b.shell, ["python3", "-u"]);
}

#[test]
fn dates_without_an_offset_are_in_the_zone_of_the_dag() {
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let dag = dag("\
schedule: '@daily'
timezone: europe/berlin
start_date: 2026-01-01
end_date: 2026-01-03T00:00:00+01:00
catchup: true
tasks: {a: {run: x}}
");
    assert_eq!(dag.timing.timezone, "Europe/Berlin");
    assert_eq!(dag.timing.start_date, Some(at("2025-12-31T23:00:00Z")));
    let slots = Calendar::new(&dag.timing).unwrap().due_since_start(at("2027-01-01"), 10);
    assert_eq!(slots.len(), 3);
    assert_eq!(slots[0].logical_date, at("2025-12-31T23:00:00Z"));
}

#[test]
fn the_forms_of_a_schedule() {
    let schedule = |value: &str| {
        dag(&format!("schedule: {value}\ntimezone: Europe/Berlin\ntasks: {{a: {{run: x}}}}\n"))
            .timing
            .schedule
    };
    assert_eq!(schedule("null"), Schedule::Manual);
    assert_eq!(schedule("0 5 * * *"), Schedule::Cron(vec!["0 5 * * *".into()]));
    assert_eq!(
        schedule("['@daily', 0 12 * * 1]"),
        Schedule::Cron(vec!["@daily".into(), "0 12 * * 1".into()])
    );
    assert_eq!(schedule("{every: 15m}"), Schedule::Every(Span::from_mins(15)));
    let at = "2026-12-31T23:00:00Z".parse().unwrap();
    assert_eq!(schedule("{at: 2026-12-31T23:00:00Z}"), Schedule::At(at));
    assert_eq!(schedule("{at: 2027-01-01}"), Schedule::At(at));
    let assets =
        |value: &str| schedule(&format!("{{assets: {value}}}")).assets().map(ToString::to_string);
    assert_eq!(assets("orders").as_deref(), Some("orders"));
    assert_eq!(assets("[a, s3://b/c]").as_deref(), Some("a & s3://b/c"));
    assert_eq!(assets("{any: [a, {all: [b, c]}]}").as_deref(), Some("a | (b & c)"));
    assert_eq!(assets("[a, {any: [b, c]}]").as_deref(), Some("a & (b | c)"));
}

#[test]
fn params_in_both_forms() {
    let dag = dag("\
params:
  full: false
  regions: {type: array, items: {type: string, enum: [emea]}, default: [emea], description: D}
  free: null
  needed: {type: [string, integer]}
tasks: {a: {run: x}}
");
    let [full, regions, free, needed] = dag.params.as_slice() else { panic!("four params") };
    assert_eq!((&full.default, &full.schema), (&json!(false), &json!({"type": "boolean"})));
    assert_eq!((regions.description.as_str(), &regions.default), ("D", &json!(["emea"])));
    assert_eq!(free.schema, json!({}));
    assert_eq!(needed.default, json!(null));

    let given = |value: serde_json::Value| {
        let values = fencepost_dagfile::params::resolve(&dag, value.as_object().unwrap());
        values.map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(given(json!({})).unwrap_err(), ["param `needed` is required"]);
    assert_eq!(
        given(json!({"needed": 1, "regoins": [], "full": "x"})).unwrap_err(),
        [
            "there is no param `regoins`; did you mean `regions`?",
            "param `full` does not fit: must be boolean, is string",
        ]
    );
    let values = given(json!({"needed": "x", "full": true})).unwrap();
    assert_eq!(
        json!(values),
        json!({"full": true, "regions": ["emea"], "free": null, "needed": "x"})
    );
    let from_text =
        |index: usize, text| fencepost_dagfile::params::value_from_text(&dag.params[index], text);
    assert_eq!(from_text(0, "true"), json!(true));
    assert_eq!(from_text(1, "[\"emea\"]"), json!(["emea"]));
    assert_eq!(from_text(3, "007"), json!("007"));
}

#[test]
fn anchors_and_merge_keys() {
    let dag = dag("\
default_args: &shared {retries: 2}
tasks:
  a: &a {run: x, retries: 1, queue: q}
  b: {<<: *a, run: y}
  c: {<<: [*shared, *a]}
");
    assert_eq!(dag.tasks[1].action, Action::Run("y".into()));
    assert_eq!(dag.tasks[1].retry.retries, 1);
    assert_eq!((dag.tasks[2].retry.retries, dag.tasks[2].limits.queue.as_str()), (2, "q"));
}
