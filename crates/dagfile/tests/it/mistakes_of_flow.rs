//! Mistakes in what a task does to others: mapping, triggers of other DAGs, setups and teardowns.

use super::{findings, task};

/// One task with these lines (each indented by 4) and all that is said about it.
fn check_task(lines: &str, expected: &[&str]) {
    let text = task(lines);
    assert_eq!(findings(&text), expected, "{text}");
}

#[test]
fn mapped_tasks() {
    check_task(
        "run: x\nexpand: {a: [], ds: [1], b-c: [1], d: x, e: \"{{ params.x }}\", f: [\"{{ ds }}\"], g: \"a {{ x }}\"}",
        &[
            "4:17 error [bad-value] `a` is an empty list, so there would be no instance | \
         leave `expand` out, or fill it",
            "4:21 error [bad-name] `ds` has a meaning in templates already | choose another name",
            "4:30 error [bad-name] `b-c` is not a name for a mapped value | \
         letters, digits and _, not beginning with a digit",
            "4:43 error [wrong-type] `d` must be a list, not the text `x` | write [a, b, c]",
            "4:53 error [unknown-param] there is no param `x` | declare it under `params`",
            "4:71 error [bad-value] an element of a list cannot be a template | \
         write one template that gives the whole list: \"{{ [a, b] }}\"",
            "4:87 error [bad-value] `g` must be one template and nothing else | \
         write \"{{ params.regions }}\" or \"{{ outputs.task.name }}\"",
        ],
    );
    let list: Vec<String> = (0..400).map(|i| i.to_string()).collect();
    let list = list.join(", ");
    check_task(
        &format!("run: x\nexpand:\n  a: [{list}]\n  b: [{list}]"),
        &["4:5 error [too-many-instances] `expand` makes 160000 instances | the most is 100000"],
    );
}

#[test]
fn triggers_of_other_dags() {
    for sound in [
        "trigger_dag: other",
        "trigger_dag: {dag_id: '{{ ds }}', run_id: 'x{{ ds }}', params: {n: '{{ 1 }}', m: [1]}}",
    ] {
        check_task(sound, &[]);
    }
    check_task(
        "trigger_dag: {dag: other}",
        &[
            "3:5 error [bad-value] `trigger_dag` names no DAG | give it a `dag_id`",
            "3:19 error [unknown-key] unknown key `dag` | one of dag_id, run_id, \
             logical_date, params",
        ],
    );
    check_task(
        "trigger_dag: {dag_id: other, params: {n: '{{ params.what }}'}}",
        &["3:50 error [unknown-param] there is no param `what` | declare it under `params`"],
    );
}

#[test]
fn setups_and_teardowns() {
    check_task(
        "run: x\nsetup: true\nteardown: true",
        &[
            "5:5 error [bad-value] a task is either a `setup` or a `teardown` | leave one of them out",
        ],
    );
}
