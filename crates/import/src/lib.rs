//! Importers: what other tools schedule, as DAG files and a report.
//!
//! Text in, text and notes out. Each thing that a source says ends in one of three places: in a DAG
//! file, among what needs a person (with the line, the reason and what to do), or among what means
//! nothing here. Nothing is dropped in silence, and nothing is guessed: a task that cannot be
//! converted is written as one that fails and says why, and a DAG that needs a person is written paused.
//!
//! Every file that is returned has been read by `fencepost_dagfile::parse` without an error.
//!
//! Absent on purpose: files and folders, the machine's time zone, the user. A caller hands them in.

mod cron;
mod dag;
mod dag_factory;
mod dagu;
mod names;
mod print;
mod report;
mod script;
mod systemd;
mod yaml;

pub use cron::{CronForm, CronOptions, cron};
pub use dag::DagFile;
pub use dag_factory::dag_factory;
pub use dagu::dagu;
pub use report::{Imported, Note, NoteKind};
pub use systemd::systemd;

/// A file to convert.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// What the report calls it; its last part gives names.
    pub name: &'a str,
    pub bytes: &'a [u8],
}

/// The text of a source, or a note on why there is none.
fn text_of<'a>(source: &Source<'a>, notes: &mut report::Notes) -> Option<&'a str> {
    let most = fencepost_dagfile::FILE_MAX;
    if source.bytes.len() > most {
        notes.unreadable(1, "the file is larger than 1 MiB", "split it");
        return None;
    }
    match std::str::from_utf8(source.bytes) {
        Ok(text) if text.contains('\0') => {
            notes.unreadable(1, "it has a NUL byte", "it is no text file");
            None
        }
        Ok(text) => Some(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let before = &source.bytes[..error.valid_up_to()];
            let line = before.split(|byte| *byte == b'\n').count();
            let line = u32::try_from(line).unwrap_or(u32::MAX);
            notes.unreadable(line, "this byte is not UTF-8", "save the file as UTF-8");
            None
        }
    }
}
