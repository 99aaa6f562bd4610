//! The home of a worker: one living worker per home, by a lock that is held for its life.
//!
//! Beside the `lock` stands `holder`, which says whose home it is and who holds it, and `turn`,
//! the last turn of the holder's loop. A newcomer of another installation or machine refuses
//! always: what this home says about processes would be wrong there. File systems on which a
//! lock may be granted twice (network and FUSE ones) are refused.
//!
//! Absent on purpose: what a worker does with the attempts that it finds (see `attempt`).

pub mod epoch;
mod file_system;
mod holder;
pub(crate) mod registrations;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::getpid;
use serde::{Deserialize, Serialize};

use self::file_system::check_local;
use self::holder::{end_holder, lock_unless_alive, wait_for_lock};
use crate::attempt::HomeBoot;
use crate::clock::BootId;
use crate::process::{ProcessId, pid_namespace};

/// Who wants the home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeClaim {
    /// The installation that the worker belongs to.
    pub installation_id: String,
    /// Of the machine ([`machine_id`]); `None` where it cannot be told.
    pub machine_id: Option<String>,
    /// The worker's name, for people.
    pub worker_name: String,
}

/// What to do about a holder that lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOver {
    /// End it only if it is stopped, or its loop has not turned for this long (3 beats).
    IfStalled {
        /// Nanoseconds of CLOCK_BOOTTIME.
        quiet_ns: u64,
    },
    /// End it in any case (`--take-over`).
    Always,
}

/// The `holder` file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeRecord {
    /// The home's own id, drawn once.
    pub home_id: String,
    /// The installation that it belongs to.
    pub installation_id: String,
    /// The machine that it is on.
    #[serde(default)]
    pub machine_id: Option<String>,
    /// The last holder's name.
    pub worker_name: String,
    /// The last holder's pid; 0 after it gave the home up.
    pub pid: i32,
    /// The last holder's start time, in ticks.
    pub start: u64,
    /// The PID namespace in which that pid means something.
    pub pid_namespace: u64,
    /// The boot during which the home was last taken.
    pub boot_id: String,
}

/// Why the home cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
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
    /// A lock means nothing there.
    #[error("the home `{}` is on a {kind} file system; it must be on a local disk", home.display())]
    NotLocal {
        /// The home.
        home: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
    /// Somebody lives there.
    #[error(
        "the home is held by worker `{name}` (pid {pid}); end it, or take over with --take-over"
    )]
    Held {
        /// Of the holder.
        pid: i32,
        /// Of the holder.
        name: String,
        /// Since its loop's last turn, on CLOCK_BOOTTIME; `None` if it never turned.
        quiet_ns: Option<u64>,
    },
    /// A holder that was told to go is still there.
    #[error("the holder of the home (worker `{name}`, pid {pid}) does not end")]
    DoesNotEnd {
        /// Of the holder.
        pid: i32,
        /// Of the holder.
        name: String,
    },
    /// The home belongs to another installation.
    #[error("the home belongs to installation {found}, not to {wanted}")]
    OtherInstallation {
        /// In the home.
        found: String,
        /// Of the newcomer.
        wanted: String,
    },
    /// The home was made on another machine.
    #[error("the home belongs to machine {found}; this is {wanted}")]
    OtherMachine {
        /// In the home.
        found: String,
        /// Of the newcomer.
        wanted: String,
    },
    /// The `holder` file is not readable: nothing is concluded from it.
    #[error("`{}` cannot be read as the record of a home; move it away to begin anew", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
}

impl HomeError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { what, path, source }
    }
}

/// A home that is ours until this is dropped or the process ends.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
    /// Close-on-exec, as everything that the standard library opens: no child ever holds it.
    _lock: File,
    turn: File,
    record: HomeRecord,
    previous: Option<HomeRecord>,
}

impl Home {
    /// Whether this boot is the one of the last holder.
    pub fn boot(&self) -> HomeBoot {
        match &self.previous {
            Some(previous) if previous.boot_id != self.record.boot_id => HomeBoot::New,
            _ => HomeBoot::Same,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Our own record.
    pub fn record(&self) -> &HomeRecord {
        &self.record
    }

    /// The last holder's record: another name is worth an event.
    pub fn previous(&self) -> Option<&HomeRecord> {
        self.previous.as_ref()
    }

    /// The loop has turned; `now_ns` is CLOCK_BOOTTIME. A failure only makes us look stalled.
    pub fn turned(&self, now_ns: u64) {
        let _ = self.turn.write_all_at(format!("{now_ns:020}\n").as_bytes(), 0);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // So that nobody ends this process for a home that it does not hold any more.
        let record = HomeRecord { pid: 0, start: 0, ..self.record.clone() };
        let _ = write_record(&self.path, &record);
    }
}

/// The machine's id; containers often have none.
pub fn machine_id() -> Option<String> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id", "/sys/class/dmi/id/product_uuid"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .map(|text| text.trim().to_owned())
        .find(|text| !text.is_empty() && text != "uninitialized")
}

/// Takes the home (made if missing), or says who has it.
pub fn lock(home: &Path, claim: &HomeClaim, take_over: TakeOver) -> Result<Home, HomeError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o711)
        .create(home)
        .map_err(HomeError::io("making", home))?;
    let path = home.join("lock");
    let lock = open(&path)?;
    check_local(home, &lock)?;
    if !lock_unless_alive(home, &lock, &path)? {
        end_holder(home, claim, take_over)?;
        wait_for_lock(home, &lock, &path)?;
    }
    let previous = read_record(home)?;
    if let Some(previous) = &previous {
        check_ours(previous, claim)?;
    }
    let record = own_record(home, claim, previous.as_ref())?;
    let turn = open(&home.join("turn"))?;
    turn.set_len(0).map_err(HomeError::io("clearing", home))?;
    write_record(home, &record).map_err(HomeError::io("writing the record of", home))?;
    Ok(Home { path: home.to_owned(), _lock: lock, turn, record, previous })
}

fn open(path: &Path) -> Result<File, HomeError> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(HomeError::io("opening", path))
}

fn try_lock(lock: &File, path: &Path) -> Result<bool, HomeError> {
    match flock(lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(HomeError::io("locking", path)(error.into())),
    }
}

fn check_ours(record: &HomeRecord, claim: &HomeClaim) -> Result<(), HomeError> {
    if record.installation_id != claim.installation_id {
        return Err(HomeError::OtherInstallation {
            found: record.installation_id.clone(),
            wanted: claim.installation_id.clone(),
        });
    }
    match (&record.machine_id, &claim.machine_id) {
        (Some(found), Some(wanted)) if found != wanted => {
            Err(HomeError::OtherMachine { found: found.clone(), wanted: wanted.clone() })
        }
        _ => Ok(()),
    }
}

fn read_record(home: &Path) -> Result<Option<HomeRecord>, HomeError> {
    let path = home.join("holder");
    match fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|source| HomeError::Record { path, source }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(HomeError::io("reading", &path)(error)),
    }
}

/// Synced before anything is started in the home: after a crash of the machine the boot id in it
/// is what says that nothing of it runs any more.
fn write_record(home: &Path, record: &HomeRecord) -> io::Result<()> {
    replace(home, "holder", &serde_json::to_vec(record).map_err(io::Error::other)?)
}

/// Another content for a file of the home, whole or not at all; on disk when this returns.
fn replace(home: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let tmp = home.join(format!("{name}.tmp"));
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(&tmp)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(tmp, home.join(name))?;
    File::open(home)?.sync_all()
}

fn own_record(
    home: &Path,
    claim: &HomeClaim,
    previous: Option<&HomeRecord>,
) -> Result<HomeRecord, HomeError> {
    let from_proc = || HomeError::io("reading /proc for", home);
    let own = ProcessId::of(getpid().as_raw_nonzero().get());
    let own = own.ok_or_else(|| from_proc()(io::ErrorKind::NotFound.into()))?;
    let home_id = match previous {
        Some(previous) => previous.home_id.clone(),
        None => fs::read_to_string("/proc/sys/kernel/random/uuid")
            .map_err(from_proc())?
            .trim()
            .to_owned(),
    };
    Ok(HomeRecord {
        home_id,
        installation_id: claim.installation_id.clone(),
        machine_id: claim.machine_id.clone().or_else(|| previous?.machine_id.clone()),
        worker_name: claim.worker_name.clone(),
        pid: own.pid,
        start: own.start,
        pid_namespace: pid_namespace().map_err(from_proc())?,
        boot_id: BootId::current().map_err(from_proc())?.to_string(),
    })
}
