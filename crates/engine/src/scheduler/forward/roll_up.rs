//! The ends of runs.

use crate::Cx;
use crate::error::EngineError;
use crate::log;
use fencepost_core::lifecycle::run_next;
use fencepost_core::plan::rollup::run_end;
use fencepost_core::state::TiState;
use fencepost_store::Tx;
use fencepost_store::query::event;
use fencepost_store::query::run::{self, Run, RunEnd};
use fencepost_store::query::task_instance;
use std::collections::BTreeMap;

/// Ends runs whose instances are all counted.
pub(in crate::scheduler) async fn roll_up(
    cx: &Cx,
    tx: &Tx,
    run_pks: &[i64],
) -> Result<(), EngineError> {
    let runs = run::by_pks(tx, run_pks).await?;
    let leaves = leaves(cx, tx, &runs).await?;
    let (mut ends, mut lines) = (Vec::new(), Vec::new());
    for run in &runs {
        let own = leaves.get(&run.run_pk).map_or(&[][..], Vec::as_slice);
        let (event, reason) = run_end(run.stop_reason, own);
        let Ok(to) = run_next(run.state, event) else { continue };
        ends.push(RunEnd { run_pk: run.run_pk, from: run.state, to, reason });
        lines.push(log::run(run, "run_state", to.as_str(), log::SCHEDULER, reason));
    }
    let ended = run::end(tx, &ends).await?;
    let lines = lines.into_iter().zip(ended).filter(|(_, ended)| *ended).map(|(line, _)| line);
    event::append(tx, lines.collect()).await?;
    Ok(())
}

/// The states of the leaves that decide about each run. What stopped a run decides alone.
async fn leaves(
    cx: &Cx,
    tx: &Tx,
    runs: &[Run],
) -> Result<BTreeMap<i64, Vec<TiState>>, EngineError> {
    let mut versions = BTreeMap::new();
    for run in runs.iter().filter(|run| run.stop_reason.is_none()) {
        versions.insert(run.run_pk, cx.catalog.version(tx, run.version_pk).await?);
    }
    let mut leaves: BTreeMap<i64, Vec<TiState>> = BTreeMap::new();
    let wanted: Vec<i64> = versions.keys().copied().collect();
    for found in task_instance::states(tx, &wanted).await? {
        let Some(version) = versions.get(&found.run_pk) else { continue };
        if version.leaves.binary_search(&found.task_index).is_ok() {
            leaves.entry(found.run_pk).or_default().push(found.state);
        }
    }
    Ok(leaves)
}
