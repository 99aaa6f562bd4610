//! One shim with the tree that it owns: the shipped decisions, on a simulated kernel.

use super::{Lock, Os, Page};
use crate::task::{Behaviour, Who};
use crate::time;
use fencepost_worker::attempt::FromTask;
use fencepost_worker::outcome::{Outcome, OutcomeKind};
use fencepost_worker::page::Phase;
use fencepost_worker::shim::course::{Act, Course, View};
use fencepost_worker::spec::ShimSpec;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A process that hears SIGTERM ends after so long.
const OBEYS_AFTER_NS: u64 = 50_000_000;

/// What a shim looks at after each wake-up.
struct Seen {
    page: Page,
    killed: bool,
    stopped: bool,
    has_outcome: bool,
}

/// The user's program.
struct Main {
    who: Who,
    behaviour: Behaviour,
    ends_at: u64,
    /// The signal that ends it then, if one does.
    signal: Option<i32>,
    ended: bool,
}

/// Runs one shim to its end, whatever that is.
pub(super) async fn run(os: Os, name: String, boot: u64) {
    let (spec, script, changed) = {
        let state = os.state();
        let Some(dir) = state.dirs.get(&name) else { return };
        (dir.spec.clone(), dir.script.clone(), Arc::clone(&dir.changed))
    };
    let shim = Shim { os, name, boot, changed };
    let main = shim.start(&spec, &script).await;
    let outcome = match main {
        Some(mut main) => shim.watch(&spec, &mut main).await,
        None => None,
    };
    shim.end(outcome);
}

struct Shim {
    os: Os,
    name: String,
    boot: u64,
    changed: Arc<Notify>,
}

impl Shim {
    /// From the fork to the exec; `None` if it was killed before.
    async fn start(&self, spec: &ShimSpec, script: &str) -> Option<Main> {
        let spawn_takes = self.os.state().spawn_takes;
        time::pause(spawn_takes).await;
        for phase in [Phase::ShimAlive, Phase::Exec] {
            time::pause(self.os.0.random.millis(1, 3)).await;
            let seen = self.see()?;
            // A shim execs only if no outcome is there and its deadline has not passed.
            if seen.killed
                || seen.has_outcome
                || seen.page.lease.deadline_ns <= self.os.0.time.nanos()
            {
                return None;
            }
            self.set_phase(phase);
        }
        let now = self.os.0.time.nanos();
        if let Some(dir) = self.os.state().dirs.get_mut(&self.name) {
            dir.page.started_at_ns = now;
        }
        let (who, behaviour) = (Who::of(&spec.env), Behaviour::parse(script));
        self.os.0.ledger.begin(who.key.clone(), who.token, self.os.name());
        let runs_for = u64::try_from(behaviour.runs_for.as_nanos()).unwrap_or(u64::MAX);
        let stays = who.attempt_number <= behaviour.stay;
        let ends_at = if stays { u64::MAX } else { now.saturating_add(runs_for) };
        Some(Main { who, behaviour, ends_at, signal: None, ended: false })
    }

    /// `None`: it died without a word.
    async fn watch(&self, spec: &ShimSpec, main: &mut Main) -> Option<Outcome> {
        let mut course = Course::new(spec, self.os.0.time.nanos());
        loop {
            let now = self.os.0.time.nanos();
            let seen = self.see()?;
            let deadline = seen.page.lease.deadline_ns;
            if seen.killed || now >= deadline {
                if now >= deadline {
                    self.os.0.trace.mark("killed_by_kernel");
                }
                return None;
            }
            if seen.stopped {
                self.wait(deadline).await;
                continue;
            }
            if !main.ended && now >= main.ends_at {
                if main.dies_with_its_shim() {
                    return None;
                }
                self.main_ends(main);
            }
            let view = View {
                deadline,
                stop: seen.page.stop,
                last_activity: now,
                main_ended: main.ended,
                tree_empty: main.ended,
            };
            match course.next(&view, now) {
                Act::Wait => {
                    let wake = course.wake_at(deadline, now).min(deadline);
                    let own = if main.ended { u64::MAX } else { main.ends_at };
                    self.wait(wake.min(own)).await;
                }
                Act::Terminate(reason) => {
                    if reason == fencepost_worker::outcome::Reason::SelfFence {
                        self.os.0.trace.mark("shim_fenced");
                    }
                    main.hears_term(now);
                }
                Act::TerminateRest => {}
                Act::Kill => {
                    self.os.0.trace.mark("task_killed");
                    (main.ends_at, main.signal) = (now, Some(9));
                }
                Act::Finish => return Some(main.outcome(spec, &course)),
            }
        }
    }

    async fn wait(&self, until_ns: u64) {
        let at: Instant = self.os.0.time.at(until_ns);
        tokio::select! {
            biased;
            () = self.changed.notified() => {}
            () = time::until(at) => {}
        }
    }

    fn main_ends(&self, main: &mut Main) {
        main.ended = true;
        let ledger = &self.os.0.ledger;
        let how = main.signal.map_or_else(|| "exits".to_owned(), |s| format!("ends by signal {s}"));
        if main.signal.is_none() {
            let wrote = main.code() != 0 || ledger.write(&main.who.key, main.who.token);
            if !wrote {
                self.os.0.trace.mark("sink_refused");
            }
            if let Some(dir) = self.os.state().dirs.get_mut(&self.name) {
                let outputs = main.behaviour.outputs.join("\n").into_bytes();
                dir.files.insert(FromTask::Outputs, outputs);
                if let Some(word) = &main.behaviour.result {
                    let text = format!("{{\"status\":\"{word}\"}}").into_bytes();
                    dir.files.insert(FromTask::Result, text);
                }
            }
        }
        ledger.end(main.who.token, &how);
    }

    fn see(&self) -> Option<Seen> {
        let state = self.os.state();
        let dir = state.dirs.get(&self.name)?;
        // Another boot: this kernel is gone.
        let killed = dir.killed || state.boot != self.boot;
        let has_outcome = dir.outcome.is_some();
        Some(Seen { page: dir.page, killed, stopped: dir.stopped, has_outcome })
    }

    fn set_phase(&self, phase: Phase) {
        if let Some(dir) = self.os.state().dirs.get_mut(&self.name) {
            dir.page.phase = phase;
        }
    }

    /// The shim is gone, and with it its tree and its lock.
    fn end(&self, outcome: Option<Outcome>) {
        let boot_id = self.os.boot_id();
        let mut state = self.os.state();
        let Some(dir) = state.dirs.get_mut(&self.name) else { return };
        if let Ok(token) = dir.spec.token.parse() {
            let ledger = self.os.0.ledger.clone();
            ledger.end(token, "is gone with its shim");
        }
        if let Some(outcome) = outcome {
            dir.outcome = Some(Outcome { boot_id, ..outcome });
            dir.page.phase = Phase::Ended;
        }
        dir.lock = Lock::Free;
        dir.ended.notify_waiters();
    }
}

impl Main {
    fn code(&self) -> i32 {
        let fails = self.who.try_number <= self.behaviour.fail_tries;
        if fails { 1 } else { self.behaviour.exit }
    }

    fn dies_with_its_shim(&self) -> bool {
        self.signal.is_none() && self.who.attempt_number <= self.behaviour.lose
    }

    fn hears_term(&mut self, now: u64) {
        if !self.behaviour.ignores_term && !self.ended {
            (self.ends_at, self.signal) = (now.saturating_add(OBEYS_AFTER_NS), Some(15));
        }
    }

    fn outcome(&self, spec: &ShimSpec, course: &Course) -> Outcome {
        let reason = course.reason();
        let kind = match (reason, self.signal) {
            (Some(_), _) => OutcomeKind::Stopped,
            (None, Some(_)) => OutcomeKind::Signaled,
            (None, None) => OutcomeKind::Exited,
        };
        Outcome {
            exit_code: self.signal.is_none().then(|| self.code()),
            signal: self.signal,
            reason,
            containment: Some(fencepost_worker::spec::Level::Pidns),
            ..Outcome::bare(&spec.token, kind)
        }
    }
}
