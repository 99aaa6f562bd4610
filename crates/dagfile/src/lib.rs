//! DAG files: YAML in, a `Dag` or all of its mistakes out, each with a line, a column and a mend.
//!
//! - `parse` reads a file under budgets (size, depth, nodes, aliases): whatever the bytes are, it
//!   answers within a bounded time and memory and never panics.
//! - `ir` and `from_ir` are the form in which a version is stored; `content_hash` names it.
//! - `template` renders what the file's templates say for one attempt.
//! - `schema` is the JSON schema for editors, made from the same table of keys as the validation.
//! - `document` is the YAML reader alone, for files of other tools.
//! - `render` prints diagnostics for people and tools.
//!
//! Absent on purpose: files and folders (a caller hands in bytes; `read_bounded` is the one
//! exception), the store, clocks.

mod diagnostic;
pub mod document;
mod ir;
mod keys;
mod lint;
pub mod params;
mod read;
pub mod render;
mod schema;
mod suggest;
pub mod template;
mod yaml;

pub use diagnostic::{Diagnostic, Place, Severity};
pub use ir::{IrError, content_hash, from_ir, ir};
pub use schema::schema;

use diagnostic::Findings;
use fencepost_core::dag::Dag;
use std::io::Read;
use std::path::Path;

/// Largest DAG file in bytes.
pub const FILE_MAX: usize = 1 << 20;

/// What a file said.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The DAG, if there was no error.
    pub dag: Option<Dag>,
    /// Errors and warnings in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// How many of the diagnostics are errors.
    pub fn error_count(&self) -> usize {
        self.diagnostics.iter().filter(|d| d.severity == Severity::Error).count()
    }
}

/// Reads a DAG file. `file_name` gives the default `dag_id`: its last part without the extension.
pub fn parse(text: &[u8], file_name: &str) -> Parsed {
    let mut findings = Findings::default();
    let dag = text_of(text, &mut findings).and_then(|text| {
        let root = yaml::read(text, &mut findings)?;
        let reading = read::read(&root, stem(file_name), &mut findings)?;
        lint::check(&reading, text, &mut findings);
        reading.into_dag(&mut findings)
    });
    Parsed { dag, diagnostics: findings.finish() }
}

/// The bytes of a file for `parse`: at most one more than `FILE_MAX`, however large the file is.
pub fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(FILE_MAX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn stem(file_name: &str) -> &str {
    let name = file_name.rsplit(['/', '\\']).next().unwrap_or(file_name);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

fn text_of<'a>(bytes: &'a [u8], findings: &mut Findings) -> Option<&'a str> {
    if bytes.len() > FILE_MAX {
        let message = "the file is larger than 1 MiB";
        findings.error(Place::FILE, "too-large", message, "keep data out of the DAG file");
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let valid = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            let place = yaml::place_in(valid, valid.len());
            findings.error(place, "not-utf8", "this byte is not UTF-8", "save the file as UTF-8");
            return None;
        }
    };
    if let Some(offset) = text.find('\0') {
        let place = yaml::place_in(text, offset);
        findings.error(place, "nul-byte", "a NUL byte", "a DAG file is text; take it out");
        return None;
    }
    Some(text)
}
