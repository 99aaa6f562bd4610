//! What a deferred instance waits for, and who looks.

use super::Gates;
use crate::error::EngineError;
use crate::operations::inspect::triggers::detail;
use fencepost_core::state::{JobKind, JobState};
use fencepost_store::Tx;
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::Ti;
use fencepost_store::query::{job, trigger};

pub(super) async fn gate(
    tx: &Tx,
    run: &Run,
    ti: &Ti,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    let Some(token) = ti.token else { return Ok(()) };
    let Some(own) = trigger::get(tx, &[token]).await?.pop() else { return Ok(()) };
    gates.add("deferred", false, detail(&own));
    let (dag, run, task) = (&run.dag_id, &run.run_id, &ti.task_id);
    if own.kind == "approval" {
        gates.hold(Vec::new(), Some(format!("fencepost tasks approve|reject {dag} {run} {task}")));
        return Ok(());
    }
    if own.next_at.is_none() {
        return Ok(());
    }
    let live = job::live(tx).await?;
    // A standalone watches by itself.
    let watches = |job: &&job::Job| {
        job.state == JobState::Running
            && (job.kind == JobKind::Triggerer
                || (job.kind == JobKind::Worker && job.lease_ttl.is_none()))
    };
    let names: Vec<String> =
        live.iter().filter(watches).map(|job| format!("{}@{}", job.name, job.host)).collect();
    if names.is_empty() {
        gates.hold(names, Some("no triggerer lives: fencepost triggerer --store URL".into()));
    } else {
        gates.hold(names, None);
    }
    Ok(())
}
