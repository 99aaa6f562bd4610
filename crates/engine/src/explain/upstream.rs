//! What a task's trigger rule says of its upstreams: not yet, never, or already.

use super::Gates;
use crate::catalog::Version;
use crate::error::EngineError;
use fencepost_core::dag::Task;
use fencepost_core::state::TiState;
use fencepost_core::trigger_rule::{Decision, UpstreamCounts};
use fencepost_store::Tx;
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::{self, Ti};

/// Upstream instances that are named.
const NAMED: usize = 20;

/// Blocks while the rule waits, and where it can no longer hold.
pub(super) async fn gate(
    tx: &Tx,
    version: &Version,
    run: &Run,
    ti: &Ti,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    let Some(task) = version.dag.tasks.get(ti.key.task_index as usize) else { return Ok(()) };
    let head = task_instance::heads(tx, &[(ti.key.run_pk, ti.key.task_index)]).await?;
    let counts = head.first().map_or(ti.upstream, |head| head.upstream);
    let decided = task.trigger_rule.decide(&counts);
    match (decided, ti.state) {
        (Decision::Wait, TiState::None) => waits(tx, task, ti, gates).await,
        (Decision::UpstreamFailed, TiState::None | TiState::UpstreamFailed)
        | (Decision::Skip, TiState::None | TiState::Skipped) => {
            unmet(tx, (task, run, ti), decided, gates).await
        }
        (_, state) if state.is_finished() => Ok(()),
        _ => {
            passed(task, &counts, gates);
            Ok(())
        }
    }
}

fn passed(task: &Task, counts: &UpstreamCounts, gates: &mut Gates) {
    let rule = task.trigger_rule.as_str();
    let text = format!("upstream: {rule} ({} of {} done)", counts.done(), counts.total);
    gates.add("upstream_not_done", true, text);
}

async fn waits(tx: &Tx, task: &Task, ti: &Ti, gates: &mut Gates) -> Result<(), EngineError> {
    let waiting = named(tx, task, ti, |state| !state.is_finished()).await?;
    gates.add("upstream_not_done", false, format!("waits for {}", waiting.join(", ")));
    gates.hold(waiting, None);
    Ok(())
}

/// The rule is decided, and not for a start: at once, or with the next pass.
async fn unmet(
    tx: &Tx,
    (task, run, ti): (&Task, &Run, &Ti),
    decided: Decision,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    let is_broken = decided == Decision::UpstreamFailed;
    let blames = |state: TiState| {
        let broken = matches!(state, TiState::Failed | TiState::UpstreamFailed);
        state.is_finished() && broken == is_broken
    };
    let ups = named(tx, task, ti, blames).await?;
    let first = ups.first().and_then(|up| up.split(' ').next()).unwrap_or("TASK");
    let becomes = if is_broken { TiState::UpstreamFailed } else { TiState::Skipped };
    let then = if ti.state == becomes { "" } else { "state will be " };
    let rule = task.trigger_rule.as_str();
    let text = format!("{rule} can no longer hold: {} → {then}{becomes}", ups.join(", "));
    gates.add("trigger_rule_unmet", false, text);
    let (dag, run) = (&run.dag_id, &run.run_id);
    let next = is_broken
        .then(|| format!("mend it, then  fencepost tasks clear {dag} {run} {first} --downstream"));
    gates.hold(ups, next);
    Ok(())
}

async fn named(
    tx: &Tx,
    task: &Task,
    ti: &Ti,
    wanted: impl Fn(TiState) -> bool,
) -> Result<Vec<String>, EngineError> {
    let ups: Vec<u32> = task.depends_on.iter().map(|up| up.0).collect();
    let found = task_instance::of_tasks(tx, ti.key.run_pk, &ups).await?;
    let found = found.iter().filter(|up| wanted(up.state)).take(NAMED);
    Ok(found.map(|up| format!("{} ({})", up.task_id, up.state)).collect())
}
