//! The process aborted at the first passage of every named point, one after the other, and started
//! again: every run ends right. With `FENCEPOST_TEST_LONG=1` at every passage.

use super::world::{World, assert_once, comes_true, ledger_task};
use crate::installation::Installation;
use std::collections::BTreeMap;
use std::time::Duration;

/// Five tasks: a chain, a fan and a join.
fn five(world: &World) {
    let task = ledger_task(&world.path("ledger"), "0.05");
    let after = |name: &str, ups: &str| format!("  {name}:\n    depends_on: [{ups}]\n{task}");
    let yaml = format!(
        "tasks:\n  a:\n{task}{}{}{}{}",
        after("b", "a"),
        after("c", "a"),
        after("d", "b, c"),
        after("e", "d")
    );
    // Scheduled, so that the making of its run is among the points.
    world.dag("five", &format!("schedule: {{at: 2026-01-01T00:00:00Z}}\n{yaml}"));
}

/// Points that a run of five tasks passes, in their order, and how often.
fn points() -> Vec<(String, usize)> {
    let mut world = World::new();
    let list = world.path("points");
    world.env.push(("FENCEPOST_CRASH_LIST".into(), list.to_string_lossy().into_owned()));
    five(&world);
    let node = world.start();
    world.wait_state("five", "success");
    node.stop();
    let mut order = Vec::new();
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for point in world.lines("points") {
        if !count.contains_key(&point) {
            order.push(point.clone());
        }
        *count.entry(point).or_default() += 1;
    }
    order
        .into_iter()
        .map(|point| {
            let n = count[&point];
            (point, n)
        })
        .collect()
}

fn crash_at(point: &str) -> bool {
    let mut world = World::new();
    five(&world);
    world.env.push(("FENCEPOST_CRASH".into(), point.into()));
    let crashed = match world.try_start() {
        // It crashed before it served.
        None => true,
        Some(mut node) => {
            let ended = || node.child.try_wait().unwrap().is_some();
            let over = || world.run_state("five") == "success";
            let mut ended = ended;
            comes_true(Duration::from_secs(20), || ended() || over());
            let crashed = ended();
            drop(node);
            crashed
        }
    };
    world.env.clear();
    let node = world.start();
    world.wait_state("five", "success");
    assert_once(&world.lines("ledger"), 5);
    for task in ["a", "b", "c", "d", "e"] {
        let attempts = world.attempts("five", task);
        let ran = attempts.iter().filter(|a| a["outcome"] == "success").count();
        assert_eq!(ran, 1, "{point}: {task}: {attempts:#?}");
    }
    world.assert_sound();
    node.stop();
    crashed
}

#[expect(clippy::disallowed_methods, reason = "how ./test --long asks for the long form")]
fn is_long() -> bool {
    std::env::var("FENCEPOST_TEST_LONG").is_ok()
}

#[test]
fn every_crash_point_of_five_tasks_ends_right() {
    let points = points();
    assert!(points.len() > 50, "only {} points", points.len());
    let long = is_long();
    let (mut tried, mut crashed) = (0, 0);
    for (point, passages) in &points {
        // Later passages depend on timing: one that does not come again ends the row.
        for n in 1..=(if long { *passages } else { 1 }) {
            let did = crash_at(&format!("{point}:{n}"));
            tried += 1;
            crashed += usize::from(did);
            if !did {
                break;
            }
        }
    }
    println!("{} points, {tried} passages tried, {crashed} crashes:", points.len());
    for (point, passages) in &points {
        println!("  {point} ({passages} passages)");
    }
    assert!(crashed * 10 >= points.len() * 9, "{crashed} of {}", points.len());
}
