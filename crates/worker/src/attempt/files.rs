//! The files between the worker and a task, on a real disk.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::dir::AttemptDir;
use crate::private::Private;
use crate::sys::Account;

/// Under this much free space nothing new is started.
const LEAST_FREE: u64 = 32 << 20;

/// What a task is given to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForTask {
    /// The script that its command runs.
    pub script: Option<String>,
    /// What the attempts before it left.
    pub checkpoint: Option<Vec<u8>>,
    /// Its parameters, as JSON.
    pub params: String,
    /// The outputs of its upstreams, as JSON.
    pub inputs: String,
    /// The events of assets that made the run, as JSON.
    pub asset_events: Option<String>,
    /// What came of the wait that it was deferred for, as JSON.
    pub defer_event: Option<String>,
    /// The user that it runs as, if not the worker's.
    pub owner: Option<String>,
    /// The directory that it keeps from one attempt to the next.
    pub state: PathBuf,
    /// Its secrets and connections, with the directory that they go to.
    pub private: Option<(PathBuf, Private)>,
}

/// A file that a task may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FromTask {
    /// `FENCEPOST_OUTPUT_FILE`.
    Outputs,
    /// `FENCEPOST_RESULT_FILE`.
    Result,
    /// `FENCEPOST_CHECKPOINT_OUT`.
    Checkpoint,
    /// `FENCEPOST_DEFER_FILE`.
    Defer,
}

impl FromTask {
    /// Where it is.
    pub fn path(self, dir: &AttemptDir) -> PathBuf {
        dir.io().join(match self {
            Self::Outputs => "outputs",
            Self::Result => "result.json",
            Self::Checkpoint => "checkpoint_out",
            Self::Defer => "defer.json",
        })
    }
}

/// A state of a file: its length and its last change.
pub type Stamp = (u64, Option<SystemTime>);

pub(crate) const SCRIPT: &str = "script";
pub(crate) const PARAMS: &str = "params.json";
pub(crate) const INPUTS: &str = "inputs.json";
pub(crate) const ASSET_EVENTS: &str = "asset_events.json";
pub(crate) const CHECKPOINT_IN: &str = "checkpoint_in";
pub(crate) const DEFER_EVENT: &str = "defer_event.json";

pub(super) fn write(dir: &AttemptDir, files: &ForTask) -> io::Result<()> {
    let owner = files.owner.as_deref();
    // Another user cannot read what only root may; his directory is closed to everybody else.
    let mode = if owner.is_some() { 0o644 } else { 0o600 };
    let write = |name: &str, content: &[u8]| -> io::Result<()> {
        let path = dir.io().join(name);
        let mut file = File::options().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(content)
    };
    if let Some(script) = &files.script {
        write(SCRIPT, script.as_bytes())?;
    }
    if let Some(checkpoint) = &files.checkpoint {
        write(CHECKPOINT_IN, checkpoint)?;
    }
    if let Some(event) = &files.defer_event {
        write(DEFER_EVENT, event.as_bytes())?;
    }
    if let Some((place, private)) = &files.private {
        private.write(place, owner)?;
    }
    if let Some(events) = &files.asset_events {
        write(ASSET_EVENTS, events.as_bytes())?;
    }
    write(PARAMS, files.params.as_bytes())?;
    write(INPUTS, files.inputs.as_bytes())?;
    DirBuilder::new().recursive(true).mode(0o711).create(&files.state)?;
    // An unknown user is the shim's to report, with everything else that cannot be executed.
    if let Some(account) = owner.map(Account::lookup).transpose()?.flatten() {
        chown(&files.state, Some(account.uid), Some(account.gid))?;
    }
    Ok(())
}

/// Writes a file that nobody else may read.
pub(super) fn write_owned(path: &Path, content: &[u8]) -> io::Result<()> {
    File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?
        .write_all(content)
}

pub(super) fn read(path: &Path, most: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let meta = fs::metadata(path).ok().filter(|meta| meta.is_file())?;
    Some((meta.len(), meta.modified().ok()))
}

/// Why no claim should be taken, in a sentence; `None` if the disk has room: without it a worker
/// takes no claims, and keeps its results.
pub(super) fn trouble(home: &Path) -> Option<String> {
    let stat = rustix::fs::statvfs(home).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    (free < LEAST_FREE).then(|| {
        format!(
            "the disk of {} is full ({} KiB free): no attempt is claimed until {} MiB are free",
            home.display(),
            free >> 10,
            LEAST_FREE >> 20
        )
    })
}
