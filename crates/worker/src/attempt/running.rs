//! A shim that lives, seen from the worker.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use fencepost_core::guard::{Guard, Guards};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::absent::OsAbsent;
use super::os::{HomeBoot, lock_unless_alive, open_lock, read_outcome};
use super::{Exited, Finished, HostError, Progress, RunningAttempt, exit};
use crate::dir::AttemptDir;
use crate::outcome::Reason;
use crate::page::{Page, PushRefused};

/// A shim of this machine, ours by the generation in its page.
pub(super) struct OsRunning {
    dir: AttemptDir,
    page: Page,
    generation: u64,
    guards: Guards,
    pidfd: OwnedFd,
    boot: HomeBoot,
}

impl OsRunning {
    pub(super) fn new(
        dir: AttemptDir,
        page: Page,
        (generation, guards): (u64, Guards),
        pidfd: OwnedFd,
        boot: HomeBoot,
    ) -> Self {
        Self { dir, page, generation, guards, pidfd, boot }
    }

    /// The owner that it acts as: itself, whoever the page names now.
    fn acts_as(&self) -> u64 {
        if self.guards.on(Guard::OwnerWord) { self.generation } else { self.page.generation() }
    }

    /// Makes the shim read its page again. Without a reader there is no shim, which is harmless.
    pub(super) fn wake(&self) {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(ctl) = open(self.dir.ctl(), flags, Mode::empty()) {
            let _ = rustix::io::write(ctl, b"!");
        }
    }

    fn has_ended(&self) -> bool {
        let mut fds = [PollFd::new(&self.pidfd, PollFlags::IN)];
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&zero)).is_ok_and(|count| count > 0)
    }
}

impl RunningAttempt for OsRunning {
    fn push(&self, deadline_ns: u64, now_ns: u64) -> Result<(), PushRefused> {
        let before = self.page.deadline_ns();
        self.page.push(self.acts_as(), deadline_ns, now_ns)?;
        write_lease(&self.dir, &self.page, deadline_ns);
        // A later deadline is found when the earlier one comes near; an earlier one must be told.
        if deadline_ns < before {
            self.wake();
        }
        Ok(())
    }

    fn request_stop(&self, reason: Reason, kill_now: bool) {
        // What another owner has taken over is not ours to end.
        if self.page.generation() == self.acts_as() {
            self.page.request_stop(reason, kill_now);
            self.wake();
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            phase: self.page.phase(),
            level: self.page.level(),
            lease: self.page.lease(),
            stop: self.page.stop().map(|(reason, _)| reason),
            started_at_ns: self.page.started_at_ns(),
            last_activity_ns: self.page.last_activity_ns(),
            output_bytes: self.page.output_bytes(),
            shim: self.page.shim(),
            init: self.page.init(),
        }
    }

    fn exited(&self) -> Exited<'_> {
        Box::pin(exit::readable(self.pidfd.as_fd()))
    }

    fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.pidfd.as_fd())
    }

    fn finish(&self) -> Result<Finished, HostError> {
        if !self.has_ended() {
            return Err(HostError::StillRunning(self.dir.name()));
        }
        // Only our own children can be waited for; after a re-attach somebody else does it.
        let _ = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED);
        if let Some(outcome) = read_outcome(&self.dir)? {
            return Ok(Finished::Outcome(outcome));
        }
        let lock = open_lock(&self.dir)?;
        if !lock_unless_alive(&lock, &self.dir)? {
            return Err(HostError::StillRunning(self.dir.name()));
        }
        Ok(Finished::Absent(Box::new(OsAbsent::new(self.dir.clone(), Some(lock), self.boot))))
    }
}

/// Rewrites the task's lease file. A failure leaves an earlier deadline in it, which is safe.
pub(super) fn write_lease(dir: &AttemptDir, page: &Page, deadline_ns: u64) {
    let Some(clock) = page.clock() else { return };
    // As the page holds it.
    let deadline_ns = deadline_ns / 1_000 * 1_000;
    let tmp = dir.path().join("lease.tmp");
    let written =
        File::options().write(true).create(true).truncate(true).mode(0o644).open(&tmp).and_then(
            |mut file| {
                // Whatever the worker's umask: the task may be another user.
                file.set_permissions(Permissions::from_mode(0o644))?;
                file.write_all(format!("{clock} {deadline_ns}\n").as_bytes())
            },
        );
    if written.is_ok() {
        let _ = fs::rename(tmp, dir.lease());
    }
}
