//! `[Service]`: what runs, as tasks.

mod keys;
mod lines;

use super::span;
use super::unit::Unit;
use super::words::Specifiers;
use crate::dag::Draft;
use crate::report::Notes;
use crate::script;
use lines::Line;
use serde_json::{Map, Value, json};

/// Where the notes of a service go, and how its text is read.
pub(super) struct Reading<'a> {
    pub(super) unit: &'a Unit,
    pub(super) specifiers: Specifiers<'a>,
    pub(super) notes: &'a mut Notes,
}

/// Adds the tasks of a service to a DAG.
pub(super) fn read(name: &str, reading: &mut Reading<'_>, draft: &mut Draft) {
    let kind =
        reading.unit.last("Service", "Type").map_or("simple", |a| a.value.as_str()).to_owned();
    let mut shared = Map::new();
    keys::read(reading, &kind, draft, &mut shared);
    let prelude = files(reading);
    let before: Vec<Line> = ["ExecCondition", "ExecStartPre"]
        .iter()
        .flat_map(|key| lines::read(reading, key))
        .collect();
    let start = lines::read(reading, "ExecStart");
    let after = lines::read(reading, "ExecStartPost");
    if start.is_empty() {
        let place = reading.unit.assignments.first().map_or(1, |a| a.line);
        reading.notes.needs(
            place,
            name,
            "the service has no ExecStart that could be taken over",
            "say what it runs",
        );
    }
    let codes = success_codes(reading);
    let task = crate::names::clean(name).unwrap_or_else(|| "run".to_owned());
    let main = match (
        start.as_slice(),
        before.is_empty() && after.is_empty() && prelude.is_empty() && codes.is_empty(),
    ) {
        ([], _) => refused(&format!("{name}.service says nothing to run")),
        ([only], true) if only.argv().is_some() => {
            let words: Vec<Value> = only
                .argv()
                .unwrap_or_default()
                .iter()
                .map(|word| json!(script::literal(word)))
                .collect();
            Map::from_iter([("command".to_owned(), Value::Array(words))])
        }
        _ => {
            let all: Vec<&Line> = before.iter().chain(&start).chain(&after).collect();
            let text: String = all.iter().map(|line| line.shell(&codes)).collect();
            shell(&format!("{prelude}{text}"))
        }
    };
    insert(draft, &task, main, &shared, &[]);
    let stop = lines::read(reading, "ExecStop");
    if !stop.is_empty() {
        let text: String = stop.iter().map(|line| line.shell(&[])).collect();
        insert(
            draft,
            &format!("{task}.stop"),
            shell(&format!("{prelude}{text}")),
            &shared,
            &[(&task, false)],
        );
    }
    let cleanup = lines::read(reading, "ExecStopPost");
    if !cleanup.is_empty() {
        let text: String = cleanup.iter().map(|line| line.shell(&[])).collect();
        let ahead = if stop.is_empty() { task.clone() } else { format!("{task}.stop") };
        insert(
            draft,
            &format!("{task}.stop_post"),
            shell(&format!("{prelude}{text}")),
            &shared,
            &[(&ahead, true)],
        );
    }
}

/// A task that runs a script without expanding patterns, as systemd does not.
fn shell(text: &str) -> Map<String, Value> {
    Map::from_iter([
        ("run".to_owned(), json!(script::literal(text))),
        ("shell".to_owned(), json!(["/bin/sh", "-ef"])),
    ])
}

fn refused(what: &str) -> Map<String, Value> {
    Map::from_iter([("run".to_owned(), json!(script::refuses(what)))])
}

/// Adds a task after others; `true`: as their teardown.
fn insert(
    draft: &mut Draft,
    task: &str,
    action: Map<String, Value>,
    shared: &Map<String, Value>,
    after: &[(&str, bool)],
) {
    let mut keys = action;
    let names: Vec<Value> = after.iter().map(|(name, _)| json!(name)).collect();
    if !names.is_empty() {
        keys.insert("depends_on".into(), Value::Array(names));
    }
    if after.iter().any(|(_, is_teardown)| *is_teardown) {
        keys.insert("teardown".into(), json!(true));
    }
    keys.extend(shared.clone());
    draft.tasks.insert(task.to_owned(), Value::Object(keys));
}

/// The shell that reads `EnvironmentFile=`.
fn files(reading: &mut Reading<'_>) -> String {
    let mut text = String::new();
    for assignment in reading.unit.all("Service", "EnvironmentFile") {
        let what = format!("EnvironmentFile={}", assignment.value);
        let (path, may_lack) = match assignment.value.strip_prefix('-') {
            Some(path) => (path, true),
            None => (assignment.value.as_str(), false),
        };
        match reading.specifiers.expand(path) {
            Ok(path) if !path.contains('*') => {
                let path = script::quote(&path);
                let read = format!("set -a; . {path}; set +a");
                let guarded = format!("if [ -e {path} ]; then {read}; fi");
                text.push_str(&format!("{}\n", if may_lack { guarded } else { read }));
                reading.notes.converted(
                    assignment.line,
                    what,
                    "the script reads it as shell: values with blanks or $ must be quoted there",
                );
            }
            Ok(_) => reading.notes.needs(
                assignment.line,
                what,
                "it is a pattern",
                "read the files in the script",
            ),
            Err(specifier) => {
                reading.notes.needs(
                    assignment.line,
                    what,
                    format!("only the machine knows {specifier}"),
                    "write the path",
                );
            }
        }
    }
    text
}

/// Exit statuses that mean success, besides 0.
fn success_codes(reading: &mut Reading<'_>) -> Vec<u8> {
    let mut codes = Vec::new();
    for assignment in reading.unit.all("Service", "SuccessExitStatus") {
        let what = format!("SuccessExitStatus={}", assignment.value);
        let read: Option<Vec<u8>> = assignment.value.split_whitespace().map(exit_status).collect();
        if let Some(read) = read {
            codes.extend(read);
            reading.notes.converted(assignment.line, what, "the script turns them into 0");
        } else {
            let todo = "turn its exit status into 0 in the script";
            reading.notes.needs(
                assignment.line,
                what,
                "it has names of signals or of exit statuses",
                todo,
            );
        }
    }
    codes
}

/// A span as a duration; a note if it is none.
fn duration(reading: &mut Reading<'_>, name: &str) -> Option<(u32, String)> {
    let assignment = reading.unit.last("Service", name)?;
    match span::micros(&assignment.value) {
        Some(u64::MAX | 0) => None,
        Some(micros) => Some((assignment.line, span::duration(micros))),
        None => {
            let what = format!("{name}={}", assignment.value);
            reading.notes.needs(assignment.line, what, "it is no time span", "mend it");
            None
        }
    }
}

/// An exit status by its number, or by its name in `sysexits.h`.
fn exit_status(word: &str) -> Option<u8> {
    const NAMES: [&str; 15] = [
        "USAGE",
        "DATAERR",
        "NOINPUT",
        "NOUSER",
        "NOHOST",
        "UNAVAILABLE",
        "SOFTWARE",
        "OSERR",
        "OSFILE",
        "CANTCREAT",
        "IOERR",
        "TEMPFAIL",
        "PROTOCOL",
        "NOPERM",
        "CONFIG",
    ];
    let named =
        NAMES.iter().position(|name| *name == word).and_then(|place| u8::try_from(64 + place).ok());
    named.or_else(|| word.parse().ok())
}
