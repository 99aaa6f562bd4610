//! No living process is called dead (I25, I26): what was closed showed no sign of life after that, and a
//! lease was over for whoever was declared lost.

use super::{Execution, Facts, Promise, Violation};
use crate::clock::MS;
use crate::ledger::TiKey;
use std::collections::BTreeMap;

/// Between the two clocks.
const SLACK_NS: u64 = 20 * MS;

pub(super) fn check(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<Violation> {
    let mut texts = closed_alive(facts, all);
    texts.extend(declared_early(facts));
    texts.into_iter().map(|text| Violation::new(Promise::FalseDeath, text)).collect()
}

fn closed_alive(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<String> {
    let by_token: BTreeMap<i64, &Execution> =
        all.values().flatten().map(|execution| (execution.token, execution)).collect();
    let mut texts = Vec::new();
    for attempt in &facts.attempts {
        let (Some(ended), Some(execution)) = (attempt.ended_at, by_token.get(&attempt.token))
        else {
            continue;
        };
        let ended = facts.clocks.boot_ns(ended);
        if execution.last > ended + SLACK_NS {
            let how = attempt.evidence.as_deref().or(attempt.outcome.as_deref());
            texts.push(format!(
                "{}: attempt {} was closed ({}) {} ms before its last sign of life (at {})",
                attempt.ti(),
                attempt.token,
                how.unwrap_or("no outcome"),
                (execution.last - ended) / MS,
                ended / MS
            ));
        }
    }
    texts
}

fn declared_early(facts: &Facts) -> Vec<String> {
    let mut texts = Vec::new();
    for job in facts.jobs.iter().filter(|job| job.state == "lost") {
        let (Some(at), Some(ttl)) = (job.ended_at, job.lease_ttl) else { continue };
        let name = format!("{} {} ({})", job.kind, job.name, job.job_id);
        let silent = at - job.renewed_at;
        if silent < ttl {
            let ms = silent / 1_000;
            texts.push(format!("{name} was declared lost {ms} ms after an acknowledged beat"));
        }
        let declared = facts.clocks.boot_ns(at);
        if let Some(fault) = outage_before(facts, &job.kind, declared) {
            texts.push(format!(
                "{name} was declared lost {} ms after the end of an outage ({}) that let nobody beat",
                declared.saturating_sub(fault.ended) / MS,
                fault.kind
            ));
        }
    }
    texts
}

/// An outage of a whole lease or more in which the job could not beat, with less than a lease after it.
fn outage_before<'a>(
    facts: &'a Facts,
    kind: &str,
    declared: u64,
) -> Option<&'a crate::record::Done> {
    let ttl = facts.settled.ttl_ns;
    facts.faults.iter().find(|fault| {
        let concerns = match fault.kind.as_str() {
            "store-stop" | "store-crash" => true,
            "servers-away" => kind == "worker",
            _ => false,
        };
        let since = declared.saturating_sub(fault.ended);
        concerns && fault.ended - fault.began >= ttl && declared > fault.began && since < ttl
    })
}
