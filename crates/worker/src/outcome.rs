//! How an attempt ended: the `outcome` file, written once, under the lock.

use std::fs::{self, File};
use std::io;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::dir::AttemptDir;
use crate::reserved;
use crate::spec::Level;

/// The version of the file that this program writes.
pub const VERSION: u32 = 1;

/// What became of the main process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// It exited by itself.
    Exited,
    /// A signal that was not ours ended it.
    Signaled,
    /// We signalled it; `reason` says why.
    Stopped,
    /// Nothing of the user ran: program, directory, user or containment were not to be had.
    CouldNotExec,
    /// The shim never came to the exec.
    NeverRan,
    /// It ran, its shim died without a word, and its tree was seen empty.
    Gone,
}

/// Why a tree was signalled by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The task's `execution_timeout`.
    ExecutionTimeout,
    /// The task's `stall_timeout`.
    StallTimeout,
    /// The lease ran out and nobody renewed it.
    SelfFence,
    /// Somebody sent SIGTERM to the shim.
    ShimTerminated,
    /// A person or the run cancelled it.
    Cancel,
    /// A person cleared it.
    Clear,
    /// A person marked its task instance.
    Mark,
    /// The run's time-out.
    RunTimeout,
    /// Another task of the run failed.
    FailFast,
    /// A newer run replaces this one.
    Replace,
    /// The worker drains.
    Drain,
    /// A newer attempt exists, or the claim is not ours.
    Superseded,
    /// A kill order without a finer reason.
    Kill,
    /// Written by a newer program.
    #[serde(other)]
    Unknown,
}

const REASONS: [(Reason, u8, &str); 14] = [
    (Reason::ExecutionTimeout, 1, "execution_timeout"),
    (Reason::StallTimeout, 2, "stall_timeout"),
    (Reason::SelfFence, 3, "self_fence"),
    (Reason::ShimTerminated, 4, "shim_terminated"),
    (Reason::Cancel, 5, "cancel"),
    (Reason::Clear, 6, "clear"),
    (Reason::Mark, 7, "mark"),
    (Reason::RunTimeout, 8, "run_timeout"),
    (Reason::FailFast, 9, "fail_fast"),
    (Reason::Replace, 10, "replace"),
    (Reason::Drain, 11, "drain"),
    (Reason::Superseded, 12, "superseded"),
    (Reason::Kill, 13, "kill"),
    (Reason::Unknown, 255, "unknown"),
];

impl Reason {
    /// The code of this reason in the page; never 0.
    pub fn code(self) -> u8 {
        REASONS.iter().find(|row| row.0 == self).map_or(255, |row| row.1)
    }

    /// The reason of a code; a code of a newer program is [`Reason::Unknown`].
    pub fn from_code(code: u8) -> Self {
        REASONS.iter().find(|row| row.1 == code).map_or(Self::Unknown, |row| row.0)
    }

    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        REASONS.iter().find(|row| row.0 == self).map_or("unknown", |row| row.2)
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The fencing token of the attempt, a decimal string.
    pub token: String,
    /// What became of the main process.
    pub kind: OutcomeKind,
    /// Of the main process; 126 or 127 when it could not be executed.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The signal that ended the main process.
    #[serde(default)]
    pub signal: Option<i32>,
    /// Why we signalled the tree while the main process ran.
    #[serde(default)]
    pub reason: Option<Reason>,
    /// The exit code after our signal (or 128 + its signal) is one of `graceful_exit_codes`.
    #[serde(default)]
    pub graceful: bool,
    /// The result file said success before our first signal.
    #[serde(default)]
    pub success_before_signal: bool,
    /// The level that was reached.
    #[serde(default)]
    pub containment: Option<Level>,
    /// Microseconds since 1970 on this host's clock, for display.
    #[serde(default)]
    pub started_at: Option<i64>,
    /// As `started_at`.
    #[serde(default)]
    pub ended_at: Option<i64>,
    /// On the page's clock.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// The boot during which it ended.
    #[serde(default)]
    pub boot_id: String,
    /// Nothing of the attempt runs any more.
    #[serde(default)]
    pub tree_empty: bool,
    /// Processes that the main process left behind and that were ended.
    #[serde(default)]
    pub leftovers: u64,
    /// The kernel says that memory ran out; a hint where containment is not `cgroup`.
    #[serde(default)]
    pub oom: bool,
    /// The largest resident set of one process of the tree, in KiB.
    #[serde(default)]
    pub peak_rss_kib: u64,
    /// CPU time of the tree, user and system.
    #[serde(default)]
    pub cpu_us: u64,
    /// For people: what could not be executed, or what proves that the attempt is gone.
    #[serde(default)]
    pub error: Option<String>,
}

impl Outcome {
    /// An outcome with nothing but its kind.
    pub fn bare(token: &str, kind: OutcomeKind) -> Self {
        Self {
            version: VERSION,
            token: token.to_owned(),
            kind,
            exit_code: None,
            signal: None,
            reason: None,
            graceful: false,
            success_before_signal: false,
            containment: None,
            started_at: None,
            ended_at: None,
            elapsed_ns: 0,
            boot_id: String::new(),
            tree_empty: true,
            leftovers: 0,
            oom: false,
            peak_rss_kib: 0,
            cpu_us: 0,
            error: None,
        }
    }

    /// Success as far as the process tells: 0 by itself; after our signal only a graceful code or
    /// a result file that said success before. Whether it still counts is the store's decision.
    pub fn is_success(&self) -> bool {
        match self.kind {
            OutcomeKind::Exited => self.exit_code == Some(0),
            OutcomeKind::Stopped => self.graceful || self.success_before_signal,
            OutcomeKind::Signaled
            | OutcomeKind::CouldNotExec
            | OutcomeKind::NeverRan
            | OutcomeKind::Gone => false,
        }
    }

    /// One line for people: the last line of every log.
    pub fn summary(&self) -> String {
        let status = match (self.exit_code, self.signal) {
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no status".to_owned(),
        };
        if self.oom {
            let used = self.error.as_ref().map_or_else(String::new, |used| format!(": {used}"));
            return format!("ended: killed, {status} (oom{used})");
        }
        let error = self.error.as_deref().unwrap_or("no reason given");
        match self.kind {
            OutcomeKind::Exited => format!("ended: exited, {status}"),
            OutcomeKind::Signaled => format!("ended: killed, {status}"),
            OutcomeKind::Stopped => {
                let reason = self.reason.map_or("unknown", Reason::as_str);
                format!("ended: stopped by fencepost ({reason}), {status}")
            }
            OutcomeKind::CouldNotExec => format!("ended: could not execute: {error}"),
            OutcomeKind::NeverRan => format!("ended: never ran: {error}"),
            OutcomeKind::Gone => format!("ended: gone: {error}"),
        }
    }

    /// The outcome in `dir`; `None` if there is none yet.
    pub fn read(dir: &AttemptDir) -> io::Result<Option<Self>> {
        match fs::read(dir.outcome()) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the outcome for good. The caller holds the attempt's lock; an outcome that is
    /// already there is never replaced (`AlreadyExists`).
    pub(crate) fn write(&self, dir: &AttemptDir) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(self).map_err(io::Error::other)?;
        bytes.push(b'\n');
        reserved::fill(&dir.outcome_tmp(), &bytes)?.sync_all()?;
        rename_once(dir)?;
        File::open(dir.path())?.sync_all()
    }
}

fn rename_once(dir: &AttemptDir) -> io::Result<()> {
    let (from, to) = (dir.outcome_tmp(), dir.outcome());
    match renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Not every file system has it; the lock keeps everybody else away in any case.
        Err(Errno::INVAL | Errno::NOSYS) if !to.exists() => fs::rename(from, to),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_distinct_codes_and_serde_uses_their_words() {
        for (reason, code, word) in REASONS {
            assert_eq!(Reason::from_code(code), reason);
            assert_eq!(reason.code(), code);
            assert_eq!(serde_json::to_string(&reason).unwrap(), format!("\"{word}\""));
        }
        assert_eq!(Reason::from_code(200), Reason::Unknown);
        assert_eq!(serde_json::from_str::<Reason>("\"later\"").unwrap(), Reason::Unknown);
    }

    #[test]
    fn an_outcome_is_written_once_and_unknown_fields_are_ignored() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path());
        assert_eq!(Outcome::read(&dir).unwrap(), None);
        let first = Outcome::bare("1", OutcomeKind::NeverRan);
        first.write(&dir).unwrap();
        assert_eq!(Outcome::read(&dir).unwrap(), Some(first.clone()));
        let second = Outcome::bare("1", OutcomeKind::Gone).write(&dir).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(Outcome::read(&dir).unwrap(), Some(first));

        let newer = br#"{"version":9,"token":"1","kind":"exited","exit_code":0,"colour":"red"}"#;
        std::fs::write(dir.outcome(), newer).unwrap();
        assert!(Outcome::read(&dir).unwrap().unwrap().is_success());
    }

    #[test]
    fn success_after_our_signal_needs_a_graceful_code_or_an_earlier_result() {
        let check = |kind, exit_code, graceful, before, success| {
            let outcome = Outcome {
                exit_code,
                graceful,
                success_before_signal: before,
                ..Outcome::bare("1", kind)
            };
            assert_eq!(outcome.is_success(), success, "{outcome:?}");
        };
        check(OutcomeKind::Exited, Some(0), false, false, true);
        check(OutcomeKind::Exited, Some(1), false, false, false);
        check(OutcomeKind::Stopped, Some(0), false, false, false);
        check(OutcomeKind::Stopped, Some(3), true, false, true);
        check(OutcomeKind::Stopped, None, false, true, true);
        check(OutcomeKind::Signaled, None, true, true, false);
        check(OutcomeKind::Gone, None, true, true, false);
    }
}
