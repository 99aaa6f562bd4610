//! Files in the style of dag-factory's own examples.

use super::{dags, instants, notes, source};
use fencepost_core::dag::{Action, Dag, Elements, Task};
use fencepost_core::trigger_rule::TriggerRule;
use fencepost_import::{Imported, NoteKind, dag_factory};

fn import(text: &str) -> Imported {
    dag_factory(&source("dags.yml", text))
}

fn task<'a>(dag: &'a Dag, id: &str) -> &'a Task {
    &dag.tasks[dag.index_of(id).unwrap_or_else(|| panic!("no {id}")).at()]
}

fn ups(dag: &Dag, id: &str) -> Vec<String> {
    task(dag, id).depends_on.iter().map(|up| dag.task(*up).unwrap().task_id.to_string()).collect()
}

const BASIC: &str = "\
default:
  default_args:
    owner: data
    start_date: 2024-01-01
    retries: 1
    retry_delay_sec: 300
  max_active_runs: 1
  schedule: 0 1 * * *

basic:
  default_args:
    owner: custom
  description: an example
  schedule: \"0 3 * * *\"
  catchup: false
  default_view: graph
  tags: [a, b]
  tasks:
    one:
      operator: airflow.providers.standard.operators.bash.BashOperator
      bash_command: \"echo {{ ds }}\"
      env: {A: x}
      cwd: /srv
      execution_timeout_secs: 90
    two:
      operator: airflow.operators.bash_operator.BashOperator
      bash_command: echo 2
      dependencies: [one]
      trigger_rule: none_failed_or_skipped
    end:
      operator: airflow.operators.empty.EmptyOperator
      dependencies: [two, one]

as_list:
  tasks:
    - task_id: a
      operator: airflow.operators.dummy.DummyOperator
";

#[test]
fn the_basic_example() {
    let imported = import(BASIC);
    let dags = dags(&imported);
    assert_eq!(dags.len(), 2);
    insta::assert_snapshot!(imported.files[0].text, @r#"
    # Imported from basic in dags.yml.
    dag_id: basic
    description: an example
    owner: custom
    tags: [a, b]
    compat: airflow
    schedule: "0 3 * * *"
    start_date: "2024-01-01"
    max_active_runs: 1
    default_args:
      retries: 1
      retry_delay: "5m"

    tasks:
      one:
        run: "echo {{ ds }}"
        shell: [bash]
        working_dir: /srv
        env:
          A: x
        execution_timeout: "1m30s"
      two:
        depends_on: [one]
        trigger_rule: none_failed_min_one_success
        run: echo 2
        shell: [bash]
      end:
        depends_on: [two, one]
        noop: true
    "#);
    assert_eq!(ups(&dags[0], "end"), ["one", "two"]);
    assert_eq!(task(&dags[0], "two").trigger_rule, TriggerRule::NoneFailedMinOneSuccess);
    assert_eq!(task(&dags[1], "a").action, Action::Noop);
    // `default` is merged into each.
    assert_eq!((dags[1].limits.max_active_runs, dags[1].owner.as_str()), (1, "data"));
    assert_eq!(instants(&dags[1], "2026-01-01T00:00:00Z", 1), ["2026-01-01T01:00:00.000Z"]);
    assert!(
        notes(&imported, NoteKind::NeedsPerson).is_empty(),
        "{:?}",
        notes(&imported, NoteKind::NeedsPerson)
    );
    assert!(notes(&imported, NoteKind::Ignored).concat().contains("default_view"));
}

const GROUPS: &str = "\
grouped:
  task_groups:
    outer:
      tooltip: \"an outer group\"
      dependencies: [first]
      default_args: {retries: 7, sla: 5}
    inner:
      parent_group_name: outer
      dependencies: [b]
    plain: {prefix_group_id: false, ui_color: red}
    empty: {dependencies: [first]}
  tasks:
    first: {operator: airflow.operators.empty.EmptyOperator}
    b: {operator: airflow.operators.empty.EmptyOperator, task_group_name: outer}
    d: {operator: airflow.operators.empty.EmptyOperator, task_group_name: inner}
    p: {operator: airflow.operators.empty.EmptyOperator, task_group_name: plain, dependencies: [d]}
    last: {operator: airflow.operators.empty.EmptyOperator, dependencies: [outer, p, empty]}
";

#[test]
fn groups_stand_in_each_other_and_names_find_their_tasks() {
    let imported = import(GROUPS);
    let dag = dags(&imported).remove(0);
    let ids: Vec<&str> = dag.tasks.iter().map(|task| task.task_id.as_str()).collect();
    assert_eq!(ids, ["first", "last", "outer.b", "outer.inner.d", "p", "empty.empty"]);
    assert_eq!(ups(&dag, "outer.b"), ["first"]);
    assert_eq!(ups(&dag, "outer.inner.d"), ["outer.b"]);
    assert_eq!(ups(&dag, "p"), ["outer.inner.d"]);
    assert_eq!(ups(&dag, "last"), ["outer.inner.d", "p", "empty.empty"]);
    assert_eq!(task(&dag, "outer.inner.d").retry.retries, 7);
    assert_eq!(
        notes(&imported, NoteKind::NeedsPerson),
        ["dags.yml:6 sla: 5 -> there are no SLAs of tasks; watch the run's end by an alert"]
    );
}

const MORE: &str = "\
more:
  schedule: none
  params: {region: eu, limits: {default: 3, type: integer}, odd: {a: 1}}
  on_failure_callback: alerts.page
  default_args: {email: [a@b.c], email_on_failure: false, depends_on_past: 'yes'}
  tasks:
    numbers:
      decorator: airflow.sdk.definitions.decorators.task
      python_callable: sample.build_numbers_list
    from_file:
      operator: airflow.operators.python.PythonOperator
      python_callable_name: load
      python_callable_file: $CONFIG_ROOT_DIR/load_tasks.py
      op_kwargs: {table: orders, day: '{{ ds }}'}
    double:
      decorator: airflow.decorators.task
      python_callable: sample.double
      expand: {number: +numbers, word: [a, b]}
      partial: {label: true}
    each:
      operator: airflow.operators.bash.BashOperator
      expand: {bash_command: [echo 1, echo 2]}
    start:
      operator: airflow.operators.trigger_dagrun.TriggerDagRunOperator
      trigger_dag_id: other
      conf: {a: '{{ ds }}'}
      wait_for_completion: true
    wait:
      operator: airflow.sensors.external_task.ExternalTaskSensor
      external_dag_id: producer
      external_task_id: produce
      mode: reschedule
      timeout: 300
      poke_interval: 30
      execution_delta: 1 days
    nap: {operator: airflow.sensors.time_delta.TimeDeltaSensor, delta: 5 minutes}
    pod:
      operator: airflow.providers.cncf.kubernetes.operators.pod.KubernetesPodOperator
      image: alpine
      dependencies: [numbers]
    odd:
      operator: airflow.operators.bash.BashOperator
      bash_command: 'echo {{ macros.whatever() }}'
      sla: 3
";

#[test]
fn operators_with_a_counterpart_and_others() {
    let imported = import(MORE);
    let dag = dags(&imported).remove(0);
    assert_eq!(task(&dag, "numbers").action, Action::Python("sample:build_numbers_list".into()));
    assert_eq!(task(&dag, "from_file").action, Action::Python("load_tasks:load".into()));
    let expand = &task(&dag, "double").expand;
    assert_eq!(expand[0].1, Elements::Template("{{ outputs[\"numbers\"].return_value }}".into()));
    assert_eq!(ups(&dag, "double"), ["numbers"]);
    assert_eq!(task(&dag, "each").instance_count(), 2);
    let Action::TriggerDag(trigger) = &task(&dag, "start").action else { panic!() };
    assert_eq!(trigger.dag_id, "other");
    let Action::Wait(wait) = &task(&dag, "wait").action else { panic!() };
    assert_eq!(
        wait.to_string(),
        r#"{"external_task":{"dag_id":"producer","task_id":"produce"},"poke_interval":"30s","timeout":"5m"}"#
    );
    let names: Vec<&str> = dag.params.iter().map(|param| param.name.as_str()).collect();
    assert_eq!(names, ["region", "limits", "odd", "table", "label"]);
    assert!(task(&dag, "nap").depends_on_past);
    for refused in ["pod", "odd"] {
        let Action::Run(script) = &task(&dag, refused).action else { panic!() };
        assert!(script.contains("not converted") && script.contains("exit 1"), "{script}");
    }
    let needs = notes(&imported, NoteKind::NeedsPerson).join("\n");
    for part in [
        "dags.yml:4 on_failure_callback: alerts.page -> callbacks in Python are not called",
        "dags.yml:5 email: [\"a@b.c\"] -> mails are callbacks here",
        "python_callable_file: $CONFIG_ROOT_DIR/load_tasks.py -> a function is found by its module",
        "day: {{ ds }} -> only constants can be passed on",
        "wait_for_completion: true -> it succeeds when the run is made",
        "execution_delta: 1 days -> it waits for the run of the same logical date",
        "pod: operator: airflow.providers.cncf.kubernetes.operators.pod.KubernetesPodOperator -> nothing here is like it",
        "image: alpine -> no key of a task is like it",
        "odd: operator: airflow.operators.bash.BashOperator -> it was written as a task that fails: ",
    ] {
        assert!(needs.contains(part), "{part}\n{needs}");
    }
}

#[test]
fn schedules_and_dates() {
    let of = |lines: &str| {
        let lines: Vec<String> = lines.lines().map(|line| format!("  {line}")).collect();
        import(&format!("d:\n{}\n  tasks: {{t: {{operator: EmptyOperator}}}}\n", lines.join("\n")))
    };
    for (lines, first) in [
        ("schedule: '@daily'", "2026-01-02T00:00:00.000Z"),
        (
            "schedule_interval: 30 4 * * *\ndefault_args: {timezone: Europe/Berlin}",
            "2026-01-01T03:30:00.000Z",
        ),
        ("schedule: 2 hours", "2026-01-01T02:00:00.000Z"),
        ("schedule: {__type__: datetime.timedelta, minutes: 30}", "2026-01-01T00:30:00.000Z"),
    ] {
        let imported = of(lines);
        let dag = dags(&imported).remove(0);
        assert_eq!(instants(&dag, "2026-01-01T00:00:00Z", 1), [first], "{lines}");
        assert!(notes(&imported, NoteKind::NeedsPerson).is_empty(), "{lines}");
    }
    for lines in [
        "schedule: '@once'",
        "schedule: '@continuous'",
        "schedule: [s3://bucket/a]",
        "schedule: {datasets: [a]}",
        "schedule: at noon",
        "timetable: {callable: x.Y, params: {}}",
        "catchup: true\nstart_date: 2 days",
        "end_date: tomorrow",
        "start_date: [1]\ncatchup: on",
    ] {
        let imported = of(lines);
        dags(&imported);
        assert_eq!(
            notes(&imported, NoteKind::NeedsPerson).len(),
            1,
            "{lines} {:?}",
            imported.notes
        );
    }
    assert_eq!(notes(&of("schedule: None\nstart_date: 2 days"), NoteKind::NeedsPerson).len(), 0);
}

#[test]
fn mistakes_of_the_file() {
    let imported = import(
        "a: 1\nb: [x]\nc: {tasks: {x: {operator: EmptyOperator, dependencies: [y]}, y: {operator: EmptyOperator, dependencies: [x]}}}\n",
    );
    assert!(imported.files.is_empty());
    let needs = notes(&imported, NoteKind::NeedsPerson).join("\n");
    assert!(needs.contains("dags.yml:1 a: 1 -> it is no DAG"), "{needs}");
    assert!(
        needs.contains(
            "c -> no file was written: the tasks depend on each other in a circle: x -> y -> x"
        ),
        "{needs}"
    );
    let imported = import(
        "g: {task_groups: {a: {parent_group_name: b}, b: {parent_group_name: a}}, tasks: {t: {operator: EmptyOperator, task_group_name: a}}}",
    );
    dags(&imported);
    assert!(
        notes(&imported, NoteKind::NeedsPerson).join("\n").contains("its parents lead back to it")
    );
    for (text, line) in [("a: [", 1), ("- a", 1), ("a: 1\na: 2", 2), ("f: !!python/name:x.y", 1)] {
        let imported = import(text);
        assert!(imported.files.is_empty());
        let note = imported.notes.iter().find(|note| note.kind == NoteKind::Unreadable);
        assert_eq!(note.map(|note| note.line), Some(line), "{text}");
    }
}
