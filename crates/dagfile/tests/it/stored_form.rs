//! The stored form: lossless, independent of how the file is written, complete.

use super::dag;
use fencepost_core::dag::Dag;
use fencepost_dagfile::{content_hash, from_ir, ir};
use serde_json::{Value, json};

const FULL: &str = "\
dag_id: full
description: D
doc_md: \"a\\nb\"
owner: o
tags: [x, y]
schedule: [\"0 5 * * *\", '@daily']
timezone: Europe/Berlin
timetable: data_interval
start_date: 2026-01-01T00:00:00.000001Z
end_date: 2027-01-01
catchup: next
is_paused_upon_creation: true
max_active_runs: 1
max_active_tasks: 2
dagrun_timeout: 4h
fail_fast: true
compat: airflow
retention: 30d
params:
  z: 1
  a: {type: [string, 'null'], description: d}
  l: {items: {type: integer}, type: array, default: [1]}
env: {Z: '1', A: '{{ dag.dag_id }}'}
secrets: {S: 'store:s', T: 'exec:pass show a:b'}
connections: [x]
default_args: {retries: 4, execution_timeout: 2h, max_active_tis_per_dag: 3, env: {Q: q}}
tasks:
  last: {run: 'echo {{ ds }}', secrets: {U: 'file:/u'}, connections: [y], outputs: {n: integer}}
  first:
    command: [a, '{{ outputs.last.n }}']
    depends_on: [last]
    teardown: true
    expand: {k: [1, x, null, {b: 1, a: 2}], t: '{{ [1, 2] }}'}
    map_index_template: '{{ k }}'
    when: ds
    execution_timeout: null
    retry_policy: [{exit_codes: [1], action: fail, reason: r}, {exit_codes: [2], action: retry, delay: 1s}, {exit_codes: [3], action: retry}]
    shell: sh
    skip_exit_codes: []
    working_dir: '{{ ds }}'
  n: {noop: true}
";

fn through_text(dag: &Dag) -> Dag {
    let text = ir(dag).to_string();
    from_ir(&serde_json::from_str::<Value>(&text).unwrap()).unwrap()
}

#[test]
fn a_dag_comes_back_as_it_was() {
    for file in [
        FULL,
        "tasks: {a: {run: x}}",
        "schedule: {every: 1h30m}\nstart_date: 2026-01-01\ncatchup: true\ntasks: {a: {run: x}}",
        "schedule: {at: 2026-01-01}\ntasks: {a: {run: \"x\\ty é\"}}",
    ] {
        let dag = dag(file);
        let back = through_text(&dag);
        assert_eq!(back, dag);
        assert_eq!(content_hash(&back), content_hash(&dag));
    }
}

#[test]
fn the_hash_is_of_the_content() {
    let one = dag("# a comment\ntasks:\n  a:\n    run: x\n    retries: 0   # the default\n");
    let other = dag("dag_id: test\nschedule: null\ntasks: {\"a\": {run: 'x', queue: default}}\n");
    assert_eq!(content_hash(&one), content_hash(&other));
    assert_eq!(content_hash(&one).len(), 64);
    for changed in [
        "tasks: {a: {run: y}}",
        "tasks: {b: {run: x}}",
        "tasks: {a: {run: x, retries: 1}}",
        "tasks: {a: {run: x, env: {A: ''}}}",
        "tasks: {a: {run: x}, b: {noop: true}}",
        "owner: o\ntasks: {a: {run: x}}",
        "dag_id: x\ntasks: {a: {run: x}}",
    ] {
        assert_ne!(content_hash(&one), content_hash(&dag(changed)), "{changed}");
    }
}

/// A changed hash is a new version of every DAG of every user: it must not change by accident.
#[test]
fn the_hash_of_a_known_file_stays() {
    assert_eq!(
        ir(&dag("tasks: {a: {run: x}}")).to_string(),
        concat!(
            r#"{"schema":1,"dag_id":"test","description":"","doc_md":"","owner":"","tags":[],"#,
            r#""schedule":null,"timezone":"UTC","timetable":"trigger","catchup":false,"#,
            r#""is_paused_upon_creation":false,"max_active_runs":16,"max_active_tasks":16,"#,
            r#""fail_fast":false,"params":{},"env":{},"default_args":{"trigger_rule":"all_success","#,
            r#""depends_on_past":false,"queue":"default","pool":"default_pool","pool_slots":1,"#,
            r#""priority_weight":1,"weight_rule":"downstream","retries":0,"retry_delay":"5m","#,
            r#""retry_exponential_backoff":false,"retry_policy":[],"infra_retries":5,"#,
            r#""on_lost":"retry","containment":"auto","queued_timeout":"20m","#,
            r#""graceful_exit_codes":[],"skip_exit_codes":[99],"#,
            r#""shell":["bash","-euo","pipefail"]},"tasks":{"a":{"run":"x"}}}"#,
        )
    );
}

#[test]
fn what_is_no_stored_form_is_refused() {
    for value in [json!(null), json!([]), json!({}), json!({"tasks": {"a": {"rnu": "x"}}})] {
        assert!(from_ir(&value).is_err(), "{value}");
    }
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert!(from_ir(&json!({"dag_id": "d", "params": {"p": deep}, "tasks": {}})).is_err());
}
