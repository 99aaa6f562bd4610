//! Each mistake: its place, its words, its mend; and one mistake is one error.

use super::{findings, task};

/// A file and all that is said about it.
pub(crate) fn check(text: &str, expected: &[&str]) {
    assert_eq!(findings(text), expected, "{text}");
}

/// One task with these lines (each indented by 4) and all that is said about it.
fn check_task(lines: &str, expected: &[&str]) {
    check(&task(lines), expected);
}

#[test]
fn six_mistakes_are_six_diagnostics() {
    let text = "\
dag_id: sales
schedule: \"0 25 * * *\"
timezone: Europe/Berlim
tasks:
  extract:
    run: echo hi
    retries: \"3\"
  load:
    need: [extract]
    run: echo {{ params.regoin }}
  publish:
    depends_on: [lod]
    command: [publish]
";
    check(
        text,
        &[
            "2:11 error [bad-cron] `25` in the hour field: 25 is not in 0 to 23 | \
         minute hour day-of-month month day-of-week, such as \"0 5 * * MON-FRI\"",
            "3:11 error [unknown-timezone] unknown time zone `Europe/Berlim` | \
         did you mean `Europe/Berlin`?",
            "7:14 error [wrong-type] `retries` must be a whole number, not the text `3` | write 3",
            "9:5 error [unknown-key] unknown key `need` | did you mean `depends_on`?",
            "10:18 error [unknown-param] there is no param `regoin` | declare it under `params`",
            "12:18 error [unknown-task] `publish` depends on `lod` | \
         no such task; did you mean `load`?",
        ],
    );
}

#[test]
fn a_file_that_is_no_dag() {
    let empty = "1:1 error [no-dag] the file is empty | \
                 the smallest DAG is `tasks: {hello: {run: echo}}`";
    check("", &[empty]);
    check("# nothing\n", &[empty]);
    check("--- ~\n", &[empty]);
    check(
        "- a\n",
        &["1:1 error [no-dag] a DAG file is a mapping, not a list | begin with `tasks:`"],
    );
    check(
        "hello",
        &["1:1 error [no-dag] a DAG file is a mapping, not the text `hello` | begin with `tasks:`"],
    );
    check(
        "dag_id: x\n",
        &["1:1 error [no-tasks] there are no tasks | write `tasks: {hello: {run: echo hello}}`"],
    );
    check(
        "tasks:\n",
        &["1:1 error [no-tasks] `tasks` is empty | a task is `name: {run: command}`"],
    );
    check(
        "tasks: {}\n",
        &["1:1 error [no-tasks] `tasks` is empty | a task is `name: {run: command}`"],
    );
    check(
        "steps:\n  a: {run: x}\n",
        &["1:1 error [unknown-key] unknown key `steps` | did you mean `tasks`?"],
    );
    check(
        "tasks:\n  - name: a\n",
        &["2:3 error [wrong-type] `tasks` must be a mapping of tasks by name, not a list | \
         write `name: {run: command}`, without a dash before the name"],
    );
}

#[test]
fn yaml_itself() {
    check("tasks: [1\n", &["1:8 error [yaml-syntax] unclosed bracket '[' | "]);
    check(
        "tasks:\n\ta: 1\n",
        &["2:2 error [yaml-syntax] tabs disallowed within this context (block indentation) | "],
    );
    check(
        "tasks: {a: {run: x}}\n---\ntasks: {}\n",
        &["2:1 error [one-document] a second document begins here; a file holds one DAG | \
         move it to its own file"],
    );
    check(
        "tasks:\n  a: {run: x}\n  a: {run: y}\n",
        &["3:3 error [duplicate-key] `a` is given twice | it is first on line 2"],
    );
    check(
        "tasks:\n  a: {run: x}\n? [1, 2]\n: x\n",
        &["3:3 error [bad-key] a key must be text, not a list or a mapping | \
         write it on one line, quoted"],
    );
    check(
        "tasks:\n  a: {run: *x}\n",
        &["2:12 error [yaml-syntax] while parsing node, found unknown anchor | "],
    );
    check(
        "tasks: &x\n  a: {run: x}\n  b: *x\n",
        &["3:6 error [yaml-syntax] this alias stands within what it stands for | "],
    );
    check(
        "tasks:\n  a: {<<: 1, run: x}\n",
        &["2:11 error [bad-merge] `<<` merges a mapping, not the number 1 | write `<<: *anchor`"],
    );
    check(
        "tasks:\n  a: {run: !exec x}\n",
        &["2:12 error [yaml-tag] the tag `!exec` does not fit here | \
         leave the tag out, or quote the text"],
    );
}

#[test]
fn templates_without_quotes() {
    let hint = "a value that begins with `{{` must be quoted: \"{{ ... }}\"";
    let braced = |place| {
        format!("{place} error [unquoted-template] `{{{{` begins a YAML mapping here | {hint}")
    };
    check_task("run: {{ ds }}", &[&braced("3:10")]);
    check_task("command: [a, {{ ds }}]\nwhen: {{ ds }}", &[&braced("3:18"), &braced("4:11")]);
    check_task("run: x\nwhen: {{ ds }} > 1", &[&braced("4:11")]);
}

#[test]
fn names_and_keys() {
    check(
        "dag_id: a b\ntasks: {a: {run: x}}\n",
        &["1:9 error [bad-name] `dag_id` cannot be `a b` | \
         1 to 200 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash"],
    );
    check(
        "tasks: {a/b: {run: x}}\n",
        &["1:9 error [bad-name] `a/b` is not a name for a task | \
         1 to 200 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash"],
    );
    check(
        "run: x\ntasks: {a: {tags: [x], run: x}}\ndefault_args: {run: x, retires: 1}\n",
        &[
            "1:1 error [unknown-key] unknown key `run` | it belongs to a task",
            "2:13 error [unknown-key] unknown key `tags` | it belongs to the top of the file",
            "3:16 error [unknown-key] unknown key `run` | it belongs to each task, not to `default_args`",
            "3:24 error [unknown-key] unknown key `retires` | did you mean `retries`?",
        ],
    );
    check(
        "schema: 2\ntasks: {a: {run: x}}\n",
        &["1:9 error [bad-value] `schema` is the number 2 | \
         this program reads version 1: write `schema: 1`"],
    );
    let parsed = fencepost_dagfile::parse(b"tasks: {a: {run: x}}", "-");
    assert_eq!(
        super::shown(&parsed.diagnostics),
        ["1:1 error [no-dag-id] the file's name gives no DAG id: `-` | write a `dag_id`",]
    );
}

#[test]
fn actions() {
    check(
        "tasks:\n  a:\n",
        &[
            "2:3 error [no-action] `a` does nothing | give it one of run, command, python, http, wait, trigger_dag, noop: true",
        ],
    );
    check(
        "tasks:\n  a: echo\n",
        &[
            "2:6 error [wrong-type] `a` must be a mapping, not the text `echo` | write {run: command}",
        ],
    );
    check_task(
        "run: x\ncommand: [x]",
        &["4:5 error [two-actions] `t` has both `run` and `command` | a task does one thing"],
    );
    check_task("run:", &["3:5 error [no-action] `run` is empty | write the script, or noop: true"]);
    check_task(
        "run: 5",
        &["3:10 error [wrong-type] `run` must be text, not the number 5 | write \"5\""],
    );
    check_task(
        "command: []",
        &["3:5 error [no-action] `command` names no program | write [program, argument, ...]"],
    );
    check_task(
        "command: echo",
        &["3:14 error [wrong-type] `command` must be a list, not the text `echo` | write [echo]"],
    );
    check_task(
        "noop: false",
        &["3:11 error [bad-value] `noop` can only be true | leave it out and say what to do"],
    );
    check_task("rnu: x", &["3:5 error [unknown-key] unknown key `rnu` | did you mean `run`?"]);
    check_task(
        "sql: x",
        &["3:5 error [not-supported-yet] `sql` is not supported yet | leave it out for now"],
    );
    check_task("python: pkg.mod:Loads.run", &[]);
    check_task(
        "python: m",
        &["3:13 error [bad-value] `python` cannot be `m` | write module:function, such as \
         sales.load:run"],
    );
}

#[test]
fn values_of_every_shape() {
    check_task(
        "run: x\nretries: -1",
        &["4:14 error [out-of-range] `retries` is -1 | it must be from 0 to 1000000"],
    );
    check_task(
        "run: x\nretries: 1.5\npool_slots: 0\npriority_weight: many",
        &[
            "4:14 error [wrong-type] `retries` must be a whole number, not the number 1.5 | ",
            "5:17 error [out-of-range] `pool_slots` is 0 | it must be from 1 to 1000000",
            "6:22 error [wrong-type] `priority_weight` must be a whole number, not the text `many` | ",
        ],
    );
    check_task(
        "run: x\nretries: 03",
        &["4:14 error [wrong-type] `retries` must be a whole number, not the text `03` | write 3"],
    );
    check_task(
        "run: x\nretry_delay: 300\nkill_grace: soon\nexecution_timeout: 0s",
        &[
            "4:18 error [bad-duration] `retry_delay` must be a duration, not the number 300 | \
         write 300s if you mean seconds",
            "5:17 error [bad-duration] `kill_grace` must be a duration, not the text `soon` | \
         write it as 30s, 5m, 1h30m or PT1H30M",
            "6:24 error [out-of-range] `execution_timeout` is no time at all | \
         leave it out for none, or write a duration such as 5m",
        ],
    );
}

#[test]
fn words_lists_and_names() {
    check_task(
        "run: x\ntrigger_rule: all_sucess\ndepends_on_past: yes\non_lost: ignore",
        &[
            "4:19 error [bad-value] `trigger_rule` cannot be `all_sucess` | did you mean `all_success`?",
            "5:22 error [wrong-type] `depends_on_past` must be true or false, not the text `yes` | \
         write true",
            "6:14 error [bad-value] `on_lost` cannot be `ignore` | one of retry, hold, fail",
        ],
    );
    check_task(
        "run: x\ndepends_on: a\nqueue: [x]\npool: a/b",
        &[
            "4:17 error [wrong-type] `depends_on` must be a list, not the text `a` | write [a]",
            "5:12 error [wrong-type] `queue` must be text, not a list | ",
            "6:11 error [bad-name] `pool` cannot be `a/b` | \
         1 to 200 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash",
        ],
    );
    check_task(
        "run: x\nskip_exit_codes: [0, 256, x]\nshell: []\nrun_as_user: -x",
        &[
            "4:23 error [out-of-range] 0 is no exit code for `skip_exit_codes` | from 1 to 255",
            "4:26 error [out-of-range] 256 is no exit code for `skip_exit_codes` | from 1 to 255",
            "4:31 error [wrong-type] an item of `skip_exit_codes` must be an exit code, \
         not the text `x` | ",
            "5:12 error [wrong-type] `shell` must be a program, not a list | \
         write bash, or [python3, -u]",
            "6:18 error [bad-name] `run_as_user` cannot be `-x` | \
         the name of a user of the worker's machine",
        ],
    );
    check_task(
        "run: x\nenv: {FENCEPOST_X: 1, 1A: 2, B: [1]}\noutputs: {a: str, b-c: string}",
        &[
            "4:11 error [bad-name] `FENCEPOST_X` is set by Fencepost itself | choose another name",
            "4:27 error [bad-name] `1A` is not a name for a variable | \
         letters, digits and _, not beginning with a digit",
            "4:37 error [wrong-type] an item of `env` must be text, not a list | ",
            "5:18 error [bad-value] an output's type cannot be the text `str` | \
         one of string, integer, number, boolean, array, object",
            "5:23 error [bad-name] `b-c` is not a name for an output | \
         letters, digits and _, not beginning with a digit",
        ],
    );
}

#[test]
fn retry_policies() {
    check_task(
        "run: x\nretry_policy:\n  - {exit_codes: [2], action: stop}\n  - {exit_code: [2]}\n  - {}\n  - {exit_codes: [3], action: fail, delay: 5m}\n  - x",
        &[
            "5:35 error [bad-value] `action` cannot be the text `stop` | one of fail, retry",
            "6:10 error [unknown-key] unknown key `exit_code` | did you mean `exit_codes`?",
            "7:9 error [missing-key] a rule needs `exit_codes` and an `action` | \
         {exit_codes: [2], action: fail}",
            "8:41 error [bad-value] a `delay` with `action: fail` | leave the delay out",
            "9:9 error [wrong-type] an item of `retry_policy` must be a mapping such as \
         {exit_codes: [2], action: fail}, not the text `x` | ",
        ],
    );
}

#[test]
fn schedules() {
    let schedule = |value: &str, expected: &str| {
        check(&format!("schedule: {value}\ntasks: {{a: {{run: x}}}}\n"), &[expected]);
    };
    schedule(
        "15m",
        "1:11 error [bad-cron] `15m` has 1 of the 5 fields of a cron expression | \
        write {every: 15m}",
    );
    schedule(
        "'@dayly'",
        "1:11 error [bad-cron] unknown schedule name `@dayly` | \
        did you mean `@daily`?",
    );
    schedule(
        "'@once'",
        "1:11 error [bad-cron] unknown schedule name `@once` | \
        write {at: 2026-12-31T23:00:00Z}",
    );
    schedule(
        "0 0 31 2 *",
        "1:11 error [bad-cron] `0 0 31 2 *` never happens | \
        no month has such a day",
    );
    schedule(
        "[]",
        "1:11 error [bad-value] `schedule` is an empty list | \
        write null for no schedule",
    );
    schedule(
        "[\"0 5 * * *\", \"61 * * * *\"]",
        "1:25 error [bad-cron] `61` in the minute field: 61 is not in 0 to 59 | \
        minute hour day-of-month month day-of-week, such as \"0 5 * * MON-FRI\"",
    );
    schedule("{evry: 15m}", "1:12 error [unknown-key] unknown key `evry` | did you mean `every`?");
    schedule(
        "{every: 10}",
        "1:19 error [bad-duration] `every` must be a duration, \
        not the number 10 | write 10s if you mean seconds",
    );
    schedule(
        "{every: 1ms}",
        "1:19 error [out-of-range] an interval of `1ms` is too short | \
        the shortest is 1s",
    );
    schedule(
        "{at: noon}",
        "1:16 error [bad-date] `at` must be a date or an instant, \
        not the text `noon` | write 2026-01-31 or 2026-01-31T05:00:00Z",
    );
    schedule(
        "5",
        "1:11 error [wrong-type] `schedule` must be a cron expression, a list of them, \
        or a mapping, not the number 5 | write a cron expression such as \"0 5 * * *\"",
    );
}

#[test]
fn a_task_that_may_outlive_its_lease_is_not_replaced_after_it() {
    let text = "2:30 error [keep-replaced] `on_disconnect: keep` would let a task run beside its \
                replacement | add on_lost: hold or replace: after_confirmed_dead";
    check("tasks:\n  a: {run: x, on_disconnect: keep}\n", &[text]);
    check("tasks:\n  a: {run: x, on_disconnect: keep, on_lost: hold}\n", &[]);
    check("tasks:\n  a: {run: x, on_disconnect: keep, replace: after_confirmed_dead}\n", &[]);
}

#[test]
fn resources() {
    let of = |text: &str| format!("tasks:\n  a: {{run: x, resources: {text}}}\n");
    check(&of("{cpu: 2, memory: 4Gi}"), &[]);
    check(
        &of("{cpu: many, memory: 4GB, mem: 1}"),
        &[
            "2:32 error [bad-value] `cpu` cannot be the text `many` | \
         a number of cores such as 2, 0.5 or 500m",
            "2:46 error [bad-value] `memory` cannot be the text `4GB` | \
         bytes, at least 1Mi, such as 512Mi or 4Gi",
            "2:51 error [unknown-key] unknown key `mem` | `cpu` and `memory`",
        ],
    );
}

#[test]
fn params() {
    check(
        "params:\n  a: {type: strng}\n  b: {type: integer, default: x}\n  c: {defualt: 1}\n  d: {type: string, pattern: '(?=x)'}\n  e: {enum: []}\n  1f: 2\n  g: .nan\ntasks: {t: {run: x}}\n",
        &[
            "2:13 error [bad-value] a param's type cannot be the text `strng` | did you mean `string`?",
            "3:31 error [bad-param] the default of `b` does not fit: must be integer, is string | ",
            "4:7 error [unknown-key] unknown keyword `defualt` | did you mean `default`?",
            "5:30 error [bad-param] `pattern` must be a regular expression (without look-around and back-references) | ",
            "6:13 error [bad-param] `enum` must be a list with values | ",
            "7:3 error [bad-name] `1f` is not a name for a param | \
         letters, digits and _, not beginning with a digit",
            "8:6 error [bad-value] this number cannot be passed on | \
         not .inf, .nan or beyond 64 bits; quote it as text",
        ],
    );
    check(
        "schedule: '@daily'\nparams: {a: {type: string}}\ntasks: {t: {run: x}}\n",
        &["2:10 error [no-default] `a` has no default, and the DAG runs by schedule | \
         give it a `default`"],
    );
}

/// Two names that become one variable of a task's environment.
#[test]
fn names_that_differ_only_in_case() {
    check(
        "params: {a: 1, A: 2}\ntasks: {t: {run: x, outputs: {o: string, O: string}}}\n",
        &[
            "1:16 error [bad-name] `a` and `A` would be one environment variable | \
             choose another name",
            "2:42 error [bad-name] `o` and `O` would be one environment variable | \
             choose another name",
        ],
    );
}

#[test]
fn edges() {
    check(
        "tasks:\n  a: {run: x, depends_on: [c]}\n  b: {run: x, depends_on: [a]}\n  c: {run: x, depends_on: [b]}\n",
        &["2:28 error [cycle] the tasks depend on each other in a circle: a -> c -> b -> a | \
         each waits for the next; take one of these edges out"],
    );
    check(
        "tasks:\n  a: {run: x, depends_on: [a]}\n",
        &["2:28 error [cycle] `a` depends on itself | leave it out"],
    );
    // A task that could not be read is no second mistake of those that name it.
    check(
        "tasks:\n  a: echo\n  b: {run: x, depends_on: [a]}\n",
        &[
            "2:6 error [wrong-type] `a` must be a mapping, not the text `echo` | write {run: command}",
        ],
    );
}

#[test]
fn a_mistake_in_an_anchor_or_in_defaults_is_reported_once() {
    check(
        "tasks:\n  a: &a {run: x, retries: -1}\n  b: *a\n  c: {<<: *a, run: y}\n",
        &["2:27 error [out-of-range] `retries` is -1 | it must be from 0 to 1000000"],
    );
    check(
        "default_args: {retries: x}\ntasks:\n  a: {run: x, retries: 1}\n  b: {run: y}\n",
        &["1:25 error [wrong-type] `retries` must be a whole number, not the text `x` | "],
    );
}

#[test]
fn what_a_file_says_cannot_forge_lines() {
    let found = findings("tasks: {t: {run: x}}\n\"a\\nerror\\e[31m\": 1\n");
    assert_eq!(found, ["2:1 error [unknown-key] unknown key `a\\nerror\\u{1b}[31m` | "]);
}
