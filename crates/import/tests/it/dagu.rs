//! Workflows in the style of Dagu's own examples, in both of its spellings.

use super::{dags, instants, notes, source};
use fencepost_core::dag::{Action, Dag, Part, Task};
use fencepost_core::trigger_rule::TriggerRule;
use fencepost_import::{Imported, NoteKind, Source, dagu};

fn import(text: &str) -> Imported {
    dagu(&[source("flows/etl.yaml", text)], "Europe/Berlin")
}

fn task<'a>(dag: &'a Dag, id: &str) -> &'a Task {
    &dag.tasks[dag.index_of(id).unwrap_or_else(|| panic!("no {id}")).at()]
}

fn ups(dag: &Dag, id: &str) -> Vec<String> {
    task(dag, id).depends_on.iter().map(|up| dag.task(*up).unwrap().task_id.to_string()).collect()
}

fn needs(imported: &Imported) -> String {
    notes(imported, NoteKind::NeedsPerson).join("\n")
}

const ETL: &str = "\
description: Daily load
tags: [etl, daily]
schedule: \"CRON_TZ=America/New_York 5/20 2 */2 * 1\"
maxActiveRuns: 1
maxActiveSteps: 4
timeoutSec: 3600
histRetentionDays: 14
maxCleanUpTimeSec: 20
logDir: /var/log/dagu
params:
  - DAY: today
  - LIMIT: 10
env:
  - STAGE: prod
  - DATA: ${HOME}/data
steps:
  - name: extract data
    command: ./extract.sh --day $DAY
    dir: /srv/etl
    output: ROWS
    retryPolicy: {limit: 3, intervalSec: 30, exitCode: [1, 255]}
  - name: check
    command: test ${ROWS} -gt 0
    continueOn: {failure: true, skipped: true}
    preconditions:
      - condition: \"${STAGE}\"
        expected: prod
      - test -d /srv
  - name: load
    command: python3
    script: |
      print('loading')
    timeoutSec: 90
    stdout: /tmp/load.log
  - echo done
handlerOn:
  success: {command: echo ok}
  failure:
    command: ./alert.sh
  exit:
    command: rm -rf /tmp/x
  cancel: {command: echo cancelled}
";

#[test]
#[expect(clippy::too_many_lines, reason = "a whole file as text")]
fn a_whole_workflow() {
    let imported = import(ETL);
    dags(&imported);
    insta::assert_snapshot!(imported.files[0].text, @r#"
    # Imported from etl.yaml.
    # Needs a person: etl.yaml:42: cancel: {"command":"echo cancelled"}: nothing runs at that moment (make it a task: before the others, or at the end)
    dag_id: etl
    description: Daily load
    tags: [etl, daily]
    schedule: "5-59/20 2 1-31/2 * 1"
    timezone: America/New_York
    catchup: next
    is_paused_upon_creation: true
    max_active_runs: 1
    overlap: skip
    max_active_tasks: 4
    dagrun_timeout: "1h"
    retention: "14d"
    params:
      DAY: today
      LIMIT: 10
    env:
      DAY: "{{ params.DAY }}"
      LIMIT: "{{ params.LIMIT }}"
      STAGE: prod
    default_args:
      kill_grace: "20s"

    tasks:
      extract_data:
        run: |
          export DATA="${HOME}/data"
          set +e
          (
          set -e
          ./extract.sh --day $DAY
          ) >"$FENCEPOST_TMP_DIR/stdout"
          rc=$?
          set -e
          cat "$FENCEPOST_TMP_DIR/stdout"
          [ $rc -eq 0 ] || exit $rc
          {
            echo 'ROWS<<END_OF_OUTPUT'
            printf '%s\n' "$(cat "$FENCEPOST_TMP_DIR/stdout")"
            echo END_OF_OUTPUT
          } >>"$FENCEPOST_OUTPUT_FILE"
        shell: [sh, "-e"]
        working_dir: /srv/etl
        outputs:
          ROWS: string
        retries: 3
        retry_delay: "30s"
        retry_policy:
          - {exit_codes: [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153, 154, 155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 174, 175, 176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190, 191, 192, 193, 194, 195, 196, 197, 198, 199, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254], action: fail, reason: not among the exit codes that are tried again}
      check:
        depends_on: [extract_data]
        run: |
          export DATA="${HOME}/data"
          [ "${STAGE}" = prod ] || exit 99
          test -d /srv || exit 99
          test ${ROWS} -gt 0
        shell: [sh, "-e"]
        env:
          ROWS: "{{ outputs[\"extract_data\"].ROWS }}"
      load:
        depends_on: [check]
        trigger_rule: all_done
        run: |
          export DATA="${HOME}/data"
          exec >/tmp/load.log
          python3 <<'STDIN'
          print('loading')
          STDIN
        shell: [sh, "-e"]
        execution_timeout: "1m30s"
      step_4:
        depends_on: [load]
        run: |
          export DATA="${HOME}/data"
          echo done
        shell: [sh, "-e"]
      on_success:
        depends_on: [step_4]
        trigger_rule: all_success
        teardown: true
        run: |
          export DATA="${HOME}/data"
          echo ok
        shell: [sh, "-e"]
      on_failure:
        depends_on: [extract_data, check, load, step_4]
        trigger_rule: one_failed
        teardown: true
        run: |
          export DATA="${HOME}/data"
          ./alert.sh
        shell: [sh, "-e"]
      on_exit:
        depends_on: [step_4, on_success, on_failure]
        trigger_rule: all_done
        teardown: true
        run: |
          export DATA="${HOME}/data"
          rm -rf /tmp/x
        shell: [sh, "-e"]
    "#);
    insta::assert_snapshot!(needs(&imported), @r#"
    flows/etl.yaml:42 cancel: {"command":"echo cancelled"} -> nothing runs at that moment; make it a task: before the others, or at the end
    "#);
}

#[test]
fn steps_handlers_and_times_of_a_whole_workflow() {
    let dag = dags(&import(ETL)).remove(0);
    assert_eq!(dag.dag_id.as_str(), "etl");
    assert_eq!(ups(&dag, "check"), ["extract_data"]);
    assert_eq!(task(&dag, "load").trigger_rule, TriggerRule::AllDone);
    assert_eq!(
        (task(&dag, "on_failure").part, task(&dag, "on_failure").trigger_rule),
        (Part::Teardown, TriggerRule::OneFailed)
    );
    assert_eq!(ups(&dag, "on_exit"), ["step_4", "on_success", "on_failure"]);
    // Either the days or Monday, as robfig/cron has it: 2026-01-01 is one of the days.
    assert_eq!(instants(&dag, "2026-01-01T00:00:00Z", 1), ["2026-01-01T07:05:00.000Z"]);
}

#[test]
fn steps_in_a_chain_in_a_graph_and_at_once() {
    let of = |text: &str, id: &str| {
        let imported = import(text);
        let dag = dags(&imported).remove(0);
        ups(&dag, id)
    };
    let none: [&str; 0] = [];
    let plain = "steps:\n  - name: a\n    command: x\n  - name: b\n    command: x\n  - name: c\n    command: x\n    depends: a\n";
    assert_eq!(of(plain, "b"), ["a"]);
    assert_eq!(of(plain, "c"), ["a", "b"]);
    let graph = format!("type: graph\n{plain}");
    assert_eq!(of(&graph, "b"), none);
    assert_eq!(of(&graph, "c"), ["a"]);
    // A step before the one that it depends on: an older file, a graph.
    let older = "steps:\n  - {name: a, command: x, depends: [b]}\n  - {name: b, command: x}\n";
    assert_eq!((of(older, "a"), of(older, "b")), (vec!["b".to_owned()], vec![]));
    let nested =
        "steps:\n  - echo 1\n  -\n    - echo 2\n    - {name: p, command: echo 3}\n  - echo 4\n";
    assert_eq!(of(nested, "p"), ["step_1"]);
    assert_eq!(of(nested, "step_3"), ["step_2", "p"]);
    let map = "steps: {a: {command: x}, b: {command: [echo, 'a b', $HOME], depends: [a]}, c: {command: [echo, hi]}}\n";
    assert_eq!(of(map, "b"), ["a"]);
    let imported = import(map);
    let dag = dags(&imported).remove(0);
    assert_eq!(task(&dag, "c").action, Action::Command(vec!["echo".into(), "hi".into()]));
    assert_eq!(task(&dag, "b").action, Action::Run("echo 'a b' \"$HOME\"\n".into()));
}

#[test]
fn params_without_names_are_arguments() {
    let imported = import(
        "params: foo \"b c\"\nsteps:\n  - echo $1 $2\n  - {name: free, command: x, depends: []}\n",
    );
    let dag = dags(&imported).remove(0);
    let names: Vec<&str> = dag.params.iter().map(|param| param.name.as_str()).collect();
    assert_eq!(names, ["ARG_1", "ARG_2"]);
    let Action::Run(script) = &task(&dag, "step_1").action else { panic!() };
    assert_eq!(script, "set -- \"$ARG_1\" \"$ARG_2\"\necho $1 $2\n");
    assert!(ups(&dag, "free").is_empty());
    for odd in ["params: foo A=b", "params: ['`date`']"] {
        let imported = import(&format!("{odd}\nsteps: [echo hi]\n"));
        dags(&imported);
        assert_eq!(notes(&imported, NoteKind::NeedsPerson).len(), 1, "{odd} {:?}", imported.notes);
    }
}

#[test]
fn another_workflow_is_started_and_waited_for() {
    let imported = import(
        "params: {DAY: x}\nsteps:\n  - {name: sub, call: child flow, params: \"DAY=${DAY} MODE=full\"}\n  - {name: after, command: x}\n---\nname: child flow\nsteps: [echo hi]\n",
    );
    let dags = dags(&imported);
    let Action::TriggerDag(trigger) = &task(&dags[0], "sub.start").action else { panic!() };
    assert_eq!(
        (trigger.dag_id.as_str(), trigger.run_id.as_deref()),
        ("child_flow", Some("{{ run_id }}_sub"))
    );
    assert_eq!(trigger.params[0].1, "{{ params.DAY }}");
    assert_eq!(
        (ups(&dags[0], "sub"), ups(&dags[0], "after")),
        (vec!["sub.start".to_owned()], vec!["sub".to_owned()])
    );
    assert_eq!(dags[1].dag_id.as_str(), "child_flow");
    assert!(
        needs(&imported).contains("etl.yaml:6 child flow -> its name became child_flow"),
        "{}",
        needs(&imported)
    );
}

#[test]
fn newer_spellings_and_types() {
    let imported = import(
        "\
type: graph
labels: env=prod team=data
schedule:
  start: [\"0 8 * * MON-FRI\"]
  stop: \"0 18 * * MON-FRI\"
catchup_window: 6h
overlap_policy: all
working_dir: /srv
defaults: {timeout_sec: 60}
params:
  - {name: region, type: string, enum: [eu, us], default: eu}
preconditions: [{condition: \"`date +%u`\", expected: \"re:[1-5]\"}]
steps:
  - {id: go, exec: {command: /bin/echo, args: [a, 1]}}
  - {id: ok, command: x, approval: {prompt: \"Ship it?\"}, depends: go}
  - {id: ship, command: y, depends: [ok], continue_on: {exit_code: [3], mark_success: true}}
  - {id: http, type: http, command: GET https://example.com, depends: [go]}
  - {id: many, call: child, parallel: [1, 2]}
  - {id: box, command: x, container: {image: alpine}}
  - {id: loop, command: x, repeat_policy: {repeat: while, interval_sec: 5}}
  - {id: uses, command: \"echo ${go.stdout}\"}
  - {id: sig, command: x, signal_on_stop: SIGINT, mail_on_error: true, whatever: 1}
secrets: [{name: A, provider: env, key: B}, {name: C, provider: file, key: /run/c}, {name: D, provider: vault, key: d}]
",
    );
    assert_eq!(imported.files.len(), 1, "{}", needs(&imported));
    let dag = dags(&imported).remove(0);
    assert_eq!((dag.timing.timezone.as_str(), dag.tags.len()), ("Europe/Berlin", 2));
    assert_eq!(ups(&dag, "go"), ["preconditions"]);
    assert_eq!(
        (ups(&dag, "ok"), ups(&dag, "ship")),
        (vec!["ok.work".to_owned()], vec!["ok".to_owned()])
    );
    assert!(matches!(task(&dag, "ok").action, Action::Wait(_)));
    let Action::Run(script) = &task(&dag, "ship").action else { panic!() };
    assert!(script.contains("case $rc in 0|3) ;; *) exit $rc ;; esac"), "{script}");
    assert!(task(&dag, "go").times.execution_timeout.is_some());
    let text = &imported.files[0].text;
    assert!(text.contains("A: \"env:B\"") && text.contains("C: \"file:/run/c\""), "{text}");
    let found = needs(&imported);
    for part in [
        "stop: 0 18 * * MON-FRI -> a schedule starts runs, and stops none",
        "http: type http -> nothing here is like it",
        "many: call: child -> nothing here is like it",
        "box: container: {\"image\":\"alpine\"} -> nothing here is like it",
        "loop: repeat_policy: {\"repeat\":\"while\",\"interval_sec\":5} -> nothing here is like it",
        "uses -> a reference such as ${step.stdout}",
        "signal_on_stop: SIGINT -> a task gets SIGTERM",
        "mail_on_error: true -> mails are callbacks here",
        "whatever: 1 -> no key of a task is like it",
        "secrets: {\"name\":\"D\",\"provider\":\"vault\",\"key\":\"d\"} -> it is in a place that is not known here",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
}

#[test]
fn files_that_are_wrong() {
    for (text, line) in [("steps: [", 1), ("- a", 1), ("name: a\nname: b", 2)] {
        let imported = import(text);
        assert!(imported.files.is_empty(), "{text}");
        assert_eq!(
            imported.notes.iter().find(|n| n.kind == NoteKind::Unreadable).map(|n| n.line),
            Some(line),
            "{text}"
        );
    }
    let imported = import(
        "type: graph\nsteps:\n  - {name: a, command: x, depends: [b]}\n  - {name: b, command: x, depends: [a]}\n",
    );
    assert!(
        imported.files.is_empty() && needs(&imported).contains("in a circle: a -> b -> a"),
        "{}",
        needs(&imported)
    );
    let imported = import("steps: []\n");
    assert!(
        imported.files.is_empty() && needs(&imported).contains("no file was written"),
        "{}",
        needs(&imported)
    );
    let imported = import("steps:\n  - {name: a, depends: [nobody]}\n");
    dags(&imported);
    assert!(needs(&imported).contains("there is no such step"));
    let both = [
        Source { name: "a.yaml", bytes: b"steps: [x]" },
        Source { name: "b/a.yaml", bytes: b"steps: [y]" },
    ];
    let ids: Vec<String> = dagu(&both, "UTC").files.into_iter().map(|file| file.dag_id).collect();
    assert_eq!(ids, ["a", "a_2"]);
}
