//! What is wrong with a file: place, message, mend.

use std::collections::BTreeSet;

/// Most diagnostics reported for one file; the rest is counted.
const REPORTED_MAX: usize = 200;
/// Longest piece of the file that is quoted in a message, in characters.
const QUOTED_MAX: usize = 80;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The file makes no DAG.
    Error,
    /// It does, and this may surprise.
    Warn,
}

impl Severity {
    /// `error` or `warn`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
        }
    }
}

/// A line and a column of the file, both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl Place {
    /// The place of what concerns the whole file.
    pub const FILE: Self = Self { line: 1, column: 1 };
}

/// One mistake or doubt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    pub line: u32,
    pub column: u32,
    pub severity: Severity,
    /// A stable name: `unknown-key`.
    pub code: &'static str,
    /// What is wrong, on one line.
    pub message: String,
    /// What to write instead, on one line; may be empty.
    pub hint: String,
}

/// The diagnostics of one file as they are found.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: BTreeSet<Diagnostic>,
    left_out: usize,
    errors: usize,
}

impl Findings {
    pub(crate) fn error(
        &mut self,
        place: Place,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.errors += 1;
        self.add(Severity::Error, place, code, (message.into(), hint.into()));
    }

    pub(crate) fn warn(
        &mut self,
        place: Place,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Warn, place, code, (message.into(), hint.into()));
    }

    /// Errors so far, those left out included.
    pub(crate) fn error_count(&self) -> usize {
        self.errors
    }

    /// Whether that line has one already.
    pub(crate) fn is_on_line(&self, line: u32) -> bool {
        self.found.iter().any(|known| known.line == line)
    }

    /// Whether another one is not worth much work any more.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= REPORTED_MAX
    }

    fn add(
        &mut self,
        severity: Severity,
        place: Place,
        code: &'static str,
        (message, hint): (String, String),
    ) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        // An anchored part that is used twice is judged twice; the set keeps one.
        self.found.insert(Diagnostic {
            line: place.line,
            column: place.column,
            severity,
            code,
            message: one_line(&message),
            hint: one_line(&hint),
        });
    }

    /// In the order of the file.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        if self.left_out > 0 {
            let severity = if self.errors > 0 { Severity::Error } else { Severity::Warn };
            self.found.insert(Diagnostic {
                line: Place::FILE.line,
                column: Place::FILE.column,
                severity,
                code: "too-many",
                message: format!("{} more like these are not shown", self.left_out),
                hint: "mend the first ones and validate again".into(),
            });
        }
        self.found.into_iter().collect()
    }
}

/// A piece of the file within a message: in backticks, shortened.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_MAX) {
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}...`", &text[..end]),
    }
}

/// Control characters as escapes, so that a file cannot forge lines or drive a terminal.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}
