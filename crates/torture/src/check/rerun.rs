//! Work goes on whatever short or distant thing happened (I10): what was lost had a fault before it that can
//! have cost it.

use super::{Execution, Facts, Promise, Violation};
use crate::clock::{MS, SECOND};
use crate::ledger::TiKey;
use crate::record::Done;
use std::collections::BTreeMap;

/// A worker that is away for so long costs nothing: the fence, less two beats.
const SHORT_MS: u64 = 2_000;
/// A process that did not tick for so long had no processor; its worker may have had none either.
const STARVED_NS: u64 = SECOND;
/// After its end a fault may still cost something, in leases.
const REACH: u64 = 2;

pub(super) fn check(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<Violation> {
    let lost = facts.lost();
    let starved = starved(facts);
    let is_for_nothing = |execution: &&Execution| {
        // It lived on for a moment after its last sign.
        let to = execution.last + STARVED_NS;
        let from = execution.last.saturating_sub(REACH * facts.settled.ttl_ns);
        let costs = |fault: &Done| fault.began <= to && fault.ended >= from && can_cost(fault);
        lost.contains(&execution.token)
            && execution.status.is_none()
            && !facts.faults.iter().any(costs)
            && !starved.iter().any(|(began, ended)| *began <= to && *ended >= from)
    };
    let found = all.values().flatten().filter(is_for_nothing);
    found
        .map(|Execution { ti, token, last, .. }| {
            let at = last / MS;
            let text =
                format!("{ti}: attempt {token} ended at {at}, and no fault can have cost it");
            Violation::new(Promise::Rerun, text)
        })
        .collect()
}

/// Whether a fault may cost a running task.
fn can_cost(fault: &Done) -> bool {
    match fault.kind.as_str() {
        // A second worker in a home goes on with what the first had.
        "scheduler-kill" | "scheduler-stop" | "scheduler-term" => false,
        "store-sessions-end" | "worker-term" | "two-in-one-home" => false,
        "store-cut" | "store-delay" | "store-lost-answers" => !fault.target.starts_with('s'),
        "worker-kill" | "worker-stop" | "worker-cut" | "worker-refused" => fault.span_ms > SHORT_MS,
        _ => true,
    }
}

/// When a process that lived had no processor for long.
fn starved(facts: &Facts) -> Vec<(u64, u64)> {
    let mut before: BTreeMap<i64, u64> = BTreeMap::new();
    let mut spans = Vec::new();
    for line in &facts.ledger {
        let last = before.insert(line.token, line.at);
        spans.extend(last.filter(|last| line.at > last + STARVED_NS).map(|last| (last, line.at)));
    }
    spans
}
