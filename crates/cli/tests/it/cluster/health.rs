//! What monitoring asks: who goes round, and what is left when somebody dies or brings a wrong folder.

use super::world::Cluster;
use crate::installation::Installation;
use crate::standalone::world::wait_for;
use serde_json::Value;

fn status(health: &Value, role: &str) -> Vec<String> {
    let own = health["components"].as_array().into_iter().flatten();
    let own = own.filter(|component| component["role"] == role);
    own.map(|component| component["status"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn health_tells_of_every_process_and_of_a_role_that_nobody_has() {
    let mut cluster = Cluster::new();
    cluster.short_scheduler_leases();
    let _server = cluster.server();
    let first = cluster.scheduler("s1");
    let second = cluster.scheduler("s2");
    let _worker = cluster.worker("w1");
    wait_for("all to be well", || cluster.json(&["health"])["status"] == "ok");
    let health = cluster.json(&["health"]);
    assert_eq!(status(&health, "scheduler").len(), 2, "{health}");
    for component in health["components"].as_array().unwrap() {
        let has_age = component["age_ms"].as_u64().is_some_and(|age| age < 60_000);
        assert!(has_age || component["role"] == "store", "{component}");
    }
    first.kill9();
    let one_left = || status(&cluster.json(&["health"]), "scheduler") == ["ok"];
    wait_for("the dead one to be gone from the list", one_left);
    second.kill9();
    let none_left = || status(&cluster.json(&["health"]), "scheduler") == ["down"];
    wait_for("nobody to schedule", none_left);
    assert_eq!(cluster.run(&["health"]).status.code(), Some(1));
}

/// A scheduler with a folder that is not there, or is empty, switches nothing off.
#[test]
fn a_scheduler_with_a_wrong_folder_switches_nothing_off() {
    let cluster = Cluster::new();
    cluster.dag("kept", "tasks:\n  t: {run: 'true'}\n");
    let _server = cluster.server();
    let _first = cluster.scheduler("s1");
    let _worker = cluster.worker("w1");
    let run = cluster.trigger("kept");
    cluster.wait_state("kept", &run, "success");
    std::fs::create_dir_all(cluster.path("empty")).unwrap();
    for (name, folder) in [("s2", "nowhere"), ("s3", "empty")] {
        let other = cluster.scheduler_on(name, folder);
        // It has looked at its folder once it is known.
        let known = || status(&cluster.json(&["health"]), "scheduler").len() == 2;
        wait_for("the other scheduler to be known", known);
        other.stop();
        assert_eq!(cluster.json(&["dags", "show", "kept"])["is_active"], true);
    }
    let run = cluster.trigger("kept");
    cluster.wait_state("kept", &run, "success");
}
