//! Nothing of an older attempt is taken once a newer one has begun (I2, I3, I6).

use super::{Execution, Facts, Promise, Violation};
use crate::clock::MS;
use crate::ledger::TiKey;
use crate::sink::{Mark, Step};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<Violation> {
    let mut found: Vec<Violation> = Vec::new();
    for (ti, marks) in &facts.fenced {
        found.extend(writes(ti, marks, all.get(ti).map_or(&[], Vec::as_slice)));
    }
    found.extend(all.values().flat_map(|executions| tokens(executions)));
    found.extend(results(facts, all));
    found
}

/// A write that the sink took.
fn writes(ti: &TiKey, marks: &[Mark], executions: &[Execution]) -> Vec<Violation> {
    let mut found = Vec::new();
    for (n, mark) in marks.iter().enumerate().filter(|(_, mark)| mark.step == Step::Write) {
        let larger = marks[..n].iter().find(|earlier| earlier.token > mark.token);
        let newer = executions.iter().find(|e| e.token > mark.token && e.first < mark.at);
        let by = larger.map(|mark| mark.token).or(newer.map(|newer| newer.token));
        if let Some(by) = by {
            let text = format!("{ti}: the write of {} was taken after {by} had begun", mark.token);
            found.push(Violation::new(Promise::LateWrite, text));
        }
    }
    found
}

/// Who begins later has the larger token.
fn tokens(executions: &[Execution]) -> Vec<Violation> {
    let falls = |pair: &[Execution]| {
        let (one, next) = (&pair[0], &pair[1]);
        (next.token < one.token)
            .then(|| format!("{}: attempt {} began after {}", one.ti, next.token, one.token))
    };
    let texts = executions.windows(2).filter_map(falls);
    texts.map(|text| Violation::new(Promise::LateWrite, text)).collect()
}

/// A result that the store took. A newer attempt that a lost store took with it does not count: the
/// result was taken before it once, and again by the store that has forgotten both.
fn results(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<Violation> {
    let mut found = Vec::new();
    let known: BTreeSet<i64> = facts.attempts.iter().map(|attempt| attempt.token).collect();
    let has_failed_over = facts.faults.iter().any(|fault| fault.kind == "promotion");
    let counts_as_newer = |newer: &Execution| known.contains(&newer.token) || !has_failed_over;
    for attempt in &facts.attempts {
        let counts = matches!(attempt.outcome.as_deref(), Some("success" | "failed" | "skipped"));
        let Some(ended) = attempt.ended_at.filter(|_| counts) else { continue };
        let ended = facts.clocks.boot_ns(ended);
        let of_ti = all.get(&attempt.ti()).map_or(&[][..], Vec::as_slice);
        // The transaction may have read its clock just before the newer one began.
        let newer = of_ti
            .iter()
            .find(|e| e.token > attempt.token && e.first + 50 * MS < ended && counts_as_newer(e));
        if let Some(newer) = newer {
            let outcome = attempt.outcome.as_deref().unwrap_or_default();
            let (ti, token) = (attempt.ti(), attempt.token);
            let text =
                format!("{ti}: {outcome} of {token} was taken after {} had begun", newer.token);
            found.push(Violation::new(Promise::LateWrite, text));
        }
    }
    found
}
