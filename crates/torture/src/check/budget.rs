//! Budgets are exact, and a loss never costs a user's retry (I8).

use super::{Execution, Facts, Promise, Violation};
use crate::dags::{FLAKY, FLAKY_RETRIES, INFRA_RETRIES};
use crate::dump::Instance;
use crate::ledger::TiKey;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(facts: &Facts, all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<Violation> {
    // What a person cancelled fails for that.
    let cancelled: BTreeSet<(&str, &str)> = facts
        .runs
        .iter()
        .filter(|run| run.state == "cancelled")
        .map(|run| (run.dag_id.as_str(), run.run_id.as_str()))
        .collect();
    let of = |instance: &Instance| {
        let executions = all.get(&instance.ti()).map_or(&[][..], Vec::as_slice);
        let key = (instance.dag_id.as_str(), instance.run_id.as_str());
        of_one(instance, executions, cancelled.contains(&key))
    };
    let texts = facts.instances.iter().flat_map(of);
    texts.map(|text| Violation::new(Promise::Budget, text)).collect()
}

fn of_one(instance: &Instance, executions: &[Execution], is_cancelled: bool) -> Vec<String> {
    let (ti, mut texts) = (instance.ti(), Vec::new());
    let retries = if instance.dag_id == FLAKY { FLAKY_RETRIES } else { 0 };
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    // A clear begins both budgets anew.
    let rounds = 1 + instance.clears;
    let most = rounds * (1 + retries + INFRA_RETRIES);
    if count(executions.len()) > most {
        texts.push(format!("{ti} was executed {} times, {most} are allowed", executions.len()));
    }
    let failures = count(executions.iter().filter(|e| e.status.is_some_and(|s| s > 0)).count());
    if instance.try_number > 1 + failures + instance.clears {
        let tries = instance.try_number;
        texts
            .push(format!("{ti} is at try {tries} after {failures} failures: a loss cost a retry"));
    }
    let is_just = is_cancelled || failures > retries || instance.infra_losses >= INFRA_RETRIES;
    if instance.state == "failed" && !is_just {
        let losses = instance.infra_losses;
        texts.push(format!(
            "{ti} failed ({}) after {failures} failures and {losses} losses",
            instance.reason
        ));
    }
    texts
}
