//! The audit over the whole store, a few runs at a time.

use crate::Cx;
use crate::error::EngineError;
use fencepost_core::audit::{Violation, audit};
use fencepost_store::query::audit::{last_run, snapshot};
use fencepost_store::query::callback;

/// Runs read in one snapshot.
const RUNS: i64 = 200;

/// What the audit found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    pub runs: usize,
    pub attempts: usize,
    pub violations: Vec<Violation>,
    /// Callbacks that nobody tries any more: no violation, but somebody was not told.
    pub dead_callbacks: u64,
}

/// Audits every run, newest last.
pub async fn examine(cx: &Cx) -> Result<Findings, EngineError> {
    let tx = cx.store.read("doctor").await?;
    let dead_callbacks = callback::counts(&tx).await?.dead.unsigned_abs();
    drop(tx);
    let mut findings = Findings { dead_callbacks, ..Findings::default() };
    let mut after = 0;
    loop {
        let tx = cx.store.read("doctor").await?;
        let last = last_run(&tx).await?;
        let found = snapshot(&tx, after, after + RUNS).await?;
        drop(tx);
        let mut runs: Vec<i64> = found.tis.iter().map(|ti| ti.run).collect();
        runs.dedup();
        findings.runs += runs.len();
        findings.attempts += found.attempts.len();
        findings.violations.extend(audit(&found));
        after += RUNS;
        if after >= last {
            findings.violations.sort();
            findings.violations.dedup();
            return Ok(findings);
        }
    }
}
