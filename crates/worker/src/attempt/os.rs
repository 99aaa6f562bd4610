//! Attempts as directories and processes of this machine.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fencepost_core::guard::{Guard, Guards};
use rustix::event::{Timespec, poll};
use rustix::fs::{CWD, FlockOperation, Mode, flock, mkfifoat};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::absent::OsAbsent;
use super::running::{OsRunning, write_lease};
use super::{Attached, AttemptHost, HostError, PreparedAttempt, RunningAttempt};
use crate::cgroup::Leaf;
use crate::clock::{BootId, wall_micros};
use crate::dir::AttemptDir;
use crate::limits;
use crate::log;
use crate::outcome::{Outcome, OutcomeKind};
use crate::page::{Lease, Page};
use crate::private;
use crate::process::{ProcessId, Stat, pid_namespace};
use crate::reserved;
use crate::spec::ShimSpec;
use crate::sys::Account;

/// How long a lock may be held by a copy, in rounds.
const LOCK_ROUNDS: u32 = 500;
const LOCK_ROUND_NS: i64 = 2_000_000;

/// Whether the home was last used during this boot. Files that were not synced may be missing
/// after a crash of the machine, so after a new boot nothing is concluded from their absence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HomeBoot {
    /// The home's last holder ran during this boot, or there was none.
    Same,
    /// The machine has started anew since.
    New,
}

/// The real host.
#[derive(Debug, Clone)]
pub struct OsHost {
    attempts: PathBuf,
    exe: PathBuf,
    args: Vec<OsString>,
    boot: HomeBoot,
    guards: Guards,
}

impl OsHost {
    /// Attempts as directories below `attempts` (made if missing); shims are `exe args.. DIR`.
    pub fn new(
        attempts: &Path,
        exe: impl Into<PathBuf>,
        args: Vec<OsString>,
        boot: HomeBoot,
    ) -> Result<Self, HostError> {
        let attempts = std::path::absolute(attempts).map_err(HostError::io("finding", attempts))?;
        if !attempts.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o711)
                .create(&attempts)
                // Once more, whatever the umask: tasks of other users pass through.
                .and_then(|()| fs::set_permissions(&attempts, Permissions::from_mode(0o711)))
                .map_err(HostError::io("making", &attempts))?;
        }
        Ok(Self { attempts, exe: exe.into(), args, boot, guards: Guards::all() })
    }

    /// The same with other guards, for the tests that show what each of them is for.
    pub fn with_guards(self, guards: Guards) -> Self {
        Self { guards, ..self }
    }

    fn checked(&self, name: &str) -> Result<AttemptDir, HostError> {
        let plain = !name.is_empty()
            && name.len() <= 200
            && !name.starts_with('.')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        if plain { Ok(self.dir(name)) } else { Err(HostError::Name(name.to_owned())) }
    }
}

impl AttemptHost for OsHost {
    fn survey(&self) -> Result<Vec<String>, HostError> {
        let entries =
            fs::read_dir(&self.attempts).map_err(HostError::io("listing", &self.attempts))?;
        let names = entries
            .filter_map(|entry| entry.ok())
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| self.checked(name).is_ok());
        Ok(names.collect())
    }

    fn dir(&self, name: &str) -> AttemptDir {
        AttemptDir::new(self.attempts.join(name))
    }

    fn prepare(
        &self,
        name: &str,
        spec: &ShimSpec,
        lease: Lease,
    ) -> Result<Box<dyn PreparedAttempt>, HostError> {
        let dir = self.checked(name)?;
        make_dir(&dir, spec)?;
        let lock = open_lock(&dir)?;
        if !try_lock(&lock, &dir)? {
            return Err(HostError::Exists(dir.name()));
        }
        let page = match make_files(&dir, spec, lease) {
            Ok(page) => page,
            Err(error) => {
                // Nothing was launched, and the lock is ours: as if it had not been tried.
                let _ = remove_tree(dir.path());
                return Err(error);
            }
        };
        Ok(Box::new(OsPrepared { host: self.clone(), dir, lock, page }))
    }

    fn attach(&self, name: &str, lease: Lease) -> Result<Attached, HostError> {
        let dir = self.checked(name)?;
        let lock = open_lock(&dir)?;
        if lock_unless_alive(&lock, &dir)? {
            return Ok(match read_outcome(&dir)? {
                Some(outcome) => Attached::Ended(outcome),
                None => Attached::Absent(Box::new(OsAbsent::new(dir, Some(lock), self.boot))),
            });
        }
        let page = Page::open(&dir).map_err(|_| HostError::Starting(dir.name()))?;
        let Some(shim) = page.shim() else {
            if self.guards.on(Guard::AbsenceUnderLock) {
                return Err(HostError::Starting(dir.name()));
            }
            // Without the guard a page that names no shim is believed.
            return Ok(Attached::Absent(Box::new(OsAbsent::new(dir, None, self.boot))));
        };
        if page.pid_namespace() != pid_namespace().map_err(HostError::io("reading", "/proc"))? {
            return Err(HostError::OtherNamespace(dir.name()));
        }
        let pidfd = shim
            .open()
            .map_err(HostError::io("opening the shim of", dir.path()))?
            // It ended between the two looks: the lock is free in a moment.
            .ok_or_else(|| HostError::Starting(dir.name()))?;
        let generation = page.take_over(lease).ok_or_else(|| HostError::Contended(dir.name()))?;
        write_lease(&dir, &page, lease.deadline_ns);
        let running = OsRunning::new(dir, page, (generation, self.guards), pidfd, self.boot);
        running.wake();
        Ok(Attached::Running(Box::new(running)))
    }

    fn remark(&self, name: &str, text: &str) {
        if let Ok(dir) = self.checked(name)
            && let Ok(_lock) = lock_ended(&dir)
        {
            log::append_remark(&dir, text);
        }
    }

    fn cleanup(&self, name: &str) -> Result<(), HostError> {
        let dir = self.checked(name)?;
        let _lock = lock_ended(&dir)?;
        if let Some(leaf) = Leaf::recorded(&dir.cgroup()) {
            leaf.remove().map_err(HostError::io("removing", leaf.path()))?;
        }
        limits::remove_recorded(&dir.limits())
            .map_err(HostError::io("removing the groups of", &dir.limits()))?;
        for tree in [dir.work(), dir.tmp(), dir.io()] {
            remove_tree(&tree).map_err(HostError::io("removing", &tree))?;
        }
        // A spec that cannot be read never had a task that was given anything.
        if let Some(place) = ShimSpec::read(&dir).ok().and_then(|spec| spec.private) {
            private::remove(&place).map_err(HostError::io("removing", &place))?;
        }
        // The spec holds the task's environment.
        for file in [
            dir.spec(),
            dir.ctl(),
            dir.lease(),
            dir.outcome_tmp(),
            dir.log_end(),
            dir.cgroup(),
            dir.limits(),
        ] {
            remove_file(&file).map_err(HostError::io("removing", &file))?;
        }
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), HostError> {
        let dir = self.checked(name)?;
        if !dir.path().exists() {
            return Ok(());
        }
        self.cleanup(name)?;
        remove_tree(dir.path()).map_err(HostError::io("removing", dir.path()))
    }
}

/// Takes the lock of an attempt that has ended, for as long as it is tidied up.
fn lock_ended(dir: &AttemptDir) -> Result<File, HostError> {
    let lock = open_lock(dir)?;
    if lock_unless_alive(&lock, dir)? { Ok(lock) } else { Err(HostError::StillRunning(dir.name())) }
}

/// Takes the lock, unless a shim lives that holds it. Without one it may still be held for a
/// moment: by a copy in a process that another thread of this worker is just forking, or in a
/// child that a dying shim has forked; each closes it at its exec, or first of all.
pub(super) fn lock_unless_alive(lock: &File, dir: &AttemptDir) -> Result<bool, HostError> {
    for _ in 0..LOCK_ROUNDS {
        if try_lock(lock, dir)? {
            return Ok(true);
        }
        if Page::open(dir).ok().and_then(|page| page.shim()).is_some_and(lives) {
            return Ok(false);
        }
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: LOCK_ROUND_NS }));
    }
    Ok(false)
}

pub(super) fn open_lock(dir: &AttemptDir) -> Result<File, HostError> {
    // The standard library opens everything close-on-exec.
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(dir.lock())
        .map_err(HostError::io("opening", dir.lock()))
}

/// False if somebody else holds the lock.
pub(super) fn try_lock(lock: &File, dir: &AttemptDir) -> Result<bool, HostError> {
    match flock(lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(HostError::io("locking", dir.lock())(error.into())),
    }
}

pub(super) fn read_outcome(dir: &AttemptDir) -> Result<Option<Outcome>, HostError> {
    Outcome::read(dir).map_err(HostError::io("reading", dir.outcome()))
}

fn make_dir(dir: &AttemptDir, spec: &ShimSpec) -> Result<(), HostError> {
    // Another user passes through to his own directories; he can list and open nothing else.
    let mode = if spec.run_as_user.is_some() { 0o711 } else { 0o700 };
    match DirBuilder::new().mode(0o700).create(dir.path()) {
        // Set once more: the umask of the worker may take more away.
        Ok(()) => fs::set_permissions(dir.path(), Permissions::from_mode(mode))
            .map_err(HostError::io("opening", dir.path())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(HostError::Exists(dir.name()))
        }
        Err(error) => Err(HostError::io("making", dir.path())(error)),
    }
}

fn make_files(dir: &AttemptDir, spec: &ShimSpec, lease: Lease) -> Result<Page, HostError> {
    fill(dir, spec).map_err(HostError::io("filling", dir.path()))?;
    let boot = BootId::current().map_err(HostError::io("reading the boot id for", dir.path()))?;
    // The page comes last: a directory without one never had a shim.
    let page =
        Page::create(dir, spec.clock, lease, boot).map_err(HostError::io("making", dir.page()))?;
    write_lease(dir, &page, lease.deadline_ns);
    Ok(page)
}

fn fill(dir: &AttemptDir, spec: &ShimSpec) -> io::Result<()> {
    let account = match &spec.run_as_user {
        // A user that is unknown or not ours to become is the shim's to report, with everything
        // else that cannot be executed.
        Some(name) if rustix::process::geteuid().is_root() => Account::lookup(name)?,
        _ => None,
    };
    for path in [dir.work(), dir.tmp(), dir.io()] {
        DirBuilder::new().mode(0o700).create(&path)?;
        if let Some(account) = &account {
            chown(&path, Some(account.uid), Some(account.gid))?;
        }
    }
    let json = serde_json::to_vec(spec).map_err(io::Error::other)?;
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(dir.spec())?;
    file.write_all(&json)?;
    mkfifoat(CWD, dir.ctl(), Mode::RUSR | Mode::WUSR)?;
    reserved::make(&dir.outcome_tmp())?;
    reserved::make(&dir.log_end())
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes a directory that a task has filled, also where it made parts unreadable.
fn remove_tree(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path);
            fs::remove_dir_all(path)
        }
        done => done,
    }
}

/// Gives the owner every right on the directories below `path`; symbolic links are not followed.
fn open_up(path: &Path) {
    let mut dirs = vec![path.to_owned()];
    while let Some(dir) = dirs.pop() {
        let _ = fs::set_permissions(&dir, Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        let below = entries.filter_map(|entry| entry.ok());
        dirs.extend(
            below
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
}

/// Made and locked.
struct OsPrepared {
    host: OsHost,
    dir: AttemptDir,
    lock: File,
    page: Page,
}

impl PreparedAttempt for OsPrepared {
    fn launch(self: Box<Self>) -> Result<Box<dyn RunningAttempt>, HostError> {
        let Self { host, dir, lock, page } = *self;
        let spawn = |source| HostError::Spawn { name: dir.name(), source };
        // The lock travels as standard input and is close-on-exec everywhere else, so that no
        // other child of this process can ever hold it beyond its own exec. Dropping the command
        // closes our copy without unlocking: the shim's copy is the same lock.
        let mut command = Command::new(&host.exe);
        command
            .args(&host.args)
            .arg(dir.path())
            .env_clear()
            .stdin(Stdio::from(lock))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().map_err(spawn)?;
        drop(command);
        // The child cannot be gone for good before we wait for it, so its pid is its own.
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| spawn(io::Error::other("no pid")))?;
        let pidfd = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Err(Errno::INVAL) => pidfd_open(pid, PidfdFlags::empty()),
            opened => opened,
        }
        .map_err(|error| spawn(error.into()))?;
        let generation = page.generation();
        let owner = (generation, host.guards);
        Ok(Box::new(OsRunning::new(dir, page, owner, pidfd, host.boot)))
    }

    fn discard(self: Box<Self>, why: &str) -> Result<Outcome, HostError> {
        let token = ShimSpec::read(&self.dir).map_or_else(|_| String::new(), |spec| spec.token);
        let outcome = conclude(&self.dir, &token, OutcomeKind::NeverRan, why)?;
        drop(self.lock);
        Ok(outcome)
    }
}

/// Writes the outcome of an attempt that has no shim (any more). The caller holds the lock.
pub(super) fn conclude(
    dir: &AttemptDir,
    token: &str,
    kind: OutcomeKind,
    why: &str,
) -> Result<Outcome, HostError> {
    let boot = BootId::current().map_or_else(|_| String::new(), |boot| boot.to_string());
    let page = Page::open(dir).ok();
    let outcome = Outcome {
        error: Some(why.to_owned()),
        ended_at: Some(wall_micros()),
        boot_id: boot,
        containment: page.and_then(|page| page.level()),
        ..Outcome::bare(token, kind)
    };
    log::append_remark(dir, &outcome.summary());
    outcome.write(dir).map_err(HostError::io("writing", dir.outcome()))?;
    Ok(outcome)
}

/// True if this is the process that the page once named and it still lives: a zombie does not.
pub(super) fn lives(id: ProcessId) -> bool {
    Stat::of(id.pid).is_some_and(|stat| stat.id == id && !stat.is_zombie())
}
