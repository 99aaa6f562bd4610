//! Executions, put together from the lines of the ledger.

use super::Facts;
use crate::ledger::{Deed, TiKey};
use std::collections::BTreeMap;

/// What the processes of one attempt did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub ti: TiKey,
    pub token: i64,
    /// When its main process began: more than once is a violation.
    pub begins: Vec<u64>,
    /// The first and the last sign of any process of it.
    pub first: u64,
    pub last: u64,
    /// How its main process said that it ends.
    pub status: Option<u8>,
}

/// All executions, by instance, in the order of their first signs.
pub(super) fn of(facts: &Facts) -> BTreeMap<TiKey, Vec<Execution>> {
    let mut by_token: BTreeMap<i64, Execution> = BTreeMap::new();
    // A begin comes before anything else of its token; lines of different processes may be out of order.
    for line in &facts.ledger {
        if let Deed::Begin { ti, .. } = &line.deed {
            let fresh = || Execution {
                ti: ti.clone(),
                token: line.token,
                begins: Vec::new(),
                first: line.at,
                last: line.at,
                status: None,
            };
            by_token.entry(line.token).or_insert_with(fresh).begins.push(line.at);
        }
    }
    for line in &facts.ledger {
        let Some(execution) = by_token.get_mut(&line.token) else { continue };
        execution.first = execution.first.min(line.at);
        execution.last = execution.last.max(line.at);
        if let Deed::End { status } = line.deed {
            execution.status = Some(status);
        }
    }
    let mut all: BTreeMap<TiKey, Vec<Execution>> = BTreeMap::new();
    for execution in by_token.into_values() {
        all.entry(execution.ti.clone()).or_default().push(execution);
    }
    for executions in all.values_mut() {
        executions.sort_by_key(|execution| execution.first);
    }
    all
}
