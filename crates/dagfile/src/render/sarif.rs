//! SARIF 2.1.0, the form that code hosts and editors import.

use super::{FileReport, each};
use crate::diagnostic::{Diagnostic, Severity};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// One SARIF log with one run.
pub fn sarif(files: &[FileReport<'_>]) -> Value {
    let codes: BTreeSet<&str> = each(files).map(|(_, d)| d.code).collect();
    let rules: Vec<Value> = codes.iter().map(|code| json!({ "id": code })).collect();
    let results: Vec<Value> = each(files).map(|(path, d)| result(path, d)).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "fencepost",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result(path: &str, diagnostic: &Diagnostic) -> Value {
    let level = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warn => "warning",
    };
    let text = match diagnostic.hint.as_str() {
        "" => diagnostic.message.clone(),
        hint => format!("{}: {hint}", diagnostic.message),
    };
    json!({
        "ruleId": diagnostic.code,
        "level": level,
        "message": { "text": text },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": path.replace(' ', "%20") },
            "region": { "startLine": diagnostic.line, "startColumn": diagnostic.column },
        }}],
    })
}
