//! The example of a backfill, as people run it: killed in the middle, each day is there once.

use super::world::{World, wait_for};
use crate::installation::Installation;

const DAYS: [&str; 6] =
    ["2026-03-26", "2026-03-27", "2026-03-28", "2026-03-29", "2026-03-30", "2026-03-31"];
const RANGE: [&str; 5] = ["readings", "--from-date", "2026-03-26", "--to-date", "2026-03-31"];

#[test]
fn the_days_of_the_example_are_there_once_after_a_kill_in_the_middle() {
    let world = World::new();
    world.dag("readings", include_str!("../../../../../examples/backfill/readings.yaml"));
    let out = world.path("out");
    let node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "readings"]).is_object());
    let create = |more: &[&str]| {
        let ran = world.run(&[&["backfill", "create"], &RANGE[..], more].concat());
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        (ran.status.code(), text)
    };
    let (code, text) = create(&["--dry-run"]);
    assert_eq!(code, Some(0));
    assert_eq!(text, "6 slots: 0 exist, 6 missing: create → 6 runs\n");
    let param = format!("out={}", out.display());
    assert_eq!(create(&["--max-active-runs", "2", "-p", &param]), (Some(0), "1\n".into()));
    assert_eq!(create(&[]).0, Some(5), "one at a time");
    wait_for("the first day", || out.join("2026-03-26.csv").exists());
    node.kill9();
    let node = world.start();
    wait_for("the backfill to be over", || {
        world.json(&["backfill", "show", "1"])["state"] == "completed"
    });
    let shown = world.json(&["backfill", "show", "1"]);
    assert_eq!(
        (&shown["progress"]["success"], &shown["progress"]["slots"]),
        (&6.into(), &6.into())
    );
    let book = std::fs::read_to_string(out.join("book")).unwrap();
    let mut days: Vec<&str> = book.lines().filter_map(|line| line.split(' ').next()).collect();
    days.sort_unstable();
    assert_eq!(days, DAYS);
    // The day without a half past two.
    let run = world.json(&["runs", "show", "readings", "backfill__2026-03-29T01:00:00Z"]);
    assert_eq!((&run["run_type"], &run["state"]), (&"backfill".into(), &"success".into()));
    let list = world.json(&["backfill", "list", "--dag", "readings"]);
    assert_eq!(list.as_array().map(Vec::len), Some(1));
    assert_eq!(
        create(&["--dry-run", "--reprocess-behavior", "completed"]).1,
        "6 slots: 6 exist (6 success: rerun), 0 missing: create → 6 runs\n"
    );
    // What is over is neither paused nor cancelled; one that is not there is not found.
    assert_eq!(world.run(&["backfill", "cancel", "1", "--yes"]).status.code(), Some(5));
    assert_eq!(world.run(&["backfill", "show", "77"]).status.code(), Some(4));
    world.assert_sound();
    node.stop();
}
