//! Handles on one attempt of a simulated machine.

use super::{Dir, Lock, Os, shim};
use fencepost_core::guard::Guard;
use fencepost_worker::attempt::{
    Absence, AbsentAttempt, Exited, Finished, HostError, PreparedAttempt, Progress, RunningAttempt,
};
use fencepost_worker::outcome::{Outcome, OutcomeKind, Reason};
use fencepost_worker::page::{Phase, PushRefused};
use fencepost_worker::spec::Level;

/// Made and locked. Dropped without a launch it frees the lock, as the death of its worker does.
pub(super) struct SimPrepared {
    os: Os,
    name: String,
    is_done: bool,
}

impl SimPrepared {
    pub(super) fn new(os: Os, name: &str) -> Self {
        Self { os, name: name.to_owned(), is_done: false }
    }
}

impl PreparedAttempt for SimPrepared {
    fn launch(mut self: Box<Self>) -> Result<Box<dyn RunningAttempt>, HostError> {
        self.is_done = true;
        let boot = {
            let mut state = self.os.state();
            if let Some(dir) = state.dirs.get_mut(&self.name) {
                dir.lock = Lock::Shim;
            }
            state.boot
        };
        drop(tokio::spawn(shim::run(self.os.clone(), self.name.clone(), boot)));
        Ok(Box::new(SimRunning::new(self.os.clone(), &self.name, 0)))
    }

    fn discard(mut self: Box<Self>, why: &str) -> Result<Outcome, HostError> {
        self.is_done = true;
        Ok(conclude(&self.os, &self.name, OutcomeKind::NeverRan, why))
    }
}

impl Drop for SimPrepared {
    fn drop(&mut self) {
        if !self.is_done {
            free(&self.os, &self.name);
        }
    }
}

fn free(os: &Os, name: &str) {
    if let Some(dir) = os.state().dirs.get_mut(name) {
        dir.lock = Lock::Free;
    }
}

/// Writes the outcome of an attempt that has no shim, under its lock, and frees that.
fn conclude(os: &Os, name: &str, kind: OutcomeKind, why: &str) -> Outcome {
    let boot_id = os.boot_id();
    let mut state = os.state();
    let Some(dir) = state.dirs.get_mut(name) else { return Outcome::bare("", kind) };
    let outcome = Outcome {
        error: Some(why.to_owned()),
        boot_id,
        containment: (dir.page.phase >= Phase::Exec).then_some(dir.level),
        ..Outcome::bare(&dir.spec.token, kind)
    };
    dir.outcome = Some(outcome.clone());
    dir.lock = Lock::Free;
    outcome
}

/// A shim that lives, or has just ended.
pub(super) struct SimRunning {
    os: Os,
    name: String,
    generation: u64,
}

impl SimRunning {
    pub(super) fn new(os: Os, name: &str, generation: u64) -> Self {
        Self { os, name: name.to_owned(), generation }
    }

    fn look<T>(&self, look: impl FnOnce(&mut Dir) -> T) -> Option<T> {
        self.os.state().dirs.get_mut(&self.name).map(look)
    }
}

impl RunningAttempt for SimRunning {
    fn push(&self, deadline_ns: u64, now_ns: u64) -> Result<(), PushRefused> {
        let guards = self.os.0.guards;
        let pushed = self.look(|dir| {
            if dir.page.generation != self.generation && guards.on(Guard::OwnerWord) {
                return Err(PushRefused::NotOwner);
            }
            if dir.page.lease.deadline_ns <= now_ns {
                return Err(PushRefused::Expired);
            }
            let earlier = deadline_ns < dir.page.lease.deadline_ns;
            dir.page.lease.deadline_ns = deadline_ns;
            if earlier {
                dir.changed.notify_one();
            }
            Ok(())
        });
        pushed.unwrap_or(Err(PushRefused::Expired))
    }

    fn request_stop(&self, reason: Reason, kill_now: bool) {
        let guards = self.os.0.guards;
        self.look(|dir| {
            if dir.page.generation != self.generation && guards.on(Guard::OwnerWord) {
                return;
            }
            let (first, kill) = dir.page.stop.unwrap_or((reason, false));
            dir.page.stop = Some((first, kill || kill_now));
            dir.changed.notify_one();
        });
    }

    fn progress(&self) -> Progress {
        let found = self.look(|dir| Progress {
            phase: dir.page.phase,
            level: (dir.page.phase >= Phase::Exec).then_some(dir.level),
            lease: dir.page.lease,
            stop: dir.page.stop.map(|(reason, _)| reason),
            started_at_ns: dir.page.started_at_ns,
            last_activity_ns: 0,
            output_bytes: 0,
            shim: None,
            init: None,
        });
        found.unwrap_or(Progress {
            phase: Phase::Ended,
            level: None,
            lease: fencepost_worker::page::Lease::of(0, 0),
            stop: None,
            started_at_ns: 0,
            last_activity_ns: 0,
            output_bytes: 0,
            shim: None,
            init: None,
        })
    }

    fn exited(&self) -> Exited<'_> {
        Box::pin(async move {
            loop {
                let Some(ended) =
                    self.look(|dir| (dir.lock == Lock::Shim).then(|| dir.ended.clone()))
                else {
                    return Ok(());
                };
                let Some(ended) = ended else { return Ok(()) };
                let waited = ended.notified();
                tokio::pin!(waited);
                waited.as_mut().enable();
                // Between the look and the wait nothing else ran.
                waited.await;
            }
        })
    }

    fn finish(&self) -> Result<Finished, HostError> {
        let mut state = self.os.state();
        let Some(dir) = state.dirs.get_mut(&self.name) else {
            return Err(HostError::StillRunning(self.name.clone()));
        };
        if dir.lock != Lock::Free {
            return Err(HostError::StillRunning(self.name.clone()));
        }
        if let Some(outcome) = &dir.outcome {
            return Ok(Finished::Outcome(outcome.clone()));
        }
        dir.lock = Lock::Worker;
        Ok(Finished::Absent(Box::new(SimAbsent::new(self.os.clone(), &self.name, true))))
    }
}

/// A lock that is free and no outcome.
pub(super) struct SimAbsent {
    os: Os,
    name: String,
    /// Not so only without the guard.
    has_lock: bool,
}

impl SimAbsent {
    pub(super) fn new(os: Os, name: &str, has_lock: bool) -> Self {
        Self { os, name: name.to_owned(), has_lock }
    }
}

impl SimAbsent {
    fn token(&self) -> String {
        let state = self.os.state();
        state.dirs.get(&self.name).map_or_else(String::new, |dir| dir.spec.token.clone())
    }
}

impl AbsentAttempt for SimAbsent {
    fn prove(self: Box<Self>) -> Result<Absence, HostError> {
        let (phase, level, is_old) = {
            let state = self.os.state();
            let Some(dir) = state.dirs.get(&self.name) else {
                return Ok(Absence::Unknown { why: "its directory is gone".into() });
            };
            (dir.page.phase, dir.level, dir.boot != state.boot)
        };
        if !self.has_lock {
            let token = self.token();
            return Ok(Absence::Proven(Outcome::bare(&token, OutcomeKind::NeverRan)));
        }
        let trace = &self.os.0.trace;
        let (kind, why) = if is_old {
            trace.mark("gone_by_boot_id");
            (OutcomeKind::Gone, "the machine has started anew since")
        } else if phase < Phase::Exec {
            trace.mark("never_ran");
            (OutcomeKind::NeverRan, "no shim came to its start")
        } else if level == Level::Group {
            return Ok(Absence::Unknown { why: "a process that hid itself may still run".into() });
        } else {
            trace.mark("gone_by_proof");
            (OutcomeKind::Gone, "the shim died, and its tree with it")
        };
        Ok(Absence::Proven(conclude(&self.os, &self.name, kind, why)))
    }
}

impl Drop for SimAbsent {
    fn drop(&mut self) {
        if self.has_lock {
            free(&self.os, &self.name);
        }
    }
}
