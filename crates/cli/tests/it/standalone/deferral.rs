//! The example that waits for a file, a job and a person, with a kill -9 while it waits.

use super::world::{World, wait_for};
use crate::installation::Installation;
use std::path::Path;

#[test]
fn the_example_waits_for_a_file_a_job_and_a_person() {
    let world = World::new();
    let dags = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/deferral/dags");
    let text = std::fs::read_to_string(dags.join("release.yaml")).unwrap();
    std::fs::write(world.path("dags").join("release.yaml"), text).unwrap();
    let drop = world.path("drop");
    std::fs::create_dir(&drop).unwrap();
    let node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "release"]).is_object());
    let param = format!("drop={}", drop.display());
    world.must(&["dags", "trigger", "release", "-p", &param]);
    wait_for("it waits for the file", || {
        let task = world.json(&["tasks", "show", "release", "@latest", "build_arrives"]);
        task["state"] == "deferred"
    });
    let waiting = world.json(&["inspect", "triggers"]);
    assert!(waiting.to_string().contains("build.tar"), "{waiting}");
    node.kill9();
    std::fs::write(drop.join("build.tar"), "x").unwrap();
    let node = world.start();
    wait_for("it asks a person", || {
        let task = world.json(&["tasks", "show", "release", "@latest", "sign_off"]);
        task["state"] == "deferred"
    });
    let explained = world.json(&["explain", "release", "@latest", "sign_off"]).to_string();
    assert!(
        explained.contains("waits for a person") && explained.contains("approve"),
        "{explained}"
    );
    world.must(&["tasks", "approve", "release", "@latest", "sign_off", "--reason", "green"]);
    world.wait_state("release", "success");
    let attempts = world.json(&["tasks", "attempts", "release", "@latest", "external_test"]);
    let of = |n: usize, key: &str| attempts[n][key].as_str().unwrap_or_default().to_owned();
    assert_eq!(
        (of(0, "outcome"), of(1, "why")),
        ("deferred".into(), "resumed".into()),
        "{attempts}"
    );
    assert_eq!(attempts[1]["try_number"], 1);
    world.assert_sound();
    node.stop();
}
