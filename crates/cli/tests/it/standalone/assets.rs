//! The example whose report runs once its data is there, with a kill -9 while some of it is.

use super::world::{World, wait_for};
use crate::installation::Installation;
use serde_json::json;
use std::path::Path;

#[test]
fn the_example_runs_once_its_data_is_there() {
    let world = World::new();
    let dags = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/assets/dags");
    for name in ["orders.yaml", "rates.yaml", "margin.yaml"] {
        std::fs::copy(dags.join(name), world.path("dags").join(name)).unwrap();
    }
    let node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "margin"]).is_object());
    let shown = world.json(&["dags", "show", "margin"])["schedule"].to_string();
    assert!(shown.contains("orders & (rates | manual_rates)"), "{shown}");
    world.must(&["dags", "trigger", "orders", "-p", "rows=40"]);
    world.wait_state("orders", "success");
    let explained = world.json(&["explain", "margin"]).to_string();
    assert!(explained.contains("waits for events of rates | manual_rates"), "{explained}");
    node.kill9();
    let node = world.start();
    assert_eq!(world.json(&["runs", "list", "margin"]), json!([]));
    world.must(&["assets", "emit", "manual_rates", "--extra", "{\"eur\": 1.1}"]);
    wait_for("the run", || world.json(&["runs", "list", "margin"])[0]["state"] == "success");
    let runs = world.json(&["runs", "list", "margin"]);
    assert_eq!(
        (runs.as_array().unwrap().len(), &runs[0]["run_type"]),
        (1, &json!("asset_triggered"))
    );
    let outputs = world.json(&["tasks", "outputs", "margin", "@latest", "compute"]).to_string();
    assert!(outputs.contains("\"rows\"") && outputs.contains("40"), "{outputs}");
    let log = world.must(&["logs", "margin", "@latest", "compute"]);
    assert!(log.contains("\"source_task_id\":\"load\"") && log.contains("\"eur\":1.1"), "{log}");
    let events = world.json(&["assets", "events"]);
    let names: Vec<&str> =
        events.as_array().unwrap().iter().filter_map(|e| e["asset"].as_str()).collect();
    assert_eq!(names, ["margin", "manual_rates", "orders"]);
    assert_eq!(events[2]["queued_for"][0]["run_id"], runs[0]["run_id"]);
    let orders = world.json(&["assets", "show", "orders"]);
    assert_eq!(orders["producers"], json!([{ "dag_id": "orders", "task_id": "load" }]));
    assert_eq!(orders["inlets"], json!([{ "dag_id": "margin", "task_id": "compute" }]));
    let listed = world.must(&["assets", "list"]);
    assert!(listed.contains("CONSUMERS") && listed.contains("manual_rates"), "{listed}");
    world.assert_sound();
    node.stop();
}
