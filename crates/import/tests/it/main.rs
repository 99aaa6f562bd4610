//! Importers from the outside: text of other tools in, DAG files and a report out.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod cron;
mod dag_factory;
mod dagu;
mod systemd;

use fencepost_core::dag::Dag;
use fencepost_core::schedule::Calendar;
use fencepost_core::time::Timestamp;
use fencepost_import::{Imported, Note, NoteKind, Source};

fn source<'a>(name: &'a str, text: &'a str) -> Source<'a> {
    Source { name, bytes: text.as_bytes() }
}

/// `LINE KIND what -> why; todo` of the notes of a kind.
fn notes(imported: &Imported, kind: NoteKind) -> Vec<String> {
    let line = |note: &Note| {
        format!("{}:{} {} -> {}; {}", note.source, note.line, note.what, note.why, note.todo)
    };
    imported.notes.iter().filter(|note| note.kind == kind).map(line).collect()
}

/// The DAG of each file, read back: none has a mistake.
fn dags(imported: &Imported) -> Vec<Dag> {
    let dag = |file: &fencepost_import::DagFile| {
        let parsed = fencepost_dagfile::parse(file.text.as_bytes(), "x.yaml");
        let dag = parsed.dag.unwrap_or_else(|| panic!("{:?}\n{}", parsed.diagnostics, file.text));
        assert_eq!(dag.dag_id.as_str(), file.dag_id);
        assert_eq!(dag.is_paused_upon_creation, file.needs_person, "{}", file.text);
        dag
    };
    imported.files.iter().map(dag).collect()
}

/// The first instants of a DAG's schedule after another.
fn instants(dag: &Dag, after: &str, count: usize) -> Vec<String> {
    let calendar = Calendar::new(&dag.timing).unwrap();
    let mut at: Timestamp = after.parse().unwrap();
    let mut found = Vec::new();
    while let Some(slot) = calendar.next_after(at).filter(|_| found.len() < count) {
        at = slot.due_at;
        found.push(at.to_string());
    }
    found
}
