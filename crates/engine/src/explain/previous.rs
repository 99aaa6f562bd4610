//! What stands in the way of a next attempt: the one before it, whose processes may still be there;
//! and the run before, for a task that depends on it.

use super::Gates;
use crate::Cx;
use crate::catalog::Version;
use crate::error::EngineError;
use crate::operations::workers;
use crate::scheduler::past;
use fencepost_core::state::{AttemptState, Outcome};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::job;
use fencepost_store::query::task_instance::Ti;

async fn newest(tx: &Tx, ti: &Ti) -> Result<Option<Attempt>, EngineError> {
    let Some(token) = ti.token else { return Ok(None) };
    Ok(attempt::get(tx, &[token]).await?.pop())
}

/// Whether what is held was lost, and did not ask for it.
pub(super) async fn was_lost(tx: &Tx, ti: &Ti) -> Result<bool, EngineError> {
    let newest = newest(tx, ti).await?;
    Ok(newest.is_some_and(|own| {
        own.state == AttemptState::LostOpen || own.outcome == Some(Outcome::Lost)
    }))
}

/// Blocks while an attempt is being stopped, or its worker is not heard of.
pub(super) async fn gate(tx: &Tx, ti: &Ti, gates: &mut Gates) -> Result<(), EngineError> {
    const CODE: &str = "previous_attempt_not_released";
    let Some(own) = newest(tx, ti).await? else { return Ok(()) };
    let worker = own.worker.as_deref().unwrap_or("its worker");
    let name = format!("attempt {} ({})", own.attempt_number, own.token);
    if own.state == AttemptState::Stopping {
        let why = own.stop_reason.map_or("stop", |reason| reason.as_str());
        let text =
            format!("{name} is asked to end ({why}): its processes on `{worker}` are not gone yet");
        gates.add(CODE, false, text);
        gates.hold(Vec::new(), Some(format!("wait, or  fencepost attempts kill {}", own.token)));
        return Ok(());
    }
    let Some(job_id) = own.job_id.filter(|_| own.state == AttemptState::Running) else {
        return Ok(());
    };
    let Some(job) = job::get(tx, job_id).await? else { return Ok(()) };
    let liveness = workers::liveness(&job, tx.now());
    if matches!(liveness, "live" | "draining" | "stalled") {
        return Ok(());
    }
    let ends = job.lease_ttl.map(|ttl| job.renewed_at.plus(ttl));
    let lease = match ends {
        Some(at) if at > tx.now() => {
            format!("; its lease ends in {}", at.since(tx.now()).in_secs())
        }
        Some(_) => "; its lease is over, and it is being declared lost".into(),
        None => String::new(),
    };
    let heard = tx.now().since(job.renewed_at).in_secs();
    let text =
        format!("{name} may be alive on `{worker}` ({liveness}), last heard of {heard} ago{lease}");
    gates.add(CODE, false, text);
    gates.hold(
        Vec::new(),
        Some(format!("wait, or if you know better  fencepost workers confirm-dead {worker}")),
    );
    Ok(())
}

/// Says which instance of the run before is waited for.
pub(super) async fn run_gate(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    ti: &Ti,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    const CODE: &str = "depends_on_past";
    let Some(standing) = past::standing(cx, tx, version, ti).await? else {
        gates.add(CODE, false, "an older run has the place of this one".into());
        return Ok(());
    };
    let own = &ti.task_id;
    let (text, next) = match (&standing.waits_for, standing.is_own) {
        (None, _) => ("waits for a place: an older run was let before it".into(), None),
        (Some((task, state)), is_own) => {
            let (task, run) = (task, &standing.run_id);
            let text = if is_own {
                format!("previous instance of {own} is {state} in {run}")
            } else {
                format!("wait_for_downstream: {task} after {own} is {state} in {run}")
            };
            let done = matches!(*state, "failed" | "upstream_failed" | "removed");
            let clear = format!("fencepost tasks clear {} {run} {task}", ti.dag_id);
            (text, done.then_some(clear))
        }
    };
    gates.add(CODE, false, text);
    gates.hold(vec![standing.run_id], next);
    Ok(())
}
