//! The keys of secrets: from the configuration, or the file that standalone makes.

use crate::config::Settings;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_server::vault::Keyring;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// What becomes of a file that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// One process is everything: it makes a key of its own.
    Make,
    /// Several processes must have the same keys, which a person gives them. Without any, whatever needs
    /// one says so.
    DoWithout,
}

/// The keys of this process.
pub(super) fn load(settings: &Settings, absent: Absent) -> Outcome<Arc<Keyring>> {
    if let Some(keys) = settings.text("secrets.keys") {
        return parse(keys, "secrets.keys");
    }
    let Some(path) = settings.text("secrets.key_file").map(Path::new) else {
        return Ok(Arc::new(Keyring::none()));
    };
    match read(path) {
        Ok(text) => parse(&text, &path.display().to_string()),
        Err(error) if error.kind() == ErrorKind::NotFound && absent == Absent::DoWithout => {
            Ok(Arc::new(Keyring::none()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => make(path),
        Err(error) => Err(CliError::usage(format!("{}: {error}", path.display()))),
    }
}

fn parse(text: &str, place: &str) -> Outcome<Arc<Keyring>> {
    let parsed = Keyring::parse(text);
    parsed.map(Arc::new).map_err(|error| CliError::usage(format!("{place}: {error}")))
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        let text = "others can read it: chmod 600, and think of the keys as known";
        return Err(std::io::Error::other(text));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

fn make(path: &Path) -> Outcome<Arc<Keyring>> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::new(Exit::Unexpected, format!("{}: {error}", path.display()))
    };
    let key = Keyring::fresh_key().map_err(|error| failed(&error))?;
    // Whole or not at all: half a key would be refused at every later start.
    let beside = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        writeln!(file, "{key}")?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|error| failed(&error))?;
    parse(&key, &path.display().to_string())
}
