//! Diagnostics for people and tools: lines, JSON, SARIF, GitHub annotations.

mod sarif;

pub use sarif::sarif;

use crate::diagnostic::{Diagnostic, Severity};
use serde_json::{Value, json};

/// The diagnostics of one file, with its path as it was given.
#[derive(Debug, Clone, Copy)]
pub struct FileReport<'a> {
    pub path: &'a str,
    pub diagnostics: &'a [Diagnostic],
}

/// Columns are padded up to this width.
const PADDED_MAX: usize = 60;

fn each<'a>(files: &'a [FileReport<'a>]) -> impl Iterator<Item = (&'a str, &'a Diagnostic)> {
    files.iter().flat_map(|file| file.diagnostics.iter().map(|d| (file.path, d)))
}

/// `PATH:LINE:COL  error|warn  MESSAGE  HINT  [CODE]`, one line each, in columns.
pub fn lines(files: &[FileReport<'_>]) -> String {
    let rows: Vec<[String; 4]> = each(files)
        .map(|(path, d)| {
            let place = format!("{path}:{}:{}", d.line, d.column);
            [place, d.severity.as_str().into(), d.message.clone(), d.hint.clone()]
        })
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0).min(PADDED_MAX)
    };
    let widths = [width(0), 5, width(2), width(3)];
    let mut out = String::new();
    for (row, (_, diagnostic)) in rows.iter().zip(each(files)) {
        for (cell, width) in row.iter().zip(widths) {
            if !cell.is_empty() || width > 0 {
                out.push_str(&format!("{cell:width$}  "));
            }
        }
        out.push_str(&format!("[{}]\n", diagnostic.code));
    }
    out
}

/// `3 files, 2 DAGs, 2 errors, 2 warnings`.
pub fn summary(files: &[FileReport<'_>], dags: usize) -> String {
    let count = |severity| each(files).filter(|(_, d)| d.severity == severity).count();
    let some = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    [
        some(files.len(), "file"),
        some(dags, "DAG"),
        some(count(Severity::Error), "error"),
        some(count(Severity::Warn), "warning"),
    ]
    .join(", ")
}

/// `[{path, line, column, severity, code, message, hint}]`.
pub fn json(files: &[FileReport<'_>]) -> Value {
    let object = |(path, d): (&str, &Diagnostic)| {
        json!({
            "path": path,
            "line": d.line,
            "column": d.column,
            "severity": d.severity.as_str(),
            "code": d.code,
            "message": d.message,
            "hint": d.hint,
        })
    };
    each(files).map(object).collect()
}

/// Workflow commands that GitHub shows beside the lines of a change.
pub fn github(files: &[FileReport<'_>]) -> String {
    let mut out = String::new();
    for (path, d) in each(files) {
        let command = match d.severity {
            Severity::Error => "error",
            Severity::Warn => "warning",
        };
        let hint = if d.hint.is_empty() { String::new() } else { format!(": {}", d.hint) };
        let message = escape_data(&format!("{}{hint}", d.message));
        let (path, title) = (escape_property(path), escape_property(d.code));
        let place = format!("file={path},line={},col={}", d.line, d.column);
        out.push_str(&format!("::{command} {place},title={title}::{message}\n"));
    }
    out
}

fn escape_data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn escape_property(text: &str) -> String {
    escape_data(text).replace(':', "%3A").replace(',', "%2C")
}
