//! The proof that nothing of an attempt runs, where its shim left no outcome.
//!
//! It is made under the attempt's lock, so that no shim can begin meanwhile: a shim that was
//! spawned and never ran finds the outcome and refuses. What is concluded:
//! * the shim never came to the exec: `never_ran`;
//! * another boot: `gone`, the kernel that ran it does not exist any more;
//! * `pidns`: `gone` once the init has ended, for the kernel lets it end last;
//! * `cgroup`: `gone` once the leaf is empty, after `cgroup.kill`;
//! * `group`: processes that carry the attempt's id are killed, and it stays unknown, because a
//!   process can have left group, parent and environment behind.

use std::fs::{self, File};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use super::os::{HomeBoot, conclude, lives, read_outcome};
use super::{Absence, AbsentAttempt, HostError};
use crate::cgroup::Leaf;
use crate::clock::BootId;
use crate::dir::AttemptDir;
use crate::outcome::{Outcome, OutcomeKind};
use crate::page::{Page, Phase};
use crate::process::{self, ProcessId, pid_namespace};
use crate::spec::{Level, ShimSpec};

/// How long a tree that is being killed may take to be gone, in rounds of 10 ms.
const ROUNDS: u32 = 1_000;
const ROUND_NS: i64 = 10_000_000;
/// The environment variable by which processes of an attempt are known at level `group`.
const MARKER: &str = "FENCEPOST_ATTEMPT_ID";

/// A lock that is free and no outcome.
pub(super) struct OsAbsent {
    dir: AttemptDir,
    /// Held until the proof is written or given up; `None` only without that guard.
    lock: Option<File>,
    boot: HomeBoot,
}

impl OsAbsent {
    pub(super) fn new(dir: AttemptDir, lock: Option<File>, boot: HomeBoot) -> Self {
        Self { dir, lock, boot }
    }

    fn token(&self) -> String {
        ShimSpec::read(&self.dir).map_or_else(|_| String::new(), |spec| spec.token)
    }

    fn conclude(&self, kind: OutcomeKind, why: &str) -> Result<Absence, HostError> {
        conclude(&self.dir, &self.token(), kind, why).map(Absence::Proven)
    }
}

enum Tree {
    Empty(String),
    Unknown(String),
}

impl AbsentAttempt for OsAbsent {
    fn prove(self: Box<Self>) -> Result<Absence, HostError> {
        if self.lock.is_none() {
            let outcome = Outcome::bare(&self.token(), OutcomeKind::NeverRan);
            return Ok(Absence::Proven(outcome));
        }
        if let Some(outcome) = read_outcome(&self.dir)? {
            return Ok(Absence::Proven(outcome));
        }
        if self.boot == HomeBoot::New {
            return self.conclude(OutcomeKind::Gone, "the machine has started anew since");
        }
        if !self.dir.page().exists() {
            return self.conclude(OutcomeKind::NeverRan, "the worker ended while preparing it");
        }
        let page = match Page::open(&self.dir) {
            Ok(page) => page,
            Err(error) => return Ok(Absence::Unknown { why: format!("its page: {error}") }),
        };
        let boot = BootId::current().map_err(HostError::io("reading", "/proc"))?;
        if boot != page.boot() {
            return self.conclude(OutcomeKind::Gone, "the machine has started anew since");
        }
        if page.phase() < Phase::Exec {
            self.remove_leaf();
            return self.conclude(OutcomeKind::NeverRan, "no shim came to its start");
        }
        match self.end_tree(&page) {
            Tree::Empty(why) => self.conclude(OutcomeKind::Gone, &why),
            Tree::Unknown(why) => Ok(Absence::Unknown { why }),
        }
    }
}

impl OsAbsent {
    fn end_tree(&self, page: &Page) -> Tree {
        if pid_namespace().ok() != Some(page.pid_namespace()) {
            return Tree::Unknown("its shim lived in another PID namespace".to_owned());
        }
        match (page.level(), page.init()) {
            (Some(Level::Pidns), Some(init)) => end_namespace(init),
            (Some(Level::Cgroup), _) => self.end_leaf(),
            (Some(Level::Group), main) => self.end_group(main),
            _ => Tree::Unknown("its page does not say how it was contained".to_owned()),
        }
    }

    /// A shim that died before the exec can have left its leaf, with a child that was waiting.
    fn remove_leaf(&self) {
        let Some(leaf) = Leaf::recorded(&self.dir.cgroup()) else { return };
        for _ in 0..ROUNDS {
            let _ = leaf.kill();
            if leaf.remove().is_ok() {
                return;
            }
            pause();
        }
    }

    fn end_leaf(&self) -> Tree {
        let Some(leaf) = Leaf::recorded(&self.dir.cgroup()) else {
            return Tree::Unknown("the path of its cgroup is not recorded".to_owned());
        };
        for _ in 0..ROUNDS {
            if leaf.is_empty() {
                let _ = leaf.remove();
                // A task that runs as root can have moved a process elsewhere.
                self.kill_marked(None);
                return Tree::Empty("the shim died; its cgroup was killed and is empty".to_owned());
            }
            let _ = leaf.kill();
            pause();
        }
        Tree::Unknown(format!("its cgroup {} does not become empty", leaf.path().display()))
    }

    fn end_group(&self, main: Option<ProcessId>) -> Tree {
        let killed = self.kill_marked(main);
        Tree::Unknown(format!(
            "the shim died at containment `group` (signals sent to what was found: {killed}): \
             a process that hid itself may still run"
        ))
    }

    /// SIGKILL to the processes that carry this attempt's id, and to its main process, until none
    /// is found.
    fn kill_marked(&self, main: Option<ProcessId>) -> usize {
        let Ok(spec) = ShimSpec::read(&self.dir) else { return 0 };
        let mut killed = 0;
        for _ in 0..ROUNDS {
            let found = marked(&spec.attempt_id, main);
            if found.is_empty() {
                break;
            }
            killed += found.len();
            for pidfd in found {
                let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            }
            pause();
        }
        killed
    }
}

/// The kernel kills a namespace with its init, whose death signal came from the shim; the order is
/// repeated here, to exactly that process.
fn end_namespace(init: ProcessId) -> Tree {
    let gone = || Tree::Empty("the shim died, and its PID namespace with it".to_owned());
    let Ok(found) = init.open() else {
        return Tree::Unknown("the first process of its namespace cannot be looked at".to_owned());
    };
    let Some(pidfd) = found else { return gone() };
    let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit));
    if ended.is_ok_and(|count| count > 0) || !lives(init) {
        return gone();
    }
    Tree::Unknown("its PID namespace does not end (a process in uninterruptible sleep?)".to_owned())
}

/// Descriptors of the processes that carry this attempt's id in their environment, and of its
/// main process.
fn marked(attempt_id: &str, main: Option<ProcessId>) -> Vec<OwnedFd> {
    let marker = format!("{MARKER}={attempt_id}");
    let is_marked = |id: ProcessId| {
        let environment = fs::read(format!("/proc/{}/environ", id.pid)).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
    };
    process::all()
        .into_iter()
        .filter(|stat| !stat.is_zombie() && stat.id.pid.cast_unsigned() != std::process::id())
        .filter(|stat| Some(stat.id) == main || is_marked(stat.id))
        // The descriptor is of the process whose environment was read, or there is none.
        .filter_map(|stat| stat.id.open().ok()?)
        .collect()
}

fn pause() {
    let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: ROUND_NS }));
}
