//! The checker: what the oracle's ledger, the sinks and the rows of the store say together.
//!
//! It knows which faults were done and when, and nothing of how the roles were built. Each promise has a
//! file of its own below, and tests that show what it rejects.

mod budget;
mod count;
mod death;
mod duplicate;
mod execution;
mod facts;
mod late;
mod lost;
mod overlap;
mod rerun;
mod table;
#[cfg(test)]
mod tests;

pub use execution::Execution;
pub use facts::{Clocks, Facts, Settled};

use std::collections::BTreeMap;

/// What must never be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// A run that does not end, a success without a complete execution, a slot that never came.
    Lost,
    /// Two executions of one instance at a time, or one attempt executed twice.
    Overlap,
    /// An older attempt's write or result was taken after a newer one had begun; a token that fell.
    LateWrite,
    /// A job was declared lost, or an attempt closed, while its process lived.
    FalseDeath,
    /// Two runs of one slot.
    DuplicateRun,
    /// More executions than the budgets allow, or a failure that is nobody's.
    Budget,
    /// A task was ended and run again though nothing can have cost it.
    Rerun,
    /// A process of a task lives after everything has ended.
    Leftover,
    /// The product's own audit, or the harness, found something.
    Audit,
}

impl Promise {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 9] = [
        Self::Lost,
        Self::Overlap,
        Self::LateWrite,
        Self::FalseDeath,
        Self::DuplicateRun,
        Self::Budget,
        Self::Rerun,
        Self::Leftover,
        Self::Audit,
    ];

    /// As the table has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "tasks lost",
            Self::Overlap => "overlaps",
            Self::LateWrite => "late writes accepted",
            Self::FalseDeath => "false deaths",
            Self::DuplicateRun => "duplicate scheduled runs",
            Self::Budget => "budget violations",
            Self::Rerun => "work run again for nothing",
            Self::Leftover => "processes left",
            Self::Audit => "audit and bad records",
        }
    }
}

/// A broken promise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: Promise,
    pub text: String,
}

impl Violation {
    fn new(promise: Promise, text: String) -> Self {
        Self { promise, text }
    }
}

/// What a checker found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    pub violations: Vec<Violation>,
    /// How often something was seen, by section and name.
    pub counts: BTreeMap<(&'static str, String), u64>,
    /// From the last sign of a lost execution to the first one of its replacement, in TTLs, rising.
    pub recovery: Vec<f64>,
}

impl Verdict {
    /// How often a promise was broken.
    pub fn broken(&self, promise: Promise) -> usize {
        self.violations.iter().filter(|found| found.promise == promise).count()
    }
}

/// Judges.
pub fn judge(facts: &Facts) -> Verdict {
    let executions = execution::of(facts);
    let mut violations = lost::check(facts, &executions);
    violations.extend(overlap::check(&executions));
    violations.extend(late::check(facts, &executions));
    violations.extend(death::check(facts, &executions));
    violations.extend(duplicate::check(facts));
    violations.extend(budget::check(facts, &executions));
    violations.extend(rerun::check(facts, &executions));
    violations.extend(left(facts));
    violations.extend(facts.bad.iter().map(|text| Violation::new(Promise::Audit, text.clone())));
    let recovery = count::recovery(facts, &executions);
    Verdict { violations, counts: count::counts(facts, &executions), recovery }
}

/// After the end of all runs nothing of them lives.
fn left(facts: &Facts) -> Vec<Violation> {
    let late = facts.ledger.iter().filter(|line| line.at > facts.settled.quiet_from);
    let tokens: std::collections::BTreeSet<i64> = late.map(|line| line.token).collect();
    let text = |token| format!("a process of attempt {token} lives after the end of all runs");
    tokens.into_iter().map(|token| Violation::new(Promise::Leftover, text(token))).collect()
}
