//! What became of each thing that a source said.

use crate::dag::DagFile;
use serde::Serialize;

/// What became of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKind {
    /// The source, or this part of it, cannot be read.
    Unreadable,
    /// A person decides: it was not taken over, or not wholly.
    NeedsPerson,
    Converted,
    /// It means nothing here.
    Ignored,
}

/// One line of the report.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Note {
    pub source: String,
    /// From 1.
    pub line: u32,
    pub kind: NoteKind,
    /// The DAG that it is about; empty if it is about none.
    pub dag_id: String,
    /// What the source says there.
    pub what: String,
    /// What that became, or why it did not become anything.
    pub why: String,
    /// What to do; empty if nothing.
    pub todo: String,
}

/// What an import gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Each one a sound DAG file, with a name of its own.
    pub files: Vec<DagFile>,
    /// By source and line.
    pub notes: Vec<Note>,
}

impl Imported {
    /// How many notes there are of a kind.
    pub fn count(&self, kind: NoteKind) -> usize {
        self.notes.iter().filter(|note| note.kind == kind).count()
    }
}

/// The notes of one source as they are made.
#[derive(Debug)]
pub(crate) struct Notes {
    source: String,
    /// What the next notes are about.
    pub(crate) dag_id: String,
    found: Vec<Note>,
}

/// Longest piece of a source in a note, in characters.
const SHOWN_MAX: usize = 100;

impl Notes {
    pub(crate) fn of(source: &str) -> Self {
        Self { source: source.to_owned(), dag_id: String::new(), found: Vec::new() }
    }

    /// Notes that were made before, and go on.
    pub(crate) fn from(source: &str, found: Vec<Note>) -> Self {
        let dag_id = found.first().map(|note| note.dag_id.clone()).unwrap_or_default();
        Self { source: source.to_owned(), dag_id, found }
    }

    pub(crate) fn converted(
        &mut self,
        line: u32,
        what: impl Into<String>,
        into: impl Into<String>,
    ) {
        self.add(NoteKind::Converted, line, &what.into(), [&into.into(), ""]);
    }

    pub(crate) fn needs(
        &mut self,
        line: u32,
        what: impl Into<String>,
        why: impl Into<String>,
        todo: impl Into<String>,
    ) {
        self.add(NoteKind::NeedsPerson, line, &what.into(), [&why.into(), &todo.into()]);
    }

    pub(crate) fn ignored(&mut self, line: u32, what: impl Into<String>, why: impl Into<String>) {
        self.add(NoteKind::Ignored, line, &what.into(), [&why.into(), ""]);
    }

    pub(crate) fn unreadable(
        &mut self,
        line: u32,
        why: impl Into<String>,
        todo: impl Into<String>,
    ) {
        self.add(NoteKind::Unreadable, line, "", [&why.into(), &todo.into()]);
    }

    fn add(&mut self, kind: NoteKind, line: u32, what: &str, [why, todo]: [&str; 2]) {
        let (source, dag_id) = (self.source.clone(), self.dag_id.clone());
        let (what, why, todo) = (shown(what), one_line(why), one_line(todo));
        self.found.push(Note { source, line, kind, dag_id, what, why, todo });
    }

    /// What needs a person of that DAG, one line each.
    pub(crate) fn open_points(&self, dag_id: &str) -> Vec<String> {
        let is_open = |note: &&Note| {
            note.kind == NoteKind::NeedsPerson && note.dag_id == dag_id && !dag_id.is_empty()
        };
        let line = |note: &Note| {
            let todo =
                if note.todo.is_empty() { String::new() } else { format!(" ({})", note.todo) };
            let file = note.source.rsplit('/').next().unwrap_or(&note.source);
            format!("{file}:{}: {}: {}{todo}", note.line, note.what, note.why)
        };
        self.found.iter().filter(is_open).map(line).collect()
    }

    pub(crate) fn finish(mut self) -> Vec<Note> {
        self.found.sort_by_key(|note| note.line);
        self.found.dedup();
        self.found
    }
}

fn shown(text: &str) -> String {
    let text = one_line(text);
    match text.char_indices().nth(SHOWN_MAX) {
        None => text,
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

/// Control characters as escapes: a source cannot forge lines or drive a terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.trim_end().chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}
