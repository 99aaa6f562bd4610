//! How often things happened: a run in which nothing had to be recovered shows nothing.

use super::{Execution, Facts, lost};
use crate::ledger::{Deed, TiKey};
use std::collections::{BTreeMap, BTreeSet};

type Counts = BTreeMap<(&'static str, String), u64>;

pub(super) fn counts(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Counts {
    let mut counts = Counts::new();
    let mut add = |section, name: &str, n: u64| {
        *counts.entry((section, name.to_owned())).or_insert(0) += n;
    };
    for fault in facts.faults.iter().filter(|fault| fault.trouble.is_none()) {
        add("faults", &fault.kind, 1);
        let busy = if fault.running >= 10 { "10 or more" } else { "fewer than 10" };
        add("attempts that ran as a fault began", busy, 1);
    }
    for _ in facts.faults.iter().filter(|fault| fault.trouble.is_some()) {
        add("faults", "(not done)", 1);
    }
    for evidence in facts.attempts.iter().filter_map(|attempt| attempt.evidence.as_deref()) {
        add("attempts closed by evidence", evidence, 1);
    }
    for job in facts.jobs.iter().filter(|job| job.state == "lost") {
        add("jobs declared lost", &job.kind, 1);
    }
    let (taken, refused) = races(facts);
    add("recovery", "results taken though their job was declared", taken);
    add("recovery", "results refused after the declaration", refused);
    for event in &facts.events {
        match event.kind.as_str() {
            "write_refused" => add("recovery", "late results refused", 1),
            "epoch_raised" => add("recovery", "epoch changes", 1),
            "mass_loss_braked" => add("recovery", "brakes", 1),
            "attempt_questioned" => add("recovery", "attempts asked about", 1),
            "claim_recorded_again" => add("recovery", "claims recorded again", 1),
            "job_registered" => add("recovery", "re-attachments", handed_over(event)),
            _ => {}
        }
    }
    for line in &facts.ledger {
        match line.deed {
            Deed::Begin { .. } => add("load", "executions begun", 1),
            Deed::End { status: 0 } => add("load", "executions completed", 1),
            Deed::Refused => add("load", "late writes refused by the fenced sink", 1),
            Deed::End { .. } | Deed::Tick | Deed::Write => {}
        }
    }
    for state in facts.instances.iter().map(|instance| instance.state.as_str()) {
        add("task instances", state, 1);
    }
    let again = all.values().filter(|executions| executions.len() > 1).count();
    add("load", "instances executed more than once", u64::try_from(again).unwrap_or(0));
    let gone =
        |t: &&crate::record::Trigger| t.acknowledged.is_some_and(|at| lost::forgotten(facts, at));
    let gone = facts.triggers.iter().filter(gone).count();
    add("load", "triggers in the tail of a lost store", u64::try_from(gone).unwrap_or(0));
    counts
}

/// How a result and a declaration of its job met: until its page is worked off an attempt takes its own
/// result, and after that the result is refused.
fn races(facts: &Facts) -> (u64, u64) {
    let lost: BTreeMap<&str, i64> = facts
        .jobs
        .iter()
        .filter(|job| job.state == "lost")
        .filter_map(|job| Some((job.job_id.as_str(), job.ended_at?)))
        .collect();
    let refused: BTreeSet<i64> = facts
        .events
        .iter()
        .filter(|event| event.kind == "write_refused")
        .map(|event| event.token)
        .collect();
    let (mut taken, mut late) = (0, 0);
    for attempt in &facts.attempts {
        let declared = attempt.job_id.as_deref().and_then(|job| lost.get(job));
        let (Some(declared), Some(ended)) = (declared, attempt.ended_at) else { continue };
        let by_expiry = attempt.evidence.as_deref() == Some("expiry");
        taken += u64::from(ended >= *declared && !by_expiry);
        late += u64::from(by_expiry && refused.contains(&attempt.token));
    }
    (taken, late)
}

/// `N claims handed over`.
fn handed_over(event: &crate::dump::Event) -> u64 {
    let reason = event.reason.as_deref().unwrap_or_default();
    reason.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// From the last sign of a lost execution to the first one of the next, in leases, rising.
pub(super) fn recovery(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<f64> {
    let ttl = facts.settled.ttl_ns.max(1) as f64;
    let lost = facts.lost();
    let pairs = all.values().flat_map(|executions| executions.windows(2));
    let lost = pairs.filter(|pair| lost.contains(&pair[0].token));
    let mut spans: Vec<f64> =
        lost.map(|pair| pair[1].first.saturating_sub(pair[0].last) as f64 / ttl).collect();
    spans.sort_by(f64::total_cmp);
    spans
}
