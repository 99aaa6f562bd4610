//! The loop of a running attempt: sleep until something happens, look, do what the course says.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{Itimerspec, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime};

use super::course::{Act, Course, View};
use super::messages::{MainEnd, Message, Messages};
use super::output::Output;
use super::tree::{Launched, Tree};
use crate::cgroup::{Leaf, OomWatch};
use crate::clock::{BootId, NS_PER_MS, wall_micros};
use crate::dir::AttemptDir;
use crate::limits::Limits;
use crate::log::{LogWriter, Stream};
use crate::mask::Masker;
use crate::outcome::{Outcome, OutcomeKind, Reason};
use crate::page::{Page, Phase};
use crate::spec::ShimSpec;
use crate::sys::{self, DeadlineTimer, Usage};

/// One read from a pipe.
const BUFFER: usize = 64 << 10;
/// A result file that is longer says nothing.
const RESULT_MAX: u64 = 64 << 10;
/// What an orderly kill may take when the deadline was set into the past.
const KILL_SLACK: u64 = 1_000 * NS_PER_MS;
/// How often CPU is looked at, for a `stall_timeout`.
const CPU_TICK: u64 = 1_000 * NS_PER_MS;

/// What `start` hands over, besides the tree.
pub(super) struct WatchParts {
    pub(super) lock: OwnedFd,
    pub(super) page: Page,
    pub(super) timer: DeadlineTimer,
    /// The deadline that the timer was armed for: the page may have moved since.
    pub(super) armed_for: u64,
    pub(super) ctl: OwnedFd,
    pub(super) signals: OwnedFd,
    pub(super) boot: BootId,
    pub(super) log: LogWriter,
    /// Of each of the two outputs at its beginning.
    pub(super) masker: Masker,
    pub(super) limits: Limits,
}

/// A running attempt.
pub(super) struct Watch {
    dir: AttemptDir,
    spec: ShimSpec,
    parts: WatchParts,
    tree: Tree,
    messages: Messages,
    outputs: [Output; 2],
    alarm: OwnedFd,
    alarm_at: u64,
    armed_for: u64,
    course: Course,
    main: Option<MainEnd>,
    no_exec: Option<(i32, String)>,
    leftovers: u64,
    success_before_signal: bool,
    kill_told: bool,
    last_activity: u64,
    cpu_at: u64,
    cpu_seen: u64,
    oom: OomWatch,
    started: (u64, i64),
    buffer: Vec<u8>,
}

impl Watch {
    pub(super) fn new(
        dir: &AttemptDir,
        spec: ShimSpec,
        launched: Launched,
        parts: WatchParts,
        now: u64,
    ) -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self {
            dir: dir.clone(),
            course: Course::new(&spec, now),
            alarm: timerfd_create(spec.clock.timerfd(), flags)?,
            alarm_at: 0,
            armed_for: parts.armed_for,
            oom: OomWatch::begin(
                parts.limits.memory_group().or_else(|| launched.tree.leaf().map(Leaf::path)),
            ),
            tree: launched.tree,
            messages: launched.messages,
            outputs: [
                Output::new(launched.stdout, Stream::Stdout, parts.masker.clone()),
                Output::new(launched.stderr, Stream::Stderr, parts.masker.clone()),
            ],
            main: None,
            no_exec: None,
            leftovers: 0,
            success_before_signal: false,
            kill_told: false,
            last_activity: now,
            cpu_at: if spec.stall_timeout_ms.is_some() { now + CPU_TICK } else { u64::MAX },
            cpu_seen: 0,
            started: (now, wall_micros()),
            buffer: vec![0; BUFFER],
            spec,
            parts,
        })
    }

    /// Runs until the tree is empty and the outcome is written.
    pub(super) fn run(mut self) {
        loop {
            let now = self.spec.clock.now_ns();
            self.hold_deadline(now);
            self.look(now);
            let view = View {
                deadline: self.armed_for,
                stop: self.parts.page.stop(),
                last_activity: self.last_activity,
                main_ended: self.main.is_some(),
                tree_empty: self.tree.is_empty(),
            };
            match self.course.next(&view, now) {
                Act::Finish => return self.finish(),
                Act::Wait => {
                    self.parts.log.write();
                    self.sleep();
                }
                act @ (Act::Terminate(_) | Act::TerminateRest | Act::Kill) => self.perform(act),
            }
        }
    }

    /// Moves the kernel's timer to the deadline that the page now says.
    ///
    /// A deadline that was set into the past is obeyed by the course, which kills the tree at
    /// once; the timer then stands a moment behind it, for a shim that dies first could leave a
    /// tree behind at the level `group`.
    fn hold_deadline(&mut self, now: u64) {
        let deadline = self.parts.page.deadline_ns();
        let timer_at = deadline.max(now.saturating_add(KILL_SLACK));
        if deadline != self.armed_for && self.parts.timer.arm(timer_at).is_ok() {
            self.armed_for = deadline;
        }
    }

    /// Takes in whatever has happened.
    fn look(&mut self, now: u64) {
        if sys::drain_signals(&self.parts.signals, libc::SIGTERM) {
            self.parts.page.request_stop(Reason::ShimTerminated, false);
        }
        let _ = rustix::io::read(&self.parts.ctl, &mut [0u8; 64][..]);
        let mut active = false;
        for output in &mut self.outputs {
            active |= output.take(&mut self.buffer, &mut self.parts.log, now);
            output.flush_if_due(&mut self.parts.log, now);
        }
        if active {
            self.count_output();
            self.mark_active(now);
        }
        if let Some(end) = self.tree.reap() {
            let names = self.tree.left();
            self.main_ended(end, names.len() as u64, &names.join(" "));
        }
        while let Some(message) = self.messages.next() {
            self.hear(message, now);
        }
        // Init can only die without having told it when something killed it.
        if self.main.is_none() && self.tree.is_empty() {
            self.main_ended(MainEnd::Signal(libc::SIGKILL), 0, "");
        }
        if now >= self.cpu_at {
            self.cpu_at = now + CPU_TICK;
            if let Some(cpu) = self.tree.cpu() {
                self.cpu_used(cpu, now);
            }
        }
    }

    fn count_output(&self) {
        let bytes = self.outputs.iter().map(|output| output.bytes).sum();
        self.parts.page.set_output_bytes(bytes);
    }

    fn hear(&mut self, message: Message, now: u64) {
        match message {
            Message::Main(end, left, names) => self.main_ended(end, left, &names),
            Message::NoExec(code, why) => self.no_exec = Some((code, why)),
            Message::Cpu(ticks) => self.cpu_used(ticks, now),
            Message::Ready | Message::NoLevel(_) => {}
        }
    }

    fn main_ended(&mut self, end: MainEnd, left: u64, names: &str) {
        self.main = Some(end);
        self.leftovers = left;
        if left > 0 {
            let text = format!("the main process has ended and left {left} behind: {names}");
            self.parts.log.remark(&text);
        }
    }

    fn cpu_used(&mut self, cpu: u64, now: u64) {
        if cpu != std::mem::replace(&mut self.cpu_seen, cpu) {
            self.mark_active(now);
        }
    }

    fn mark_active(&mut self, now: u64) {
        self.last_activity = now;
        self.parts.page.set_last_activity_ns(now);
    }

    fn perform(&mut self, act: Act) {
        if self.main.is_none() && matches!(act, Act::Terminate(_) | Act::Kill) {
            self.success_before_signal |= self.said_success();
        }
        match act {
            Act::Terminate(reason) => {
                let grace = self.spec.grace_ms();
                let text = format!("{}: SIGTERM, SIGKILL after {grace} ms", reason.as_str());
                self.parts.log.remark(&text);
                self.tree.terminate_group();
            }
            Act::TerminateRest => {
                // The order is given in any case: a process may be just being made.
                if self.leftovers > 0 {
                    self.parts.log.remark("SIGTERM to what is left of the tree");
                }
                self.tree.terminate_rest();
            }
            Act::Kill => {
                if !std::mem::replace(&mut self.kill_told, true) {
                    self.parts.log.remark("SIGKILL to the whole tree");
                }
                self.tree.kill();
            }
            Act::Wait | Act::Finish => {}
        }
    }

    /// The task's result file says success, and we have signalled nothing yet.
    fn said_success(&self) -> bool {
        let Some(path) = &self.spec.result_file else { return false };
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let Ok(file) = File::options().read(true).custom_flags(flags).open(path) else {
            return false;
        };
        if !file.metadata().is_ok_and(|meta| meta.is_file()) {
            return false;
        }
        let mut bytes = Vec::new();
        let read = file.take(RESULT_MAX).read_to_end(&mut bytes);
        let value = serde_json::from_slice::<serde_json::Value>(&bytes);
        read.is_ok() && value.is_ok_and(|value| value["status"] == "success")
    }

    fn sleep(&mut self) {
        let wake_at = self
            .outputs
            .iter()
            .map(Output::flush_at)
            .chain([self.course.wake_at(self.armed_for, self.last_activity), self.cpu_at])
            .fold(u64::MAX, u64::min);
        self.set_alarm(wake_at.max(1));
        let input = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = vec![
            input(self.parts.signals.as_fd()),
            input(self.parts.ctl.as_fd()),
            input(self.alarm.as_fd()),
        ];
        if !self.messages.at_end {
            fds.push(input(self.messages.fd().as_fd()));
        }
        fds.extend(self.outputs.iter().filter_map(|o| Some(input(o.fd()?.as_fd()))));
        let _ = poll(&mut fds, None);
        let _ = rustix::io::read(&self.alarm, &mut [0u8; 8][..]);
    }

    /// A timer on the page's clock: unlike a time-out of poll it counts what a suspend took.
    fn set_alarm(&mut self, at: u64) {
        if at == self.alarm_at {
            return;
        }
        let at_time = timespec(if at == u64::MAX { 0 } else { at });
        let spec = Itimerspec { it_interval: timespec(0), it_value: at_time };
        if timerfd_settime(&self.alarm, TimerfdTimerFlags::ABSTIME, &spec).is_ok() {
            self.alarm_at = at;
        }
    }

    /// The tree is empty: nothing is left that the deadline would have to end.
    fn finish(mut self) {
        let _ = self.parts.timer.arm(0);
        for output in &mut self.outputs {
            output.drain(&mut self.buffer, &mut self.parts.log);
        }
        self.count_output();
        let outcome = self.outcome();
        self.remove_groups();
        self.parts.log.end(&outcome.summary());
        write_outcome(&self.dir, &outcome);
        self.parts.page.set_phase(Phase::Ended);
        // Held until here, for whoever takes it next finds the outcome.
        drop(self.parts.lock);
    }

    fn remove_groups(&self) {
        for _ in 0..100 {
            let is_gone = self.tree.leaf().is_none_or(|leaf| leaf.remove().is_ok());
            if self.parts.limits.remove() && is_gone {
                return;
            }
            sleep_ms(5);
        }
    }

    /// Whether the kernel ended something of it for want of memory, and it failed by that: killed itself, or
    /// by the death of a child within its own limit.
    fn ran_out_of_memory(&self, exit_code: Option<i32>, signal: Option<i32>) -> bool {
        let is_own = self.parts.limits.memory_group().is_some();
        let failed = signal == Some(libc::SIGKILL) || (is_own && exit_code.is_some_and(|c| c != 0));
        failed && self.no_exec.is_none() && self.course.reason().is_none() && self.oom.has_killed()
    }

    fn outcome(&self) -> Outcome {
        let reason = self.course.reason();
        let (exit_code, signal) = match self.main {
            Some(MainEnd::Exit(code)) => (Some(code), None),
            Some(MainEnd::Signal(signal)) => (None, Some(signal)),
            None => (None, None),
        };
        let kind = match (&self.no_exec, reason, signal) {
            (Some(_), ..) => OutcomeKind::CouldNotExec,
            (None, Some(_), _) => OutcomeKind::Stopped,
            (None, None, Some(_)) => OutcomeKind::Signaled,
            (None, None, None) => OutcomeKind::Exited,
        };
        // A shell's 128 + n is the same end as the signal n itself.
        let as_code = exit_code.or_else(|| signal.map(|signal| 128 + signal));
        let graceful = |code: i32| self.spec.graceful_exit_codes.contains(&code);
        let usage = Usage::of_children();
        let oom = self.ran_out_of_memory(exit_code, signal);
        let used = if oom { self.parts.limits.used() } else { None };
        Outcome {
            exit_code: self.no_exec.as_ref().map(|(code, _)| *code).or(exit_code),
            signal: if self.no_exec.is_some() { None } else { signal },
            reason,
            graceful: reason.is_some() && as_code.is_some_and(graceful),
            success_before_signal: self.success_before_signal,
            containment: Some(self.tree.level()),
            started_at: Some(self.started.1),
            ended_at: Some(wall_micros()),
            elapsed_ns: self.spec.clock.now_ns().saturating_sub(self.started.0),
            boot_id: self.parts.boot.to_string(),
            leftovers: self.leftovers,
            oom,
            peak_rss_kib: usage.peak_rss_kib,
            cpu_us: usage.cpu_us,
            error: self.no_exec.as_ref().map(|(_, why)| why.clone()).or(used),
            ..Outcome::bare(&self.spec.token, kind)
        }
    }
}

/// Writes the outcome, however long it takes: a result is not given up because a disk is full.
pub(super) fn write_outcome(dir: &AttemptDir, outcome: &Outcome) {
    loop {
        match outcome.write(dir) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return,
            // Nobody can ever read an outcome of a directory that was taken away.
            Err(_) if !dir.path().exists() => return,
            Err(_) => sleep_ms(1_000),
        }
    }
}

pub(super) fn sleep_ms(ms: u64) {
    let _ = poll(&mut [], Some(&timespec(ms * NS_PER_MS)));
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    }
}
