//! Nothing is lost: every run ends, every success was a complete execution, every slot came (I24, I31).

use super::{Execution, Facts, Promise, Violation};
use crate::dags::{EVERY_S, SCHEDULED};
use crate::ledger::TiKey;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<Violation> {
    let mut texts = open_runs(facts);
    texts.extend(missing_runs(facts));
    texts.extend(hollow_successes(facts, all));
    texts.extend(missing_slots(facts));
    texts.into_iter().map(|text| Violation::new(Promise::Lost, text)).collect()
}

fn open_runs(facts: &Facts) -> Vec<String> {
    let ended = |state: &str| matches!(state, "success" | "failed" | "cancelled" | "missed");
    let open = facts.runs.iter().filter(|run| !ended(&run.state));
    open.map(|run| format!("{}/{} is still {}", run.dag_id, run.run_id, run.state)).collect()
}

/// Triggers that were acknowledged and of which the store knows nothing.
fn missing_runs(facts: &Facts) -> Vec<String> {
    let known: BTreeSet<(&str, &str)> =
        facts.runs.iter().map(|run| (run.dag_id.as_str(), run.run_id.as_str())).collect();
    let is_missing = |trigger: &&crate::record::Trigger| {
        let Some(at) = trigger.acknowledged else { return false };
        !known.contains(&(trigger.dag.as_str(), trigger.run.as_str())) && !forgotten(facts, at)
    };
    let missing = facts.triggers.iter().filter(is_missing);
    missing.map(|t| format!("{}/{} was acknowledged, and is unknown", t.dag, t.run)).collect()
}

/// Whether a commit of that instant may be lost with the store that a standby has replaced.
pub(super) fn forgotten(facts: &Facts, at: u64) -> bool {
    let promotions = facts.faults.iter().filter(|fault| fault.kind == "promotion");
    promotions.into_iter().any(|fault| (fault.began..=fault.ended).contains(&at))
}

fn hollow_successes(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<String> {
    let mut texts = Vec::new();
    for instance in facts.instances.iter().filter(|instance| instance.state == "success") {
        let ti = instance.ti();
        let executions = all.get(&ti).map_or(&[][..], Vec::as_slice);
        let own = executions.iter().find(|execution| execution.token == instance.token);
        if own.and_then(|execution| execution.status) != Some(0) {
            texts.push(format!(
                "{ti} is a success of attempt {}, which the ledger has not seen succeed",
                instance.token
            ));
        }
    }
    texts
}

fn missing_slots(facts: &Facts) -> Vec<String> {
    let slots = facts.runs.iter().filter(|run| run.dag_id == SCHEDULED);
    let dates: BTreeSet<i64> = slots.filter_map(|run| run.logical_date).collect();
    let dates: Vec<i64> = dates.into_iter().collect();
    let gaps = dates.windows(2).filter(|pair| pair[1] - pair[0] != EVERY_S * 1_000_000);
    gaps.map(|pair| format!("{SCHEDULED}: no slot between {} and {}", pair[0], pair[1])).collect()
}
