//! One run for a slot (I17).

use super::{Facts, Promise, Violation};
use std::collections::BTreeMap;

pub(super) fn check(facts: &Facts) -> Vec<Violation> {
    let mut slots: BTreeMap<(&str, i64), Vec<&str>> = BTreeMap::new();
    for run in facts.runs.iter().filter(|run| run.run_type == "scheduled") {
        if let Some(date) = run.logical_date {
            slots.entry((&run.dag_id, date)).or_default().push(&run.run_id);
        }
    }
    let doubled = slots.into_iter().filter(|(_, runs)| runs.len() > 1);
    doubled
        .map(|((dag, slot), runs)| {
            let text = format!("{dag}: slot {slot} has the runs {}", runs.join(", "));
            Violation::new(Promise::DuplicateRun, text)
        })
        .collect()
}
