//! The epoch of a start: above everything that the store or this home has seen.
//!
//! A SQLite file can be put back from a copy, with a counter that lies below tokens that were
//! handed out already. The home keeps the highest epoch in a file of its own, so each start mints
//! above both (I2). Such a start is no plain one: what the copy shows as waiting may have run.

use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_store::query::installation::Installation;
use fencepost_worker::home::epoch;
use std::io;
use std::path::Path;

/// The epoch of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// Of a store that has lost nothing.
    Plain(u32),
    /// Above that epoch, which this home has seen and the store has not.
    PutBack { seen: u32, stored: u32 },
}

/// The epoch of this start.
pub(super) fn next(home: &Path, stored: Option<&Installation>) -> Outcome<Start> {
    let kept = epoch::kept(home).map_err(|error| unreadable(home, &error))?;
    Ok(match stored {
        Some(row) if kept > row.epoch => Start::PutBack { seen: kept, stored: row.epoch },
        Some(row) => Start::Plain(row.epoch + 1),
        // A fresh store has nothing to lose.
        None => Start::Plain(kept + 1),
    })
}

/// Keeps it, durably, before anything is minted in it.
pub(super) fn keep(home: &Path, epoch: u32) -> Outcome<()> {
    epoch::keep(home, epoch).map_err(|error| failed(home, &error))
}

fn failed(home: &Path, error: &io::Error) -> CliError {
    CliError::new(Exit::Unexpected, format!("{}: {error}", home.join(epoch::FILE).display()))
}

fn unreadable(home: &Path, error: &io::Error) -> CliError {
    if error.kind() != io::ErrorKind::InvalidData {
        return failed(home, error);
    }
    CliError::new(Exit::Unexpected, error.to_string())
        .hint("write the highest epoch that you know of (the first part of any token) into it")
}
