//! A wait for what two databases say, one of each kind, through connections.

use super::world::{World, wait_for};
use crate::installation::Installation;
use fencepost_testing::Database;
use std::process::Command;

const DAG: &str = "
tasks:
  loaded:
    wait: {sql: \"SELECT COUNT(*) > 1 FROM loads WHERE day = '{{ params.day }}'\", conn: warehouse, poke_interval: 1s}
  open:
    wait: {sql: SELECT open FROM gate, conn: gate, poke_interval: 1s}
  after: {depends_on: [loaded, open], run: echo both}
params: {day: '2026-12-01'}
";

fn sqlite(path: &std::path::Path, text: &str) {
    let status = Command::new("sqlite3").arg(path).arg(text).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_wait_ends_when_both_databases_say_so() {
    let world = World::new();
    let warehouse = Database::empty().unwrap();
    warehouse
        .sql("CREATE TABLE loads (day TEXT);\nINSERT INTO loads VALUES ('2026-12-01')")
        .unwrap();
    let gate = world.path("gate.db");
    sqlite(&gate, "CREATE TABLE gate (open INTEGER); INSERT INTO gate VALUES (0)");
    std::fs::write(world.path("dags/d.yaml"), DAG).unwrap();
    let node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "d"]).is_object());
    world.must(&["dags", "trigger", "d"]);
    // A connection that is not there yet is a look that failed, not a task.
    let triggers = |text: &str| world.json(&["inspect", "triggers"]).to_string().contains(text);
    wait_for("the trouble", || triggers("connections set warehouse URI"));
    world.must(&["connections", "set", "warehouse", warehouse.url()]);
    world.must(&["connections", "set", "gate", &format!("sqlite://{}", gate.display())]);
    wait_for("looks that say not yet", || !triggers("connections set"));
    assert_eq!(world.json(&["tasks", "show", "d", "@latest", "loaded"])["state"], "deferred");
    warehouse.sql("INSERT INTO loads VALUES ('2026-12-01')").unwrap();
    world.wait_task("d", "loaded", "success");
    assert_eq!(world.json(&["tasks", "show", "d", "@latest", "open"])["state"], "deferred");
    sqlite(&gate, "UPDATE gate SET open = 1");
    world.wait_state("d", "success");
    world.assert_sound();
    node.stop();
}
