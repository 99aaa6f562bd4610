//! Why a DAG makes no run: its file, its pause, its limit, its schedule.

use super::assets::asset_gate;
use super::{Explanation, Gates, files, schedulers};
use crate::Cx;
use crate::error::{EngineError, Refusal};
use fencepost_store::Tx;
use fencepost_store::query::dag::{self, DagRow};
use fencepost_store::query::run;

/// Explains why no new run of a DAG is there.
pub async fn explain_dag(cx: &Cx, dag_id: &str) -> Result<Explanation, EngineError> {
    let tx = cx.store.read("explain_dag").await?;
    let mut gates = Gates::default();
    let Some(row) = dag::get(&tx, dag_id).await? else {
        let unread = files::of_unknown(&tx, dag_id).await?;
        let error = unread.ok_or_else(|| Refusal::NoDag(dag_id.into()))?;
        files::unread(&error, &mut gates);
        return Ok(answer(dag_id, "unread", gates));
    };
    files::gate(&tx, &row, &mut gates).await?;
    pause_gate(&row, &mut gates);
    limit_gate(&tx, &row, &mut gates).await?;
    schedulers::gate(&tx, &mut gates).await?;
    if !asset_gate(cx, &tx, &row, &mut gates).await? {
        due_gate(&tx, &row, &mut gates);
    }
    let state = match (row.is_active, row.is_paused) {
        (false, _) => "inactive",
        (true, true) => "paused",
        (true, false) => "active",
    };
    let mut told = answer(dag_id, state, gates);
    told.since = Some(row.updated_at);
    Ok(told)
}

fn answer(dag_id: &str, state: &str, gates: Gates) -> Explanation {
    let summary = match gates.blocking() {
        Some(gate) => format!("{dag_id} is {state}: {}", gate.text),
        None => format!("{dag_id} is {state}; nothing holds up its next run"),
    };
    Explanation {
        dag_id: dag_id.into(),
        run: None,
        ti: None,
        state: state.into(),
        since: None,
        summary,
        next: gates.next,
        gates: gates.list,
    }
}

/// Whether the DAG is paused.
pub(super) fn pause_gate(row: &DagRow, gates: &mut Gates) {
    let by = row.paused_by.as_deref().map_or_else(String::new, |by| format!(" by {by}"));
    let text = if row.is_paused { format!("DAG is paused{by}") } else { "DAG is active".into() };
    if gates.add("dag_paused", !row.is_paused, text) {
        gates.advise(format!("fencepost dags unpause {}", row.dag_id));
    }
}

/// Whether one more run of it may be active.
pub(super) async fn limit_gate(
    tx: &Tx,
    row: &DagRow,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    let active = run::active(tx, &row.dag_id, 100).await?;
    let full = i64::try_from(active.len()).unwrap_or(i64::MAX) >= row.max_active_runs;
    let text = format!("{} of {} runs active", active.len(), row.max_active_runs);
    if gates.add("run_queued_max_active_runs", !full, text) {
        let holders = active.iter().map(|run| run.run_id.clone()).collect();
        gates.hold(holders, Some("wait, or raise max_active_runs in the file".into()));
    }
    Ok(())
}

/// When the schedule makes the next run.
fn due_gate(tx: &Tx, row: &DagRow, gates: &mut Gates) {
    const CODE: &str = "not_due";
    let trigger = format!("fencepost dags trigger {}", row.dag_id);
    match row.next_slot_at {
        Some(at) if at > tx.now() => {
            let left = at.since(tx.now()).in_secs();
            gates.add(CODE, false, format!("next run at {at} (in {left})"));
        }
        Some(at) => {
            gates.add(CODE, true, format!("a run is due since {at}: the next pass makes it"));
            return;
        }
        None if row.schedule.is_empty() => {
            gates.add(CODE, false, "it has no schedule: runs are triggered".into());
        }
        None => {
            gates.add(CODE, false, format!("its schedule ({}) has no slot left", row.schedule));
        }
    }
    if gates.blocks("not_due") {
        gates.advise(trigger);
    }
}
