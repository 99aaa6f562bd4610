//! The epoch of a start: above everything that the store or this home has seen.
//!
//! A SQLite file can be put back from a copy, with a counter that lies below tokens that were
//! handed out already. The home keeps the highest epoch in a file of its own, so each start mints
//! above both (I2).

use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_store::query::installation::Installation;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const FILE: &str = "epoch";

/// The epoch of this start.
pub(super) fn next(home: &Path, stored: Option<&Installation>) -> Outcome<u32> {
    let stored = stored.map_or(0, |row| row.epoch);
    let kept = match std::fs::read_to_string(home.join(FILE)) {
        Ok(text) => text.trim().parse().map_err(|_| unreadable(home, &text))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
        Err(error) => return Err(failed(home, &error)),
    };
    Ok(stored.max(kept) + 1)
}

/// Keeps it, durably, before anything is minted in it.
pub(super) fn keep(home: &Path, epoch: u32) -> Outcome<()> {
    let write = || -> io::Result<()> {
        let tmp = home.join("epoch.tmp");
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o600).open(&tmp)?;
        writeln!(file, "{epoch}")?;
        file.sync_all()?;
        std::fs::rename(&tmp, home.join(FILE))?;
        File::open(home)?.sync_all()
    };
    write().map_err(|error| failed(home, &error))
}

fn failed(home: &Path, error: &io::Error) -> CliError {
    CliError::new(Exit::Unexpected, format!("{}: {error}", home.join(FILE).display()))
}

fn unreadable(home: &Path, text: &str) -> CliError {
    let path = home.join(FILE);
    CliError::new(Exit::Unexpected, format!("{}: `{}` is no epoch", path.display(), text.trim()))
        .hint("write the highest epoch that you know of (the first part of any token) into it")
}
