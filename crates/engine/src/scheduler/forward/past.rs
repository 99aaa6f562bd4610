//! The run before: `depends_on_past` and `wait_for_downstream`, with Airflow's meaning.
//!
//! The run before is the one with the next smaller logical date (with `catchup: true`, of those that no
//! person triggered); slots that were missed are passed over, and the first run has none. A task is looked up there by its name, since a version may have
//! other tasks in another order; a version without it cannot hold it up.

use crate::Cx;
use crate::catalog::Version;
use crate::error::EngineError;
use fencepost_core::schedule::Catchup;
use fencepost_core::state::TiState;
use fencepost_store::Tx;
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, Ti};
use std::collections::BTreeSet;

/// How it stands with the run before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) run_id: String,
    /// The task whose instance there has not ended well, and its state; `None`: all have.
    pub(crate) waits_for: Option<(String, &'static str)>,
    /// It is the task that asks, not one after it.
    pub(crate) is_own: bool,
}

impl Past {
    pub(crate) fn is_met(&self) -> bool {
        self.waits_for.is_none()
    }
}

/// How the run before stands for a task; `None`: there is none, or it has no such task.
pub(crate) async fn standing(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    head: &Ti,
) -> Result<Option<Past>, EngineError> {
    let run = run::by_pks(tx, &[head.key.run_pk]).await?.pop();
    let Some(date) = run.and_then(|run| run.logical_date) else { return Ok(None) };
    // As in Airflow: with `catchup: true` the runs of the schedule follow each other alone.
    let manual = version.dag.timing.catchup != Catchup::All;
    let before = run::previous(tx, &head.dag_id, date, manual).await?;
    let Some(before) = before else { return Ok(None) };
    let there = match cx.catalog.version(tx, before.version_pk).await {
        Ok(there) => there,
        // Nobody can say what it ran: it is asked again when its version can be read.
        Err(error) => {
            drop(error.of_one_version()?);
            return Ok(Some(waits(
                &before,
                &head.task_id,
                "of a version that cannot be read",
                true,
            )));
        }
    };
    let same = (before.version_pk == version.version_pk).then_some(head.key.task_index);
    let Some(own) = same.or_else(|| there.task_index(&head.task_id)) else { return Ok(None) };
    let tis = task_instance::of_tasks(tx, before.run_pk, &[own]).await?;
    if tis.is_empty() {
        // Not started, or over before it began: only the former can still run it.
        let can_come = !before.made && !before.state.is_finished();
        return Ok(can_come.then(|| waits(&before, &head.task_id, "not started", true)));
    }
    if let Some(open) = tis.iter().find(|ti| !ended_well(ti)) {
        return Ok(Some(waits(&before, &head.task_id, open.state.as_str(), true)));
    }
    let after = after(version, &there, head, own);
    if !after.is_empty() {
        let tis = task_instance::of_tasks(tx, before.run_pk, &after).await?;
        if let Some(open) = tis.iter().find(|ti| !ended_well(ti)) {
            return Ok(Some(waits(&before, &open.task_id, open.state.as_str(), false)));
        }
    }
    Ok(Some(Past { run_id: before.run_id, waits_for: None, is_own: true }))
}

/// The tasks right after one, there, if the task waits for them.
fn after(version: &Version, there: &Version, head: &Ti, own: u32) -> Vec<u32> {
    let task = version.dag.tasks.get(head.key.task_index as usize);
    if !task.is_some_and(|task| task.wait_for_downstream) {
        return Vec::new();
    }
    let downs = there.downstreams.get(own as usize).into_iter().flatten();
    let downs: BTreeSet<u32> = downs.map(|down| down.0).collect();
    downs.into_iter().collect()
}

fn ended_well(ti: &Ti) -> bool {
    matches!(ti.state, TiState::Success | TiState::Skipped)
}

fn waits(run: &Run, task_id: &str, state: &'static str, is_own: bool) -> Past {
    Past { run_id: run.run_id.clone(), waits_for: Some((task_id.into(), state)), is_own }
}
