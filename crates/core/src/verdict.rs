//! What the end of an attempt means: for the attempt, for its task instance, and for the budgets.
//!
//! Source: 1-semantics section 5 ("Who pays") and 2-interfaces section 5 ("Exit codes"). One pure
//! function, so that the execution API, the reaper and the simulator cannot disagree.

use crate::dag::{OnDisconnect, OnLost, Replace, Task};
use crate::lifecycle::TiEvent;
use crate::retry::RetryAction;
use crate::state::{CountedAs, Outcome, StopReason};
use crate::time::Span;
use serde_json::Value;

/// Exit status of a task that found itself fenced.
pub const EXIT_FENCED: u8 = 76;
/// Exit status that asks for a hold: a person decides.
pub const EXIT_HOLD: u8 = 77;
/// Exit status that asks for a deferral.
pub const EXIT_DEFER: u8 = 100;
/// Single deaths after which a task instance counts as poison.
pub const POISON_LOSSES: u32 = 3;

/// How the processes of an attempt ended, as its worker or the evidence says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The main process exited by itself.
    Exit(u8),
    /// The main process died of a signal that was not ours.
    Signal(i32),
    /// The kernel ended it for want of memory; with the exit code by which a shell names its end.
    OutOfMemory(u8),
    /// Not executable (126) or not found (127).
    CouldNotExec(u8),
    /// We ended it at its `execution_timeout`; the exit code if it exited after our SIGTERM.
    ExecutionTimeout(Option<u8>),
    /// We ended it at its `stall_timeout`.
    StallTimeout(Option<u8>),
    /// We ended it because a stop was asked for.
    Stopped,
    /// Its template or its outputs were wrong; it did not run, or its success cannot be taken.
    Unusable(Unusable),
    /// Proved not to have started.
    NeverRan,
    /// Its processes are known to be gone, and no exit status is known.
    Gone(Death),
    /// The lease of its worker is over, and nothing is known of its processes but that they ended by
    /// their own deadline.
    Expired(Death),
}

/// Why an attempt cannot be taken as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unusable {
    Template,
    Outputs,
}

/// How the death of an attempt without an exit status is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// Its worker or its host died alone.
    Single,
    /// It fenced itself, was drained, or its shim died beside a worker that lives: no sign of poison.
    Orderly,
}

/// What the task asked for in its result file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Success,
    Skip,
    Fail,
    Retry {
        after: Option<Span>,
    },
    Hold,
    /// With exit code 100 and a defer file that can be read: it resumes when something has come.
    Defer(Value),
}

/// The budgets of a task instance so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// The current try, from 1.
    pub try_number: u32,
    /// 1 + `retries` + clears.
    pub max_tries: u32,
    /// Losses charged to `infra_retries`.
    pub infra_losses: u32,
    /// Losses by single deaths.
    pub single_deaths: u32,
    /// Attempts in a row that ended without having started.
    pub requeues: u32,
    /// `[scheduler] requeue_limit`.
    pub requeue_limit: u32,
}

/// A stop that was asked for on the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    pub reason: StopReason,
    /// Where a `mark` leads.
    pub mark: Option<TiEvent>,
}

/// The decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub outcome: Outcome,
    /// What happens to the task instance.
    pub event: TiEvent,
    /// A word for tables: `exit`, `signal`, `execution_timeout`, ...
    pub reason: String,
    pub counted_as: CountedAs,
    /// With `TiEvent::Retry`: how long to wait.
    pub delay: Option<Span>,
    /// The attempt does not end: it stays the current one, `lost_open`, and costs nothing yet.
    pub stays_open: bool,
}

impl Verdict {
    fn new(outcome: Outcome, event: TiEvent, reason: &str) -> Self {
        let (reason, counted_as) = (reason.into(), CountedAs::None);
        Self { outcome, event, reason, counted_as, delay: None, stays_open: false }
    }
    /// Nothing is decided yet about a lost attempt.
    fn open(event: TiEvent, reason: &str) -> Self {
        Self { stays_open: true, ..Self::new(Outcome::Lost, event, reason) }
    }
    fn counted(mut self, counted_as: CountedAs) -> Self {
        self.counted_as = counted_as;
        self
    }
}

/// Judges the end of an attempt that had started.
///
/// A stop that was asked for goes before whatever the task did: from its commit on, a success is
/// refused. `random` decides the jitter of a retry.
#[expect(clippy::too_many_arguments, reason = "the facts of a judgement, each of another kind")]
pub fn judge(
    ending: &Ending,
    asked: Option<&Asked>,
    task: &Task,
    budgets: &Budgets,
    stop: Option<Stop>,
    random: u64,
) -> Verdict {
    if let Some(stop) = stop {
        return stopped(ending, task, stop);
    }
    let user = |reason: &str| failure(reason, task, budgets, None, random);
    let said_success = asked == Some(&Asked::Success);
    match ending {
        Ending::NeverRan => never_ran(budgets),
        Ending::Exit(code) => exited(*code, asked, task, budgets, random),
        // Said before any signal of ours: the worker tells nothing that was written later.
        Ending::Signal(_)
        | Ending::OutOfMemory(_)
        | Ending::ExecutionTimeout(_)
        | Ending::StallTimeout(_)
        | Ending::Stopped
        | Ending::Gone(_)
            if said_success =>
        {
            success("result_file")
        }
        Ending::Gone(death) => lost(*death, task, budgets),
        Ending::Expired(death) => expired(*death, task, budgets),
        Ending::Signal(signal) => shell_code(*signal)
            .and_then(|code| by_rules(code, "signal", task, budgets, random))
            .unwrap_or_else(|| user("signal")),
        Ending::OutOfMemory(code) => {
            by_rules(*code, "oom", task, budgets, random).unwrap_or_else(|| user("oom"))
        }
        Ending::ExecutionTimeout(code) if graceful(*code, task) => success("exit"),
        Ending::StallTimeout(code) if graceful(*code, task) => success("exit"),
        Ending::ExecutionTimeout(_) => user("execution_timeout"),
        Ending::StallTimeout(_) => user("stall_timeout"),
        // A stop order that the store knows nothing of: a standby lost it with the last commits, or the
        // shim was told to end. Nothing that the task did.
        Ending::Stopped => lost(Death::Orderly, task, budgets),
        Ending::CouldNotExec(code) => by_rules(*code, "could_not_exec", task, budgets, random)
            .unwrap_or_else(|| final_failure("could_not_exec")),
        Ending::Unusable(Unusable::Template) => final_failure("template_error"),
        Ending::Unusable(Unusable::Outputs) => final_failure("outputs_invalid"),
    }
}

/// The exit code by which a shell and `retry_policy` name a death by a signal: 128+n.
fn shell_code(signal: i32) -> Option<u8> {
    u8::try_from(signal.checked_add(128)?).ok()
}

fn stopped(ending: &Ending, task: &Task, stop: Stop) -> Verdict {
    let verdict = stopped_and_gone(stop);
    let is_known = !matches!(ending, Ending::Expired(_));
    if is_known || ends_with_its_lease(task) {
        return verdict;
    }
    // Expiry is no evidence here. A cancel is final at once all the same, and what may still run
    // stays listed; a clear waits for the evidence.
    match stop.reason {
        StopReason::Clear => Verdict::open(TiEvent::Hold, "awaiting_evidence"),
        StopReason::Mark
        | StopReason::Cancel
        | StopReason::DagrunTimeout
        | StopReason::FailFast
        | StopReason::Kill => Verdict { stays_open: true, ..verdict },
    }
}

/// Whether the end of a lease says that nothing runs any more.
fn ends_with_its_lease(task: &Task) -> bool {
    task.replace == Replace::AfterLeaseExpiry && task.on_disconnect == OnDisconnect::Stop
}

fn stopped_and_gone(stop: Stop) -> Verdict {
    let (outcome, event) = match stop.reason {
        StopReason::Clear => (Outcome::Cleared, TiEvent::Restarted),
        StopReason::Mark => (Outcome::Cancelled, stop.mark.unwrap_or(TiEvent::MarkFailed)),
        StopReason::Cancel
        | StopReason::DagrunTimeout
        | StopReason::FailFast
        | StopReason::Kill => (Outcome::Cancelled, TiEvent::Stopped),
    };
    Verdict::new(outcome, event, stop.reason.as_str())
}

fn success(reason: &str) -> Verdict {
    Verdict::new(Outcome::Success, TiEvent::Succeed, reason)
}

fn graceful(code: Option<u8>, task: &Task) -> bool {
    code.is_some_and(|code| task.graceful_exit_codes.contains(&code))
}

fn exited(code: u8, asked: Option<&Asked>, task: &Task, budgets: &Budgets, random: u64) -> Verdict {
    match asked {
        Some(Asked::Success) => return success("result_file"),
        Some(Asked::Skip) => return skipped("result_file"),
        Some(Asked::Fail) => return final_failure("result_file"),
        Some(Asked::Retry { after }) => {
            return failure("result_file", task, budgets, *after, random);
        }
        Some(Asked::Hold) => return hold(),
        // Nobody pays, and no try is over.
        Some(Asked::Defer(_)) if code == EXIT_DEFER => {
            return Verdict::new(Outcome::Deferred, TiEvent::Defer, "deferred");
        }
        Some(Asked::Defer(_)) | None => {}
    }
    if code == 0 {
        return success("exit");
    }
    if task.skip_exit_codes.contains(&code) {
        return skipped("exit");
    }
    let reason = match code {
        126 | 127 => "could_not_exec",
        EXIT_FENCED => "fence_conflict",
        EXIT_HOLD => "hold",
        EXIT_DEFER => "no_defer_file",
        _ => "exit",
    };
    by_rules(code, reason, task, budgets, random).unwrap_or_else(|| match code {
        126 | 127 => final_failure(reason),
        EXIT_HOLD => hold(),
        _ => failure(reason, task, budgets, None, random),
    })
}

/// The task itself asks for a person. Its attempt is over, and nobody pays.
fn hold() -> Verdict {
    Verdict::new(Outcome::Failed, TiEvent::Hold, "hold")
}

fn skipped(reason: &str) -> Verdict {
    Verdict::new(Outcome::Skipped, TiEvent::SkipItself, reason)
}

/// What the first fitting rule of `retry_policy` says; `reason` is the word for a rule without one.
fn by_rules(
    code: u8,
    reason: &str,
    task: &Task,
    budgets: &Budgets,
    random: u64,
) -> Option<Verdict> {
    let rule = task.retry_rules.iter().find(|rule| rule.exit_codes.contains(&code))?;
    let reason = if rule.reason.is_empty() { reason } else { rule.reason.as_str() };
    Some(match rule.action {
        RetryAction::Fail => final_failure(reason),
        RetryAction::Retry { delay } => failure(reason, task, budgets, delay, random),
    })
}

/// A failure that no further try would mend.
fn final_failure(reason: &str) -> Verdict {
    Verdict::new(Outcome::Failed, TiEvent::Fail, reason).counted(CountedAs::User)
}

/// A failure charged to the user's `retries`.
fn failure(
    reason: &str,
    task: &Task,
    budgets: &Budgets,
    delay: Option<Span>,
    random: u64,
) -> Verdict {
    if budgets.try_number >= budgets.max_tries {
        return final_failure(reason);
    }
    let delay = delay.unwrap_or_else(|| task.retry.delay(budgets.try_number, random));
    let mut verdict =
        Verdict::new(Outcome::Failed, TiEvent::Retry, reason).counted(CountedAs::User);
    verdict.delay = Some(delay);
    verdict
}

fn never_ran(budgets: &Budgets) -> Verdict {
    let event =
        if budgets.requeues >= budgets.requeue_limit { TiEvent::Fail } else { TiEvent::Replace };
    Verdict::new(Outcome::NeverRan, event, "never_ran")
}

/// A started attempt without an exit status: the user's `retries` are never touched (I8).
fn lost(death: Death, task: &Task, budgets: &Budgets) -> Verdict {
    let lost = |event, reason| Verdict::new(Outcome::Lost, event, reason).counted(CountedAs::Infra);
    if death == Death::Single && budgets.single_deaths.saturating_add(1) >= POISON_LOSSES {
        return lost(TiEvent::Hold, "poison");
    }
    match task.on_lost {
        OnLost::Fail => lost(TiEvent::Fail, "lost"),
        OnLost::Hold => lost(TiEvent::Hold, "awaiting_person"),
        OnLost::Retry if budgets.infra_losses >= task.infra_retries => {
            lost(TiEvent::Fail, "infra_retries_spent")
        }
        OnLost::Retry => lost(TiEvent::Replace, "lost"),
    }
}

/// A lease that is over: what is not confirmed stays open where the task asks for that.
fn expired(death: Death, task: &Task, budgets: &Budgets) -> Verdict {
    match task.on_lost {
        OnLost::Hold => Verdict::open(TiEvent::Hold, "awaiting_person"),
        OnLost::Retry | OnLost::Fail if ends_with_its_lease(task) => lost(death, task, budgets),
        OnLost::Retry | OnLost::Fail => Verdict::open(TiEvent::Hold, "awaiting_evidence"),
    }
}
