//! Task groups: ids, names, edges from and to groups, defaults, mistakes.

use super::{dag, findings};
use fencepost_core::dag::Dag;
use fencepost_dagfile::{content_hash, from_ir, ir};

/// `task <- upstreams` of each task that has some.
fn edges(text: &str) -> Vec<String> {
    edges_of(&dag(text))
}

fn edges_of(dag: &Dag) -> Vec<String> {
    let name =
        |index: &fencepost_core::dag::TaskIndex| dag.task(*index).unwrap().task_id.to_string();
    let line = |task: &fencepost_core::dag::Task| {
        let up: Vec<String> = task.depends_on.iter().map(name).collect();
        format!("{} <- {}", task.task_id, up.join(" "))
    };
    dag.tasks.iter().filter(|task| !task.depends_on.is_empty()).map(line).collect()
}

const NESTED: &str = "\
tasks:
  a: {noop: true}
  z: {noop: true, depends_on: [g]}
task_groups:
  g:
    tooltip: outer
    depends_on: [a]
    tasks:
      x: {noop: true}
      y: {noop: true, depends_on: [x, inner]}
    task_groups:
      inner:
        tasks:
          p: {noop: true}
          q: {noop: true, depends_on: [p]}
";

#[test]
fn ids_are_paths_and_edges_go_from_last_tasks_to_first_ones() {
    assert_eq!(
        edges(NESTED),
        [
            "z <- g.y",
            "g.x <- a",
            "g.y <- g.x g.inner.q",
            "g.inner.p <- a",
            "g.inner.q <- g.inner.p"
        ]
    );
    let groups = dag(NESTED).groups;
    assert_eq!(groups[0].tooltip, "outer");
    assert_eq!((groups[1].group_id.as_str(), groups[1].parent), ("g.inner", Some(0)));
}

#[test]
fn a_group_after_a_group_is_every_first_task_after_every_last_one() {
    let text = "\
task_groups:
  a: {tasks: {x: {noop: true}, y: {noop: true}}}
  b: {depends_on: [a], tasks: {x: {noop: true}, y: {noop: true}, z: {noop: true, depends_on: [x]}}}
  c: {depends_on: [b], prefix_group_id: false, tasks: {w: {noop: true}}}
";
    assert_eq!(edges(text), ["b.x <- a.x a.y", "b.y <- a.x a.y", "b.z <- b.x", "w <- b.y b.z"]);
}

#[test]
fn names_are_looked_up_from_the_inside_out_then_as_full_ids() {
    let text = "\
tasks:
  load: {noop: true}
  other: {noop: true}
task_groups:
  g:
    tasks:
      load: {noop: true}
      a: {noop: true, depends_on: [load]}
      b: {noop: true, depends_on: [other, g.load, h.deep.t, h.deep]}
      c: {noop: true, depends_on: [sub.t]}
    task_groups:
      sub: {tasks: {t: {noop: true, depends_on: [load]}}}
  h: {task_groups: {deep: {tasks: {t: {noop: true}}}}}
";
    assert_eq!(
        edges(text),
        ["g.a <- g.load", "g.b <- other g.load h.deep.t", "g.c <- g.sub.t", "g.sub.t <- g.load"]
    );
}

/// Airflow's `TaskGroup.get_leaves`: what comes after a group does not wait for its teardown.
#[test]
fn teardowns_are_no_last_tasks_of_a_group() {
    let text = "\
tasks: {after: {noop: true, depends_on: [g]}, end: {noop: true, depends_on: [only]}}
task_groups:
  g:
    tasks:
      s: {noop: true, setup: true}
      w: {noop: true, depends_on: [s]}
      t: {noop: true, teardown: true, depends_on: [s, w]}
      t2: {noop: true, teardown: true, depends_on: [t]}
  only: {tasks: {t: {noop: true, teardown: true}}}
";
    assert_eq!(
        edges(text),
        ["after <- g.w", "end <- only.t", "g.w <- g.s", "g.t <- g.s g.w", "g.t2 <- g.t"]
    );
}

#[test]
fn default_args_of_inner_groups_go_over_those_of_outer_ones_and_of_the_dag() {
    let text = "\
default_args: {retries: 1, pool: p, env: {A: dag, B: dag, C: dag}}
tasks: {t: {run: x}}
task_groups:
  g:
    default_args: {retries: 2, env: {B: g, C: g}}
    tasks: {t: {run: x}}
    task_groups:
      h: {default_args: {retries: null, env: {C: h}}, tasks: {t: {run: x}, own: {run: x, retries: 9}}}
";
    let dag = dag(text);
    let of = |id: &str| &dag.tasks[dag.index_of(id).unwrap().at()];
    let retries = |id: &str| of(id).retry.retries;
    assert_eq!(["t", "g.t", "g.h.t", "g.h.own"].map(retries), [1, 2, 0, 9]);
    let env = |id: &str| of(id).env.iter().map(|(_, v)| v.as_str()).collect::<Vec<_>>().join(" ");
    assert_eq!(["t", "g.t", "g.h.t"].map(env), ["dag dag dag", "dag g g", "dag g h"]);
    assert!(["t", "g.t", "g.h.t"].iter().all(|id| of(id).limits.pool.as_str() == "p"));
}

#[test]
fn outputs_of_grouped_tasks_have_their_full_id() {
    let text = |name: &str| {
        format!(
            "tasks:\n  z: {{run: 'echo {{{{ {name} }}}}', depends_on: [g]}}\n\
             task_groups:\n  g: {{tasks: {{t: {{run: x, outputs: {{rows: integer, s: string}}}}}}}}\n"
        )
    };
    assert!(findings(&text("outputs[\"g.t\"].rows")).is_empty());
    assert_eq!(
        findings(&text("outputs.g.t.rows")),
        ["2:21 error [unknown-task] `g` is a task group | write outputs[\"g.t\"]"]
    );
    assert_eq!(
        findings(&text("outputs[\"g.t\"].row")),
        ["2:21 error [unknown-output] `g.t` declares no output `row` | did you mean `rows`?"]
    );
    assert_eq!(
        findings(&text("outputs[\"g.t\"].s")),
        ["2:21 warn [script-injection] outputs[\"g.t\"].s is pasted into `run` | \
          use \"$FENCEPOST_INPUT_G_T_S\" or `| sh`"]
    );
}

#[test]
fn the_stored_form_keeps_the_tree_and_old_ones_their_hash() {
    let dag = dag(NESTED);
    let stored: serde_json::Value = serde_json::from_str(&ir(&dag).to_string()).unwrap();
    assert_eq!(from_ir(&stored).unwrap(), dag);
    let renamed = NESTED.replace("tooltip: outer", "tooltip: other");
    assert_ne!(content_hash(&super::dag(&renamed)), content_hash(&dag));
    assert!(ir(&super::dag("tasks: {a: {run: x}}")).get("groups").is_none());
    for (path, value) in [
        ("/groups/1/parent", serde_json::json!("nobody")),
        ("/groups/0/tasks/0", serde_json::json!("nobody")),
        ("/groups/0/group_id", serde_json::json!("-")),
        ("/groups/0/tasks/1", stored["groups"][0]["tasks"][0].clone()),
        ("/groups", serde_json::json!({})),
    ] {
        let mut wrong = stored.clone();
        *wrong.pointer_mut(path).unwrap() = value;
        assert!(from_ir(&wrong).is_err(), "{path}");
    }
}

/// A file and all that is said about it.
fn check(text: &str, expected: &[&str]) {
    assert_eq!(findings(text), expected, "{text}");
}

#[test]
fn mistakes_of_groups() {
    check(
        "task_groups: {g: {tasks: {}}}",
        &[
            "1:15 error [no-tasks] the task group `g` has no tasks | give it `tasks`, or leave it out",
        ],
    );
    check(
        "task_groups: {}",
        &["1:1 error [no-tasks] `task_groups` is empty | a group is `name: {tasks: {...}}`"],
    );
    check(
        "task_groups: [g]",
        &[
            "1:14 error [wrong-type] `task_groups` must be a mapping of groups by name, not a list | \
           write `name: {tasks: {...}}`",
        ],
    );
    check(
        "task_groups: {g: x}",
        &["1:18 error [wrong-type] `g` must be a mapping, not the text `x` | write {tasks: {...}}"],
    );
    check(
        "task_groups: {'-g': {tasks: {t: {run: x}}}, h: {tasks: {.t: {run: x}, u: {run: x}}}}",
        &[
            "1:15 error [bad-name] `-g` is not a name for a task group | \
             1 to 200 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash",
            "1:57 error [bad-name] `.t` is not a name for a task in `h` | \
             1 to 200 of A-Z a-z 0-9 _ . -, not beginning with a dot or a dash",
        ],
    );
    check(
        "task_groups: {g: {retries: 3, expand: {a: [1]}, schedule: '@daily', tasks: {t: {run: x, tooltip: y}}}}",
        &[
            "1:19 error [unknown-key] unknown key `retries` | write it under the group's `default_args`",
            "1:31 error [not-supported-yet] `expand` is not supported yet | leave it out for now",
            "1:49 error [unknown-key] unknown key `schedule` | it belongs to the top of the file",
            "1:89 error [unknown-key] unknown key `tooltip` | it belongs to a task group",
        ],
    );
    check(
        "tasks: {g.t: {run: x}, h: {run: x}}\n\
         task_groups: {g: {tasks: {t: {run: x}}}, h: {tasks: {u: {run: x}}},\n  \
         i: {prefix_group_id: false, tasks: {h.u: {run: x}}}}",
        &[
            "2:27 error [duplicate-task] `g.t` is the id of another task or task group too | \
             it is first on line 1; rename one of them",
            "2:42 error [duplicate-task] `h` is the id of another task or task group too | \
             it is first on line 1; rename one of them",
            "3:39 error [duplicate-task] `h.u` is the id of another task or task group too | \
             it is first on line 2; rename one of them",
        ],
    );
}

#[test]
fn names_that_lead_nowhere_or_back() {
    check(
        "task_groups:\n  ext: {tasks: {a: {run: x}, b: {run: x, depends_on: [ext, c, aa]}}}\n  \
         two: {depends_on: [ex, two, two.t], tasks: {t: {run: x}}}\n",
        &[
            "2:55 error [cycle] `ext.b` depends on the group that it is in | \
             leave it out, or name tasks of the group",
            "2:60 error [unknown-task] `ext.b` depends on `c` | no such task or group",
            "2:63 error [unknown-task] `ext.b` depends on `aa` | no such task or group; did you mean `a`?",
            "3:22 error [unknown-task] `two` depends on `ex` | no such task or group; did you mean `ext`?",
            "3:26 error [cycle] `two` depends on itself | leave it out",
            "3:31 error [cycle] `two` depends on what is in it | leave it out",
        ],
    );
}

#[test]
fn circles_through_groups_are_found_at_the_name_that_closes_them() {
    check(
        "task_groups:\n  a: {depends_on: [b], tasks: {x: {run: x}, y: {run: x, depends_on: [x]}}}\n  \
         b: {tasks: {p: {run: x, depends_on: [a.x]}, q: {run: x, depends_on: [p]}}}\n",
        &[
            "2:20 error [cycle] the tasks depend on each other in a circle: a.x -> b.q -> b.p -> a.x | \
           each waits for the next; take one of these edges out",
        ],
    );
}

#[test]
fn groups_that_stand_for_too_many_edges_are_refused_at_the_name() {
    let task = |n: u32| format!("      t{n}: {{noop: true}}\n");
    let tasks = (0..1001).map(task).collect::<Vec<_>>().concat();
    let text = format!(
        "task_groups:\n  a:\n    tasks:\n{tasks}  b:\n    depends_on: [a]\n    tasks:\n{tasks}"
    );
    let found = findings(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("1006:18 error [too-many-edges]"), "{found:?}");
    assert!(found[0].ends_with("put a task with `noop: true` between the two groups"), "{found:?}");
}
