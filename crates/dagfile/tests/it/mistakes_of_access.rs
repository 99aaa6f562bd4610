//! Mistakes in what tasks are given: secrets, connections, variables in templates.

use super::{dag, findings, task};
use fencepost_core::dag::TaskIndex;
use fencepost_core::kept::Kind;

/// One task with these lines (each indented by 4) and all that is said about it.
fn check_task(lines: &str, expected: &[&str]) {
    let text = task(lines);
    assert_eq!(findings(&text), expected, "{text}");
}

const FORMS: &str = "write store:NAME, env:NAME, file:/PATH or exec:COMMAND";

#[test]
fn secrets() {
    check_task("run: x\nsecrets: {A: 'store:a', B: 'env:B', C: 'file:/c', D: 'exec:cat d'}", &[]);
    let wrong = [
        (
            "A: hunter22",
            "4:18 error [bad-value] secret `A`: it does not say where the value comes from",
        ),
        ("A: 'hunter:22'", "4:18 error [bad-value] secret `A`: it begins with no known backend"),
        ("A: 'store:'", "4:18 error [bad-value] secret `A`: nothing comes after `store:`"),
        ("A: 'file:c'", "4:18 error [bad-value] secret `A`: `file:` needs an absolute path"),
        (
            "A: 'env:FENCEPOST__SECRETS__KEYS'",
            "4:18 error [bad-value] secret `A`: a worker's own settings (FENCEPOST_...) are not for tasks",
        ),
        (
            "A: 'vault:kv/a#b'",
            "4:15 error [not-supported-yet] `vault:` in `secrets` is not supported yet",
        ),
    ];
    for (secret, said) in wrong {
        check_task(&format!("run: x\nsecrets: {{{secret}}}"), &[&format!("{said} | {FORMS}")]);
    }
    check_task(
        "run: x\nenv: {A: a}\nsecrets: {A: 'store:a', FENCEPOST_X: 'store:a', b-c: 'store:a', D: [x]}",
        &[
            "5:15 error [bad-name] `A` is in `env` and in `secrets` | leave one of them out",
            "5:29 error [bad-name] `FENCEPOST_X` is set by Fencepost itself | choose another name",
            "5:53 error [bad-name] `b-c` is not a name for a variable | \
             letters, digits and _, not beginning with a digit",
            "5:72 error [wrong-type] an item of `secrets` must be text such as store:NAME, not a list | ",
        ],
    );
}

#[test]
fn connections() {
    check_task("run: x\nconnections: [warehouse, s3.exports]", &[]);
    check_task(
        "run: x\nconnections: [a-b, a_b, 'x y', {a: b}]",
        &[
            "4:24 error [bad-name] `a-b` and `a_b` would be one environment variable | \
             leave one of them out",
            "4:29 error [bad-name] a connection cannot be `x y` | see  fencepost connections list",
            "4:36 error [wrong-type] an item of `connections` must be the name of a connection, not a mapping | ",
        ],
    );
}

#[test]
fn names_that_cannot_be_known_before_they_are_read() {
    for sound in
        ["{{ var.value.a | sh }}", "{{ var.json['a b'].c | int }}", "{{ conn.a.port | int }}"]
    {
        check_task(&format!("command: [echo, \"{sound}\"]"), &[]);
    }
    let dynamic = "write var.value.NAME or var.json.NAME";
    let one_piece = "a variable is named as it is, in one piece";
    for (template, column, said) in [
        ("{{ var.value[ds] }}", 25, format!("`var` stands for nothing by itself | {dynamic}")),
        ("{{ var.get }}", 25, format!("`var` stands for nothing by itself | {dynamic}")),
        (
            "{{ conn[ds].host }}",
            25,
            "`conn` stands for nothing by itself | \
          write conn.NAME, the name as it is"
                .into(),
        ),
        (
            "{{ var .value.a }}",
            25,
            format!("{one_piece} | {dynamic}, with `| default(...)` if it may be missing"),
        ),
        ("{{ var.value.get('a') }}", 25, format!("`var` stands for nothing by itself | {dynamic}")),
    ] {
        let expected = format!("3:{column} error [unknown-name] {said}");
        check_task(&format!("command: [echo, \"{template}\"]"), &[&expected]);
    }
    check_task(
        "run: echo {{ conn.a.password }}",
        &["3:18 warn [script-injection] conn.a.password is pasted into `run` | \
           use `| sh`, or pass it through `env`"],
    );
}

#[test]
fn what_a_task_is_given_goes_over_what_its_dag_gives() {
    let dag = dag(
        "secrets: {A: 'store:a', B: 'store:b'}\nconnections: [x]\nenv: {R: '{{ var.value.r }}'}\n\
         default_args: {secrets: {C: 'store:c'}}\ntasks:\n  t:\n    run: echo {{ conn.y.host | sh }}\n    \
         secrets: {A: 'env:A', C: 'store:d'}\n    connections: [x, z]\n",
    );
    let names = dag.kept_for(TaskIndex(0));
    let of = |wanted: Kind| -> Vec<&str> {
        names.iter().filter(|(kind, _)| *kind == wanted).map(|(_, name)| name.as_str()).collect()
    };
    assert_eq!(of(Kind::Secret), ["b", "d"]);
    assert_eq!(of(Kind::Connection), ["x", "y", "z"]);
    assert_eq!(of(Kind::Variable), ["r"]);
}

#[test]
fn what_the_store_keeps_as_it_is_rendered_may_not_be_secret() {
    let said = |field: &str, root: &str| {
        format!(
            "[secret-kept] `{field}` is kept as it is rendered, and `{root}` may be secret | \
             give it to a task that runs: env, secrets"
        )
    };
    for (lines, field, root) in [
        ("trigger_dag: {dag_id: o, params: {p: '{{ conn.a.password }}'}}", "trigger_dag", "conn"),
        ("wait: {http: 'https://x/{{ var.value.api_key }}'}", "wait", "var"),
        ("run: x\nexpand: {a: '{{ [conn.a.host] }}'}", "expand", "conn"),
    ] {
        let found = findings(&task(lines));
        let wanted = said(field, root);
        assert!(found.len() == 1 && found[0].ends_with(&wanted), "{found:#?}");
    }
    check_task("wait: {http: 'https://x/{{ var.value.region }}'}", &[]);
}
