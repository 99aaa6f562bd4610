//! The long example of the design: what comes later is refused by name, nothing else is said.

use super::shown;
use fencepost_core::dag::{OnLost, Replace, Resources};
use fencepost_dagfile::{Severity, parse};

const EXAMPLE: &str = include_str!("long_example.yaml");

/// The lines on which the refusals stand, in order.
const REFUSED: [(&str, &str); 1] =
    [("  WAREHOUSE_DSN:", "`vault:` in `secrets` is not supported yet")];

#[test]
fn the_long_example_gives_exactly_the_refusals() {
    let parsed = parse(EXAMPLE.as_bytes(), "sales.yaml");
    assert_eq!(parsed.dag, None);
    let refused = REFUSED;
    let lines: Vec<&str> = EXAMPLE.lines().collect();
    let found = shown(&parsed.diagnostics);
    assert_eq!(parsed.diagnostics.len(), refused.len(), "{found:#?}");
    for (diagnostic, (start, message)) in parsed.diagnostics.iter().zip(refused) {
        let line = lines[diagnostic.line as usize - 1];
        assert!(line.starts_with(start), "{found:#?}");
        assert_eq!(diagnostic.message, *message);
        assert_eq!(diagnostic.code, "not-supported-yet");
        assert_eq!(diagnostic.severity, Severity::Error);
        let column = match message.split_once(": ") {
            // At the value for a value, at the key for a key.
            Some((key, _)) => 5 + key.trim_start_matches('`').len() + 2,
            None => line.len() - line.trim_start().len() + 1,
        };
        assert_eq!(diagnostic.column as usize, column, "{line}");
    }
}

#[test]
fn without_what_comes_later_it_is_a_dag() {
    let mut text = String::new();
    let mut skipped = None;
    for line in EXAMPLE.lines() {
        let indent = line.len() - line.trim_start().len();
        let is_blank = line.trim().is_empty();
        if skipped.is_some_and(|deeper| is_blank || indent > deeper) {
            continue;
        }
        skipped = None;
        let later = ["WAREHOUSE_DSN:"];
        if later.iter().any(|key| line.trim_start().starts_with(key)) {
            if line.contains("wait:") {
                text.push_str("    noop: true\n");
            }
            skipped = Some(indent);
            continue;
        }
        text.push_str(line);
        text.push('\n');
    }
    let parsed = parse(text.as_bytes(), "sales.yaml");
    assert_eq!(shown(&parsed.diagnostics), Vec::<String>::new());
    let dag = parsed.dag.unwrap();
    assert_eq!(dag.dag_id.as_str(), "sales_daily");
    assert_eq!(dag.tasks.len(), 7);
    let publish = &dag.tasks[dag.index_of("publish").unwrap().at()];
    assert!(publish.is_dynamic() && publish.is_mapped());
    assert_eq!(publish.retry.retries, 3);
    let load = &dag.tasks[dag.index_of("load").unwrap().at()];
    assert_eq!(load.outlets, ["warehouse.orders"]);
    let charge = &dag.tasks[dag.index_of("charge_partner").unwrap().at()];
    assert_eq!((charge.retry.retries, charge.infra_retries), (0, 0));
    let extract = &dag.tasks[dag.index_of("extract").unwrap().at()];
    assert_eq!(extract.resources, Resources { cpu_millis: Some(2_000), memory: Some(4 << 30) });
    assert_eq!(charge.on_lost, OnLost::Hold);
    assert_eq!(charge.replace, Replace::AfterConfirmedDead);
}
