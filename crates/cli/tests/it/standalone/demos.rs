//! The demos, as a person runs them: they end by themselves, say what happened, and leave nothing.

use super::world::{World, any_process};
use crate::installation::Installation;

/// What a demo shows; what it says about it goes to the other stream.
fn played(name: &str) -> String {
    let world = World::new();
    let output = world.command(&["demo", name]).env("TMPDIR", world.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let left = world.path("").display().to_string();
    let folders = std::fs::read_dir(world.path("")).unwrap().filter_map(Result::ok);
    let names: Vec<String> =
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("fencepost-demo")), "{names:?}");
    assert!(!any_process(|line| line.contains(&left)), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// How often a line of the ledger is shown.
fn shown(text: &str, line: &str) -> usize {
    text.lines().filter(|shown| shown.trim().starts_with(line)).count()
}

#[test]
fn the_crash_is_survived_by_every_payment() {
    let text = played("crash");
    // The ledger is shown twice, the second time with what was packed.
    assert_eq!(shown(&text, "begin order"), 6, "{text}");
    assert_eq!(shown(&text, "charged order"), 6, "{text}");
    assert_eq!(shown(&text, "packed token"), 1, "{text}");
    assert!(text.contains("reattached") && text.contains("infra"), "{text}");
}

#[test]
fn the_pizza_is_charged_and_delivered_once() {
    let text = played("pizza");
    assert_eq!((shown(&text, "charging"), shown(&text, "CHARGED")), (2, 2), "{text}");
    assert_eq!((shown(&text, "baking"), shown(&text, "DELIVERED")), (2, 1), "{text}");
}
