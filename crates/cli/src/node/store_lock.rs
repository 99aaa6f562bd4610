//! One standalone per SQLite store, also when two homes name the same file.

use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Locks `STORE.lock` until the file is dropped or the process ends.
pub(super) fn take(store: &Path) -> Outcome<File> {
    let path = store.with_added_extension("lock");
    let failed = |error: std::io::Error| {
        CliError::new(Exit::Unexpected, format!("{}: {error}", path.display()))
    };
    if let Some(folder) = store.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let lock = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let message = format!("another standalone uses the store {}", store.display());
            Err(CliError::new(Exit::Conflict, message)
                .hint("end it first, or give this one a store of its own: [store] url"))
        }
        Err(error) => Err(failed(error.into())),
    }
}
