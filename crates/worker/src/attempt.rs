//! The worker's handle on attempts on disk: prepare, launch, survey, attach, prove absence.
//!
//! [`AttemptHost`] is the seam at which a simulator puts attempts that exist only in its memory;
//! [`OsHost`] is the real one. What a handle promises, whoever is behind it:
//! * a lock that is held means that a shim lives (or is about to); taking over is a compare-and-set
//!   on the page which also sets the deadline;
//! * with the lock free, either an outcome is there, or its absence is proved by writing one under
//!   the lock; only that is evidence;
//! * nothing is ever started twice in one directory: a new start of the same attempt (after
//!   `never_ran`) gets a directory of its own.

mod absent;
mod exit;
mod files;
mod os;
mod running;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;

use crate::dir::AttemptDir;
use crate::home::{epoch, registrations};
use crate::outcome::{Outcome, Reason};
use crate::page::{Lease, Phase, PushRefused};
use crate::process::ProcessId;
use crate::spec::{Level, ShimSpec};

pub(crate) use files::{ASSET_EVENTS, CHECKPOINT_IN, DEFER_EVENT, INPUTS, PARAMS, SCRIPT};
pub use files::{ForTask, FromTask, Stamp};
pub use os::{HomeBoot, OsHost};

/// Largest kept report that is read: outputs are the most of it, and these have a limit.
const REPORT_MAX: u64 = 16 << 20;

/// Why the host could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// A file operation failed.
    #[error("{what} `{}`", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// A name that is no plain file name.
    #[error("`{0}` cannot be the name of an attempt's directory")]
    Name(String),
    /// Nothing is started twice in one directory.
    #[error("the directory of attempt `{0}` exists already")]
    Exists(String),
    /// The lock is held and the page names no shim that lives: it is just being started, or has
    /// just ended. Ask again in a moment.
    #[error("attempt `{0}` is just being started or has just ended")]
    Starting(String),
    /// Another owner took the attempt over at the same instant.
    #[error("attempt `{0}` was taken over by another owner")]
    Contended(String),
    /// The shim lives in another PID namespace: it cannot be watched from here.
    #[error("the shim of attempt `{0}` lives in another PID namespace")]
    OtherNamespace(String),
    /// The shim has not ended.
    #[error("attempt `{0}` is still running")]
    StillRunning(String),
    /// The shim could not be spawned; nothing ran. Its absence is to be proved as any other.
    #[error("the shim of attempt `{name}` could not be spawned")]
    Spawn {
        /// The directory's name.
        name: String,
        /// Why.
        source: io::Error,
    },
}

impl HostError {
    /// A failed file operation.
    pub fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}

/// Where attempts live. Every call may block on the disk; [`AbsentAttempt::prove`] may take seconds.
///
/// The methods with a body are those of a real disk; who keeps attempts elsewhere replaces them.
pub trait AttemptHost: Send + Sync {
    /// False if no call ever blocks: the supervisor then makes them where it stands, without
    /// another thread.
    fn blocks(&self) -> bool {
        true
    }

    /// Why no claim should be taken now, in a sentence.
    fn trouble(&self, home: &Path) -> Option<String> {
        files::trouble(home)
    }

    /// The attempt has a directory here.
    fn exists(&self, name: &str) -> bool {
        self.dir(name).path().exists()
    }

    /// Writes what the task is given to read, and makes its state directory.
    fn write_files(&self, name: &str, files: &ForTask) -> Result<(), HostError> {
        let dir = self.dir(name);
        files::write(&dir, files).map_err(HostError::io("writing the files of", dir.path()))
    }

    /// At most `most` bytes of a file that the task has written; what cannot be read is missing.
    fn read_file(&self, name: &str, file: FromTask, most: u64) -> Option<Vec<u8>> {
        files::read(&file.path(&self.dir(name)), most)
    }

    /// Changes when the file does.
    fn stamp(&self, name: &str, file: FromTask) -> Option<Stamp> {
        files::stamp(&file.path(&self.dir(name)))
    }

    /// Tidies an attempt whose end was reported, and moves what is left out of the survey.
    fn archive(&self, home: &Path, name: &str) -> Result<(), HostError> {
        self.cleanup(name)?;
        crate::supervisor::archive(home, &self.dir(name))
    }

    /// It ended here, and was archived.
    fn was_archived(&self, home: &Path, name: &str) -> bool {
        crate::supervisor::archived(home, name).exists()
    }

    /// Keeps what was said of the end of an attempt, beside its outcome. The task's output files are tidied away.
    fn keep_report(&self, name: &str, report: &[u8]) -> Result<(), HostError> {
        let path = self.dir(name).report();
        files::write_owned(&path, report).map_err(HostError::io("writing", &path))
    }

    /// What was said of the end of an archived attempt; `None` if it was not kept.
    fn kept_report(&self, home: &Path, name: &str) -> Option<Vec<u8>> {
        let dir = AttemptDir::new(crate::supervisor::archived(home, name));
        files::read(&dir.report(), REPORT_MAX)
    }

    /// Adds a line to the log of an attempt whose shim is gone; one that lives writes its log itself.
    fn remark(&self, _name: &str, _text: &str) {}

    /// Removes a state directory in which nothing is kept.
    fn drop_state(&self, state: &Path) {
        // One that is not empty stays.
        let _ = std::fs::remove_dir(state);
    }

    /// What an attempt's shim was told to run; `None` if that cannot be read any more.
    fn spec(&self, name: &str) -> Option<ShimSpec> {
        ShimSpec::read(&self.dir(name)).ok()
    }

    /// The number of the home's next registration: above all before it and above `above`; on disk
    /// before it is returned.
    fn next_registration(&self, home: &Path, above: u64) -> Result<u64, HostError> {
        registrations::next(home, above).map_err(HostError::io("counting a registration in", home))
    }

    /// The highest epoch that the home has seen; 0: none.
    fn kept_epoch(&self, home: &Path) -> Result<u32, HostError> {
        epoch::kept(home).map_err(HostError::io("reading the epoch of", home))
    }

    /// Keeps an epoch in the home; on disk when this returns.
    fn keep_epoch(&self, home: &Path, epoch: u32) -> Result<(), HostError> {
        epoch::keep(home, epoch).map_err(HostError::io("keeping the epoch of", home))
    }

    /// The names of all attempts that have a directory here, in no order.
    fn survey(&self) -> Result<Vec<String>, HostError>;

    /// The paths of an attempt, also for building its environment before it is prepared.
    fn dir(&self, name: &str) -> AttemptDir;

    /// Makes the directory and takes its lock; nothing runs yet.
    fn prepare(
        &self,
        name: &str,
        spec: &ShimSpec,
        lease: Lease,
    ) -> Result<Box<dyn PreparedAttempt>, HostError>;

    /// Takes over what is there, whatever it is.
    fn attach(&self, name: &str, lease: Lease) -> Result<Attached, HostError>;

    /// After the end was reported: removes what only the task needed, keeps log and outcome.
    fn cleanup(&self, name: &str) -> Result<(), HostError>;

    /// After retention: removes everything, log and outcome too.
    fn remove(&self, name: &str) -> Result<(), HostError>;
}

/// Made, locked, and waiting for the store's answer to `start`.
pub trait PreparedAttempt: Send {
    /// Spawns the shim, which then holds the lock.
    fn launch(self: Box<Self>) -> Result<Box<dyn RunningAttempt>, HostError>;

    /// The store did not accept the start: writes `never_ran`.
    fn discard(self: Box<Self>, why: &str) -> Result<Outcome, HostError>;
}

/// A shim that lives, or has just ended. Dropping the handle leaves the shim alone.
pub trait RunningAttempt: Send + Sync {
    /// Moves the deadline (and the task's lease file with it). Costs the shim nothing.
    fn push(&self, deadline_ns: u64, now_ns: u64) -> Result<(), PushRefused>;

    /// Asks the shim to end the tree: SIGTERM first, or SIGKILL at once. The first reason stays.
    fn request_stop(&self, reason: Reason, kill_now: bool);

    /// Where it stands.
    fn progress(&self) -> Progress;

    /// Ready once the shim has ended. An error means that it has to be looked at again later.
    fn exited(&self) -> Exited<'_>;

    /// The shim's pidfd, if it is a process of this machine.
    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// After [`RunningAttempt::exited`] was ready: how it ended. `StillRunning` if it was
    /// called too early; it may be called again.
    fn finish(&self) -> Result<Finished, HostError>;
}

/// A wait for the end of a shim.
pub type Exited<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + Send + 'a>>;

/// A lock that is free and no outcome: the lock is held here until the proof.
pub trait AbsentAttempt: Send {
    /// Makes sure that nothing of the attempt runs, and writes `never_ran` or `gone`.
    fn prove(self: Box<Self>) -> Result<Absence, HostError>;
}

/// What [`AttemptHost::attach`] found.
pub enum Attached {
    /// It runs, and it is ours from here on.
    Running(Box<dyn RunningAttempt>),
    /// It ended while nobody looked.
    Ended(Outcome),
    /// Neither.
    Absent(Box<dyn AbsentAttempt>),
}

/// What [`RunningAttempt::finish`] found.
pub enum Finished {
    /// The shim has said how it ended.
    Outcome(Outcome),
    /// The shim died without a word.
    Absent(Box<dyn AbsentAttempt>),
}

/// What came of the proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// Evidence: the outcome that is now in the directory.
    Proven(Outcome),
    /// No evidence: processes may still run. Nothing was written; it can be tried again.
    Unknown {
        /// For people.
        why: String,
    },
}

/// Where a running attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// How far the shim has come.
    pub phase: Phase,
    /// The level of containment, once it is reached.
    pub level: Option<Level>,
    /// Owner and deadline.
    pub lease: Lease,
    /// The stop that was asked for.
    pub stop: Option<Reason>,
    /// When the user's program was let go, on the page's clock; 0 before.
    pub started_at_ns: u64,
    /// The last output (or CPU use, with a `stall_timeout`), on the page's clock.
    pub last_activity_ns: u64,
    /// Bytes of output so far.
    pub output_bytes: u64,
    /// The shim.
    pub shim: Option<ProcessId>,
    /// The first process of the tree.
    pub init: Option<ProcessId>,
}
