//! The example with task groups: a run, the list of groups, the graph with clusters.

use super::world::{World, wait_for};
use crate::installation::Installation;
use std::path::Path;

#[test]
fn the_example_runs_its_groups_in_order_and_shows_them() {
    let world = World::new();
    let dags = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/groups/dags");
    let text = std::fs::read_to_string(dags.join("shop_load.yaml")).unwrap();
    std::fs::write(world.path("dags").join("shop_load.yaml"), text).unwrap();
    let node = world.start();
    wait_for("the DAG", || world.json(&["dags", "show", "shop_load"]).is_object());
    world.trigger("shop_load");
    world.wait_state("shop_load", "success");
    let log = world.must(&["logs", "shop_load", "@latest", "publish"]);
    assert!(log.contains("published 120 orders and 31 articles"), "{log}");
    let scratch = world.must(&["logs", "shop_load", "@latest", "extract.scratch"]);
    assert!(scratch.contains("scratch files of shop removed"), "{scratch}");
    let dag = world.json(&["dags", "show", "shop_load"]);
    let groups = dag["task_groups"].as_array().unwrap();
    let pair = |group: &serde_json::Value| (group["group_id"].clone(), group["parent"].clone());
    assert_eq!(
        groups.iter().map(pair).collect::<Vec<_>>(),
        [
            ("extract".into(), serde_json::Value::Null),
            ("check".into(), serde_json::Value::Null),
            ("check.totals".into(), "check".into()),
        ]
    );
    let graph = world.must(&["dags", "graph", "shop_load", "--format", "mermaid"]);
    insta::assert_snapshot!(graph, @r#"
    flowchart LR
      t0["open_day"]
      t1["publish"]
      subgraph g0["extract"]
        t2["extract.scratch"]
        t3["extract.orders"]
        t4["extract.stock"]
      end
      subgraph g1["check"]
        t5["check.schema"]
        subgraph g2["check.totals"]
          t6["check.totals.orders"]
          t7["check.totals.compare"]
        end
      end
      t7 --> t1
      t3 --> t2
      t4 --> t2
      t0 --> t3
      t0 --> t4
      t3 --> t5
      t4 --> t5
      t3 --> t6
      t5 --> t6
      t6 --> t7
    "#);
    let graph = world.must(&["dags", "graph", "shop_load"]);
    let cluster = r#"subgraph "cluster_extract" { label="extract"; tooltip="One task per source""#;
    assert!(graph.contains(cluster), "{graph}");
    world.assert_sound();
    node.stop();
}
