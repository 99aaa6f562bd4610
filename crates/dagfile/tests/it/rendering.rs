//! Diagnostics as lines, JSON, SARIF and GitHub annotations.

use fencepost_dagfile::render::{FileReport, github, json, lines, sarif, summary};
use fencepost_dagfile::{Diagnostic, Severity};

fn diagnostic(severity: Severity, line: u32, message: &str, hint: &str) -> Diagnostic {
    let (message, hint) = (message.to_owned(), hint.to_owned());
    let code = if severity == Severity::Error { "unknown-key" } else { "script-injection" };
    Diagnostic { line, column: 5, severity, code, message, hint }
}

fn samples() -> Vec<Diagnostic> {
    vec![
        diagnostic(Severity::Error, 41, "unknown key `need`", "did you mean `depends_on`?"),
        diagnostic(Severity::Warn, 107, "params.x is pasted into `run`", "use `| sh`, 100%"),
        diagnostic(Severity::Error, 108, "unknown key `xyzzy`", ""),
    ]
}

#[test]
fn lines_in_columns() {
    let diagnostics = samples();
    let files = [
        FileReport { path: "dags/sales.yaml", diagnostics: &diagnostics },
        FileReport { path: "dags/b.yaml", diagnostics: &[] },
    ];
    assert_eq!(lines(&files), "\
dags/sales.yaml:41:5   error  unknown key `need`             did you mean `depends_on`?  [unknown-key]
dags/sales.yaml:107:5  warn   params.x is pasted into `run`  use `| sh`, 100%            [script-injection]
dags/sales.yaml:108:5  error  unknown key `xyzzy`                                        [unknown-key]
");
    assert_eq!(summary(&files, 1), "2 files, 1 DAG, 2 errors, 1 warning");
    assert_eq!(lines(&files[1..]), "");
}

#[test]
fn json_has_every_field() {
    let diagnostics = samples();
    let found = json(&[FileReport { path: "a.yaml", diagnostics: &diagnostics }]);
    assert_eq!(
        found[0],
        serde_json::json!({
            "path": "a.yaml", "line": 41, "column": 5, "severity": "error",
            "code": "unknown-key", "message": "unknown key `need`",
            "hint": "did you mean `depends_on`?",
        })
    );
    assert_eq!(found.as_array().unwrap().len(), 3);
    assert_eq!(found[1]["severity"], "warn");
}

#[test]
fn github_annotations_are_escaped() {
    let diagnostics = samples();
    let found = github(&[FileReport { path: "a,b:c.yaml", diagnostics: &diagnostics[1..2] }]);
    assert_eq!(
        found,
        "::warning file=a%2Cb%3Ac.yaml,line=107,col=5,title=script-injection::\
         params.x is pasted into `run`: use `| sh`, 100%25\n"
    );
}

#[test]
fn sarif_names_rules_and_places() {
    let diagnostics = samples();
    let found = sarif(&[FileReport { path: "dags/a b.yaml", diagnostics: &diagnostics }]);
    let run = &found["runs"][0];
    assert_eq!(found["version"], "2.1.0");
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 2);
    let first = &run["results"][0];
    assert_eq!((&first["ruleId"], &first["level"]), (&"unknown-key".into(), &"error".into()));
    let place = &first["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "dags/a%20b.yaml");
    assert_eq!(
        (&place["region"]["startLine"], &place["region"]["startColumn"]),
        (&41.into(), &5.into())
    );
    assert_eq!(run["results"][1]["level"], "warning");
}
