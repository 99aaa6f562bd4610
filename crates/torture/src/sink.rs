//! Two sinks that tasks write to: one that takes everything, and one with a fence.
//!
//! Fencepost offers no fence for files in this version, so the harness has one of its own: a file for
//! each task instance, whose lines carry tokens. Under its lock a writer raises the fence to its token
//! when it begins, and its write is refused once a larger token has been there.

use std::fs::File;
use std::io::{Read as _, Result, Write as _};
use std::path::{Path, PathBuf};

use crate::clock::boot_ns;
use crate::ledger::TiKey;

/// What is done at the fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The writer announces its token.
    Raise,
    /// It writes.
    Write,
}

impl Step {
    const fn word(self) -> &'static str {
        match self {
            Self::Raise => "raise",
            Self::Write => "write",
        }
    }
}

/// A line of a fenced file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub step: Step,
    pub token: i64,
    pub at: u64,
}

/// The fenced file of an instance.
pub fn place(folder: &Path, ti: &TiKey) -> PathBuf {
    folder.join(format!("{}~{}~{}", ti.dag, ti.run, ti.task))
}

/// Whose a fenced file is.
pub fn owner(path: &Path) -> Option<TiKey> {
    let name = path.file_name()?.to_str()?;
    let mut words = name.split('~').map(ToOwned::to_owned);
    Some(TiKey { dag: words.next()?, run: words.next()?, task: words.next()? })
}

/// Takes the step under the file's lock, unless a larger token has been there; whether it was taken.
pub fn pass(path: &Path, step: Step, token: i64) -> Result<bool> {
    let mut file = File::options().read(true).append(true).create(true).open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let highest = marks(&text).iter().map(|mark| mark.token).max();
    if highest.is_some_and(|highest| highest > token) {
        return Ok(false);
    }
    file.write_all(format!("{} {token} {}\n", step.word(), boot_ns()).as_bytes())?;
    Ok(true)
}

/// The lines of a fenced file.
pub fn marks(text: &str) -> Vec<Mark> {
    let read = |line: &str| {
        let mut words = line.split(' ');
        let step = match words.next()? {
            "raise" => Step::Raise,
            "write" => Step::Write,
            _ => return None,
        };
        let token = words.next()?.parse().ok()?;
        Some(Mark { step, token, at: words.next()?.parse().ok()? })
    };
    text.lines().filter_map(read).collect()
}

/// Appends to the sink that takes everything.
pub fn append(path: &Path, ti: &TiKey, token: i64) -> Result<()> {
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(format!("{token} {} {ti}\n", boot_ns()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_token_is_refused_once_a_larger_one_was_there() -> Result<()> {
        let folder = tempfile::tempdir()?;
        let ti = TiKey { dag: "d".into(), run: "r".into(), task: "t".into() };
        let path = place(folder.path(), &ti);
        assert_eq!(owner(&path), Some(ti));
        assert!(pass(&path, Step::Raise, 5)?);
        assert!(pass(&path, Step::Raise, 7)?);
        assert!(!pass(&path, Step::Write, 5)?, "a late write");
        assert!(pass(&path, Step::Write, 7)?);
        let marks = marks(&std::fs::read_to_string(&path)?);
        let seen: Vec<(Step, i64)> = marks.iter().map(|mark| (mark.step, mark.token)).collect();
        assert_eq!(seen, [(Step::Raise, 5), (Step::Raise, 7), (Step::Write, 7)]);
        Ok(())
    }
}
