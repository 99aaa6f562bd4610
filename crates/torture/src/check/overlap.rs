//! No two executions of one instance live at a time, and none is executed twice (I1, I5).

use super::{Execution, Promise, Violation};
use crate::clock::MS;
use crate::ledger::TiKey;
use std::collections::BTreeMap;

pub(super) fn check(all: &BTreeMap<TiKey, Vec<Execution>>) -> Vec<Violation> {
    all.values().flat_map(|executions| of_one(executions)).collect()
}

fn of_one(executions: &[Execution]) -> Vec<Violation> {
    let mut found = Vec::new();
    for execution in executions.iter().filter(|execution| execution.begins.len() > 1) {
        let Execution { ti, token, begins, .. } = execution;
        let text = format!("{ti}: attempt {token} was executed {} times", begins.len());
        found.push(Violation::new(Promise::Overlap, text));
    }
    for pair in executions.windows(2) {
        let (one, next) = (&pair[0], &pair[1]);
        if next.first <= one.last {
            let text = format!(
                "{}: attempt {} began {} ms before the last sign of {} (at {})",
                one.ti,
                next.token,
                (one.last - next.first) / MS,
                one.token,
                next.first / MS
            );
            found.push(Violation::new(Promise::Overlap, text));
        }
    }
    found
}
