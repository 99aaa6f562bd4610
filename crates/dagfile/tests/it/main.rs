//! DAG files from the outside: bytes in, DAG or diagnostics out.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asset_mistakes;
mod budgets;
mod callbacks;
mod dag_values;
mod fuzz;
mod groups;
mod http_mistakes;
mod long_example;
mod mistakes;
mod mistakes_of_access;
mod mistakes_of_flow;
mod rendering;
mod schema;
mod stored_form;
mod template_checks;
mod templates;
mod timing_mistakes;

use fencepost_core::dag::Dag;
use fencepost_dagfile::{Diagnostic, parse};

/// `LINE:COLUMN code message | hint` of every diagnostic.
fn findings(text: &str) -> Vec<String> {
    shown(&parse(text.as_bytes(), "dags/test.yaml").diagnostics)
}

fn shown(diagnostics: &[Diagnostic]) -> Vec<String> {
    let line = |d: &Diagnostic| {
        let severity = d.severity.as_str();
        format!("{}:{} {severity} [{}] {} | {}", d.line, d.column, d.code, d.message, d.hint)
    };
    diagnostics.iter().map(line).collect()
}

/// The DAG of a file without errors or warnings.
fn dag(text: &str) -> Dag {
    let parsed = parse(text.as_bytes(), "dags/test.yaml");
    assert_eq!(shown(&parsed.diagnostics), Vec::<String>::new(), "{text}");
    parsed.dag.unwrap()
}

/// A file with one task `t` that has these lines.
fn task(lines: &str) -> String {
    let lines: Vec<String> = lines.lines().map(|line| format!("    {line}")).collect();
    format!("tasks:\n  t:\n{}\n", lines.join("\n"))
}

#[test]
fn every_file_of_tests_is_listed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "main") {
            assert!(main.contains(&format!("mod {module};")), "{module} is not listed");
        }
    }
}
