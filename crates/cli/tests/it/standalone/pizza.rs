//! The example `pizza`: whatever is killed between which steps, there is no ghost order.

use super::world::{World, wait_for};
use crate::installation::Installation;
use std::path::{Path, PathBuf};

const STEPS: [&str; 3] = ["charge", "kitchen", "driver"];

struct Shop(PathBuf);

impl Shop {
    fn has(&self, step: &str, order: &str) -> bool {
        self.0.join("log").join(format!("{step}-{order}")).exists()
    }

    fn names(&self, folder: &str) -> usize {
        std::fs::read_dir(self.0.join(folder)).map_or(0, Iterator::count)
    }

    fn bank(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.join("bank.log")).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }
}

fn order(world: &World, shop: &Shop, name: &str, burns: bool) {
    let (shop, burns) = (format!("shop={}", shop.0.display()), format!("burns={burns}"));
    world.must(&["dags", "trigger", "pizza", "--run-id", name, "-p", &shop, "-p", &burns]);
}

fn ended(world: &World, name: &str) -> String {
    let state =
        || world.json(&["runs", "show", "pizza", name])["state"].as_str().map(str::to_owned);
    wait_for("the order to end", || matches!(state().as_deref(), Some("success" | "failed")));
    state().unwrap()
}

#[test]
fn a_crash_between_any_two_steps_leaves_no_ghost_order() {
    let world = World::new();
    let dags = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/pizza/dags");
    let text = std::fs::read_to_string(dags.join("pizza.yaml")).unwrap();
    std::fs::write(world.path("dags").join("pizza.yaml"), text).unwrap();
    let shop = Shop(world.path("shop"));
    let mut node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "pizza"]).is_object());
    // One order that is killed at every step, and one for each step that is killed there alone.
    order(&world, &shop, "all", false);
    for step in STEPS {
        order(&world, &shop, step, false);
        wait_for("the step to begin", || shop.has(step, step) && shop.has(step, "all"));
        node.kill9();
        node = world.start();
    }
    // One that burns, killed while the money goes back or before.
    order(&world, &shop, "burnt", true);
    wait_for("the oven", || shop.has("kitchen", "burnt"));
    node.kill9();
    let node = world.start();
    let mut expected = vec!["burnt charged".to_owned(), "burnt refunded".to_owned()];
    for name in STEPS.into_iter().chain(["all"]) {
        assert_eq!(ended(&world, name), "success", "{name}");
        expected.push(format!("{name} charged"));
    }
    ended(&world, "burnt");
    expected.sort();
    assert_eq!(shop.bank(), expected);
    assert_eq!((shop.names("delivered"), shop.names("refunds")), (4, 1));
    world.assert_sound();
    node.stop();
}
