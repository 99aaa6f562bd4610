//! What a row of worlds has seen: simulated hours, executions, faults, coverage marks.

use crate::trace::Found;
use std::collections::BTreeMap;
use std::fmt;

/// Recovery branches and races of which a full run must have seen each at least once: a run that
/// saw none of them proves nothing.
pub const MARKS: &[&str] = &[
    "braked",
    "claim_kept",
    "claim_redelivered",
    "committed_but_unknown",
    "declare_lost_the_race",
    "disowned",
    "evidence_boot_id",
    "evidence_exit_status",
    "evidence_expiry",
    "evidence_self_fence",
    "evidence_successor",
    "gone_by_boot_id",
    "gone_by_proof",
    "handed_over",
    "held",
    "killed_by_kernel",
    "late_report_refused",
    "late_start_refused",
    "never_ran",
    "page_after_crash",
    "ramp_delayed",
    "ramp_rate",
    "reattached",
    "role_lost_by_expiry",
    "running_elsewhere",
    "scheduler_fenced",
    "session_ended_idle",
    "shim_fenced",
    "start_answer_lost",
    "start_taken_back",
    "stop_delivered",
    "stop_of_the_dead",
    "taken_back_by_watchdog",
    "task_killed",
    "told_it_is_over",
    "worker_lost_by_expiry",
];

/// Sums over worlds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    pub worlds: u64,
    pub seconds: u64,
    pub executions: u64,
    pub finished: u64,
    pub commits: u64,
    pub faults: BTreeMap<&'static str, u64>,
    pub marks: BTreeMap<&'static str, u64>,
}

/// The kinds of lines of the transition log that are marks, under their names.
const LINES: &[(&str, &str)] = &[
    ("attempt_lost", "attempt_lost"),
    ("claim_kept", "claim_kept"),
    ("epoch_raised", "epoch_raised"),
    ("mass_loss_braked", "braked"),
    ("ramp_delayed", "ramp_delayed"),
    ("ramp_rate", "ramp_rate"),
    ("reset", "taken_back_by_watchdog"),
    ("start_taken_back", "start_taken_back"),
    ("stop_requested", "stop_requested"),
    ("to held", "held"),
    ("write_refused", "write_refused"),
];

impl Summary {
    /// Adds what one world found, and its lines of the transition log.
    pub fn add(&mut self, found: &Found, kinds: &BTreeMap<String, u64>) {
        self.worlds += 1;
        for (kind, count) in &found.faults {
            *self.faults.entry(kind).or_default() += count;
            if *kind == "committed_but_unknown" {
                *self.marks.entry("committed_but_unknown").or_default() += count;
            }
        }
        for (mark, count) in &found.marks {
            *self.marks.entry(mark).or_default() += count;
        }
        for (line, mark) in LINES {
            if let Some(count) = kinds.get(*line) {
                *self.marks.entry(mark).or_default() += count;
            }
        }
    }

    /// Adds another row of worlds.
    pub fn merge(&mut self, other: &Self) {
        self.worlds += other.worlds;
        self.seconds += other.seconds;
        self.executions += other.executions;
        self.finished += other.finished;
        self.commits += other.commits;
        for (kind, count) in &other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (mark, count) in &other.marks {
            *self.marks.entry(mark).or_default() += count;
        }
    }

    /// Marks of the fixed list that were never reached.
    pub fn unreached(&self) -> Vec<&'static str> {
        MARKS.iter().copied().filter(|mark| !self.marks.contains_key(mark)).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.seconds as f64 / 3_600.0;
        writeln!(
            f,
            "worlds {}, simulated hours {hours:.1}, executions {}, task instances finished {}, \
             commits that changed something {}",
            self.worlds, self.executions, self.finished, self.commits
        )?;
        let list = |of: &BTreeMap<&'static str, u64>| {
            let list: Vec<String> = of.iter().map(|(name, n)| format!("{name} {n}")).collect();
            list.join(", ")
        };
        writeln!(f, "faults: {}", list(&self.faults))?;
        write!(f, "marks: {}", list(&self.marks))
    }
}
