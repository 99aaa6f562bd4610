//! Runs on the wire.

use super::call::Call;
use super::dag_view::{narrow, time};
use super::failure::Failure;
use fencepost_api::rest::Run;
use fencepost_core::state::{RunState, TiState};
use fencepost_engine::error::EngineError;
use fencepost_store::Tx;
use fencepost_store::query::listing;
use fencepost_store::query::run;
use serde_json::Map;
use std::collections::BTreeMap;

/// Runs with what belongs to them, read for all at once.
pub(super) async fn runs(call: &Call, tx: &Tx, found: Vec<run::Run>) -> Result<Vec<Run>, Failure> {
    let keys: Vec<i64> = found.iter().map(|run| run.run_pk).collect();
    let counts = listing::runs::task_counts(tx, &keys).await?;
    let last: BTreeMap<i64, i64> =
        listing::runs::last_events(tx, &keys).await?.into_iter().collect();
    let mut versions: Vec<i64> = found.iter().map(|run| run.version_pk).collect();
    versions.sort_unstable();
    versions.dedup();
    let numbers: BTreeMap<i64, i64> =
        listing::dags::version_numbers(tx, &versions).await?.into_iter().collect();
    let mut by_run: BTreeMap<i64, BTreeMap<String, u32>> = BTreeMap::new();
    for count in counts {
        by_run.entry(count.run_pk).or_default().insert(count.state.as_str().into(), count.count);
    }
    let mut out = Vec::new();
    for run in found {
        let task_counts = match by_run.remove(&run.run_pk) {
            Some(counts) => counts,
            None => unmade(call, tx, &run).await?,
        };
        let version = numbers.get(&run.version_pk).copied().unwrap_or(0);
        let last_event_seq = last.get(&run.run_pk).copied().unwrap_or(0);
        out.push(Run { task_counts, last_event_seq, ..wire(run, narrow(version)) });
    }
    Ok(out)
}

/// The instances that a queued run is going to have.
async fn unmade(call: &Call, tx: &Tx, run: &run::Run) -> Result<BTreeMap<String, u32>, Failure> {
    if run.made || run.state != RunState::Queued {
        return Ok(BTreeMap::new());
    }
    let version = match call.cx().catalog.version(tx, run.version_pk).await {
        Ok(version) => version,
        // A version that cannot be read hides none of the other runs.
        Err(EngineError::BadVersion { .. }) => return Ok(BTreeMap::new()),
        Err(other) => return Err(other.into()),
    };
    let count = version.instances.iter().map(|made| made.count).sum();
    Ok(BTreeMap::from([(TiState::None.as_str().to_owned(), count)]))
}

fn wire(run: run::Run, version: u32) -> Run {
    let reason = reason(&run);
    Run {
        dag_id: run.dag_id,
        run_id: run.run_id,
        run_type: run.run_type.as_str().into(),
        state: run.state.as_str().into(),
        paused: run.paused,
        logical_date: time(run.logical_date),
        data_interval_start: time(run.interval_start),
        data_interval_end: time(run.interval_end),
        queued_at: run.created_at.to_string(),
        started_at: time(run.started_at),
        ended_at: time(run.ended_at),
        version,
        triggered_by: run.triggered_by,
        reason,
        note: run.note.filter(|note| !note.is_empty()),
        params: run.params.as_object().cloned().unwrap_or_else(Map::new),
        conf: run.conf,
        task_counts: BTreeMap::new(),
        last_event_seq: 0,
    }
}

/// Why it is in its state, where the state alone does not say it.
fn reason(run: &run::Run) -> Option<String> {
    match (run.stop_reason, &run.stop_by) {
        (Some(reason), Some(by)) if run.state == RunState::Running => {
            Some(format!("{reason} by {by}; waits for its last process to end"))
        }
        (Some(reason), Some(by)) => Some(format!("{reason} by {by}")),
        _ => run.reason.clone().filter(|reason| reason != "done"),
    }
}
