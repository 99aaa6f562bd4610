//! Python functions as tasks, and the example that maps over what one returned.

use super::world::{World, wait_for};
use crate::installation::Installation;
use std::path::Path;

const SHOP: &str = "
import datetime, sys

def typed(ds, logical_date, n, word='default', **context):
    assert isinstance(logical_date, datetime.datetime) and logical_date.tzinfo
    return {'ds': ds, 'n': n, 'word': word, 'list': [1, {'a': None}], 'keys': sorted(context)}

class Desk:
    @staticmethod
    def one(letter, outputs):
        return f\"{letter}{outputs['typed']['n']}\"

def raises():
    raise RuntimeError('no such order')

def skips():
    sys.exit(99)

def wants(what_is_this):
    pass
";

fn states(world: &World, dag: &str) -> Vec<(String, String)> {
    let tasks = world.json(&["tasks", "list", dag, "@latest"]);
    let pair = |task: &serde_json::Value| {
        let of = |key: &str| task[key].as_str().unwrap_or_default().to_owned();
        (of("task_id"), of("state"))
    };
    tasks.as_array().map(|all| all.iter().map(pair).collect()).unwrap_or_default()
}

fn outputs(world: &World, dag: &str, task: &str) -> serde_json::Value {
    world.json(&["tasks", "outputs", dag, "@latest", task])
}

#[test]
fn functions_get_their_arguments_by_name_and_give_outputs() {
    let world = World::new();
    let package = world.path("dags").join("shop");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(package.join("work.py"), SHOP).unwrap();
    world.dag(
        "py",
        "params: {n: 3}\ntasks:\n  typed: {python: 'shop.work:typed'}\n  \
         desk: {python: 'shop.work:Desk.one', depends_on: [typed], expand: {letter: [a, b]}}\n  \
         raises: {python: 'shop.work:raises'}\n  skips: {python: 'shop.work:skips'}\n  \
         wants: {python: 'shop.work:wants'}\n  nowhere: {python: 'shop.work:nowhere', retries: 3}\n",
    );
    let node = world.start_on_relative_dags();
    world.trigger("py");
    world.wait_state("py", "failed");
    let expected = [
        ("typed", "success"),
        ("raises", "failed"),
        ("skips", "skipped"),
        ("wants", "failed"),
        ("nowhere", "failed"),
        ("desk", "success"),
        ("desk", "success"),
    ];
    let expected = expected.map(|(task, state)| (task.to_owned(), state.to_owned()));
    assert_eq!(states(&world, "py"), expected);
    let typed = outputs(&world, "py", "typed").to_string();
    assert!(typed.contains(r#"[1,{"a":null}]"#) && typed.contains("try_number"), "{typed}");
    assert!(outputs(&world, "py", "desk;1").to_string().contains("b3"));
    // What is not there is not tried again.
    let nowhere = world.attempts("py", "nowhere");
    assert_eq!((nowhere.len(), &nowhere[0]["exit_code"]), (1, &127.into()));
    for (task, said) in [("raises", "no such order"), ("wants", "`what_is_this`; there are: ")] {
        let log = world.must(&["logs", "py", "@latest", task]);
        assert!(log.contains(said), "{log}");
    }
    world.assert_sound();
    node.stop();
}

/// `examples/mapping`, as its README says.
#[test]
fn the_example_maps_over_what_a_function_returned() {
    let world = World::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/mapping/dags");
    let dags = world.path("dags");
    std::fs::create_dir(dags.join("orders")).unwrap();
    for file in ["orders_by_region.yaml", "orders/files.py"] {
        std::fs::copy(example.join(file), dags.join(file)).unwrap();
    }
    let node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "orders_by_region"]).is_object());
    world.trigger("orders_by_region");
    world.wait_state("orders_by_region", "success");
    let loads =
        states(&world, "orders_by_region").iter().filter(|(task, _)| task == "load").count();
    assert_eq!(loads, 6);
    let log = world.must(&["logs", "orders_by_region", "@latest", "notify"]);
    assert!(log.contains("6 files, 126 rows"), "{log}");
    world.must(&["dags", "trigger", "orders_by_region", "--run-id", "none", "-p", "per_region=0"]);
    let is_over =
        || world.json(&["runs", "show", "orders_by_region", "none"])["state"] == "success";
    wait_for("the empty run", is_over);
    world.assert_sound();
    node.stop();
}
