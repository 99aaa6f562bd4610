//! What templates use is checked when the file is, at the place where it is written.

use super::{findings, task};

fn check(text: &str, expected: &[&str]) {
    assert_eq!(findings(text), expected, "{text}");
}

fn check_task(lines: &str, expected: &[&str]) {
    check(&task(lines), expected);
}

#[test]
fn places_within_block_scalars_quotes_and_flow() {
    let syntax = "error [template-syntax] `run`: unexpected end of variable block, \
                  expected identifier or integer | see the template syntax of Jinja";
    check_task("run: |\n  echo one\n\n    echo {{ ds. }}", &[&format!("6:21 {syntax}")]);
    check_task("run: \"{{ ds. }}\"", &[&format!("3:18 {syntax}")]);
    check_task(
        "run: |\n\n  é {{ nope }}",
        &["5:12 error [unknown-name] `nope` is not defined in templates | "],
    );
    check_task(
        "run: >-\n  echo\n  {{ nope }}",
        &["5:10 error [unknown-name] `nope` is not defined in templates | "],
    );
    check_task(
        "command: [a, \"{{ dss }}\"]\nenv:\n  A: x{{ parms }}",
        &[
            "3:22 error [unknown-name] `dss` is not defined in templates | did you mean `ds`?",
            "5:14 error [unknown-name] `parms` is not defined in templates | did you mean `params`?",
        ],
    );
}

#[test]
fn names_of_other_times() {
    check_task(
        "run: echo {{ execution_date }} {{ tomorrow_ds }}",
        &[
            "3:18 error [unknown-name] `execution_date` is not defined in templates | \
         write {{ logical_date }}",
            "3:39 error [unknown-name] `tomorrow_ds` is not defined in templates | \
         write {{ macros.ds_add(ds, 1) }}",
        ],
    );
    check_task(
        "run: echo {{ inlets }}- {{ macros.uuid() }} {{ ds | fromat }}",
        &[
            "3:18 error [not-supported-yet] `inlets` in templates is not supported yet | \
         use params or env",
            "3:32 error [unknown-name] there is no `macros.uuid` | ",
            "3:57 error [unknown-filter] there is no filter `fromat` | Jinja's, and ds, ds_nodash, \
         ts, ts_nodash, ts_nodash_with_tz, sh (quotes for the shell)",
        ],
    );
}

#[test]
fn names_of_its_own_are_known() {
    for script in [
        "{% for x in range(3) %}{{ x }} {{ loop.index }}{% endfor %}",
        "{% set a = ds %}{{ a }}",
        "{% for k, v in params.items() %}{{ k | sh }}{% endfor %}",
        "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}",
        "{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1) }}",
        "{{ ds if 1 is odd else ts }}",
        "{{ ti.xcom_pull('x') | sh }}",
        "${#x} ${x%.*} {#",
    ] {
        check_task(&format!("run: '{}'", script.replace('\'', "''")), &[]);
    }
    check_task(
        "run: 'echo {{ region }}'\nexpand: {region: [a]}\nmap_index_template: '{{ region }}'",
        &[],
    );
}

#[test]
fn conditions() {
    check_task(
        "run: x\nwhen: ds > ",
        &["4:14 error [template-syntax] `when`: unexpected end of input, expected expression | \
         see the template syntax of Jinja"],
    );
    check_task(
        "run: x\nwhen: \"{{ nope > 0 }}\"",
        &["4:15 error [unknown-name] `nope` is not defined in templates | "],
    );
    check_task("run: x\nwhen: ds > '2026-01-01'", &[]);
}

const OUTPUTS: &str = "\
tasks:
  a: {run: x, outputs: {rows: integer, path: string}}
  b: {run: x, depends_on: [a]}
  c: {run: 'echo {{ outputs.a.rows }}', depends_on: [b]}
";

#[test]
fn outputs_must_come_from_upstream() {
    check(OUTPUTS, &[]);
    check(
        &OUTPUTS.replace("outputs.a.rows", "outputs.a.row"),
        &["4:21 error [unknown-output] `a` declares no output `row` | did you mean `rows`?"],
    );
    check(
        &OUTPUTS.replace("outputs.a.rows", "outputs.x.rows"),
        &["4:21 error [unknown-task] there is no task `x` | "],
    );
    check(
        &OUTPUTS.replace("depends_on: [b]", ""),
        &["4:21 error [not-upstream] `a` does not come before `c` | add it: depends_on: [a]"],
    );
    check(
        &OUTPUTS.replace("outputs.a.rows", "outputs.c.rows"),
        &["4:21 error [not-upstream] `c` does not come before `c` | \
         a task has its outputs when it ends"],
    );
    check(
        &format!("env: {{A: '{{{{ outputs.a.rows }}}}'}}\n{OUTPUTS}"),
        &["1:14 error [not-upstream] `a` does not come before every task | \
         write this at the tasks that come after it"],
    );
}

#[test]
fn what_is_pasted_into_a_script() {
    let script = |template: &str| {
        let found = findings(&format!(
            "params: {{p: x, n: 1, b: true, l: {{type: array, default: []}}}}\ntasks:\n  a: {{run: x, outputs: {{o: string}}}}\n  t:\n    depends_on: [a]\n    run: '{template}'\n"
        ));
        found.join("\n")
    };
    assert_eq!(
        script("echo {{ params.p }}"),
        "6:19 warn [script-injection] params.p is pasted into `run` | \
         use \"$FENCEPOST_PARAM_P\" or `| sh`"
    );
    assert_eq!(
        script("{{ outputs.a.o }}"),
        "6:14 warn [script-injection] outputs.a.o is pasted into `run` | \
         use \"$FENCEPOST_INPUT_A_O\" or `| sh`"
    );
    assert_eq!(
        script("{{ dag_run.conf.x }}"),
        "6:14 warn [script-injection] dag_run.conf.x is pasted into `run` | \
         use `| sh`, or pass it through `env`"
    );
    for warned in [
        "{{ params.p | upper }}",
        "{{ \"x\" ~ params.p }}",
        "{{ params.p if params.b else 1 }}",
        "{% for x in params.l %}{{ x }}{% endfor %}",
        "{% set y = params.p %}{{ y }}",
        "{{ params[\"p\"] }}",
        "{{ params.l | join(\" \") }}",
    ] {
        assert!(script(warned).contains("[script-injection]"), "{warned}");
    }
    for silent in [
        "{{ params.p | sh }}",
        "{{ params.n }} {{ params.b }}",
        "{{ params.l | length }}",
        "{{ 1 if params.p == \"x\" else 2 }}",
        "{% if params.p %}x{% endif %}",
        "{% for x in params.l %}{{ x | sh }}{% endfor %}",
        "{{ ds }} {{ run_id }}",
    ] {
        assert_eq!(script(silent), "", "{silent}");
    }
}

#[test]
fn tasks_that_should_not_run_twice() {
    let warned = |lines: &str, name: &str| {
        let text = task(lines).replace("  t:\n", &format!("  {name}:\n"));
        findings(&text).join("\n")
    };
    assert_eq!(
        warned("command: [billing, charge]", "partner"),
        "3:5 warn [lost-retry] `partner` may run twice | \
         pass {{ ti.idempotency_key }}, or set on_lost: hold"
    );
    assert!(warned("run: curl -X POST https://x", "a").contains("lost-retry"));
    assert!(warned("run: ./x", "send_report").contains("lost-retry"));
    for lines in [
        "command: [billing, charge, --key, \"{{ ti.idempotency_key }}\"]",
        "command: [billing, charge]\non_lost: fail",
        "command: [billing, charge]\ninfra_retries: 0",
        "run: fencepost once x -- billing charge",
        "run: echo post-process; rm sender",
    ] {
        assert_eq!(warned(lines, "t"), "", "{lines}");
    }
}

#[test]
fn a_retention_below_a_run_s_length_or_its_interval() {
    let warned = |head: &str| findings(&format!("{head}\ntasks:\n  t: {{run: x}}\n")).join("\n");
    assert_eq!(
        warned("retention: 1h\ndagrun_timeout: 2h"),
        "1:12 warn [short-retention] `retention` 1h is shorter than `dagrun_timeout` 2h | \
         write `retention: 2h` or more"
    );
    assert!(warned("retention: 1h\nschedule: {every: 3h}").contains("shorter than `schedule` 3h"));
    assert_eq!(warned("retention: 1d\ndagrun_timeout: 2h\nschedule: {every: 3h}"), "");
}
