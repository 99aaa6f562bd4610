//! Why is it not running: the gates between a task instance and its start, in their order; the same of
//! a run, and of a DAG that makes none.

mod assets;
mod dag;
mod deferred;
mod files;
mod previous;
mod schedulers;
mod slots;
mod takers;
mod upstream;

pub use dag::explain_dag;

use crate::Cx;
use crate::catalog::Version;
use crate::error::{EngineError, Refusal};
use crate::liveness::gate;
use crate::liveness::reconcile::stays_apart;
use crate::operations::find_run;
use fencepost_core::ramp::Ramp;
use fencepost_core::state::{AttemptState, RunState, TiState};
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::attempt;
use fencepost_store::query::dag::{self as dag_query, DagRow};
use fencepost_store::query::pool;
use fencepost_store::query::ramp;
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::{self, Ti};
use fencepost_store::query::{installation, lease};

/// What became of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateStatus {
    Passed,
    Blocking,
    NotReached,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    pub code: &'static str,
    pub status: GateStatus,
    pub text: String,
    pub holders: Vec<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    pub dag_id: String,
    /// None: about the DAG.
    pub run: Option<Run>,
    pub ti: Option<Ti>,
    pub state: String,
    pub since: Option<Timestamp>,
    pub summary: String,
    pub gates: Vec<Gate>,
    pub next: Option<String>,
}

/// A list of gates of which at most one blocks: the first that does not hold.
#[derive(Debug, Default)]
struct Gates {
    list: Vec<Gate>,
    blocked: bool,
    next: Option<String>,
}

impl Gates {
    fn add(&mut self, code: &'static str, open: bool, text: String) -> bool {
        let status = match (self.blocked, open) {
            (true, _) => GateStatus::NotReached,
            (false, true) => GateStatus::Passed,
            (false, false) => GateStatus::Blocking,
        };
        let blocks = status == GateStatus::Blocking;
        self.blocked |= blocks;
        self.list.push(Gate { code, status, text, holders: Vec::new() });
        blocks
    }
    fn hold(&mut self, holders: Vec<String>, next: Option<String>) {
        if let Some(gate) = self.list.last_mut() {
            gate.holders = holders;
        }
        self.next = next.or_else(|| self.next.take());
    }
    /// What a person can do about the gate that was added last, unless one before it blocks.
    fn advise(&mut self, next: String) {
        if self.list.last().is_some_and(|gate| gate.status != GateStatus::NotReached) {
            self.next = Some(next);
        }
    }
    fn blocking(&self) -> Option<&Gate> {
        self.list.iter().find(|gate| gate.status == GateStatus::Blocking)
    }
    fn blocks(&self, code: &str) -> bool {
        self.blocking().is_some_and(|gate| gate.code == code)
    }
}

/// Explains a task instance, or without a task the run.
pub async fn explain(
    cx: &Cx,
    dag_id: &str,
    run_id: &str,
    task: Option<(&str, Option<i32>)>,
) -> Result<Explanation, EngineError> {
    let tx = cx.store.read("explain").await?;
    let run = find_run(&tx, dag_id, run_id).await?;
    let row = dag_query::get(&tx, dag_id).await?.ok_or_else(|| Refusal::NoDag(dag_id.into()))?;
    let version = cx.catalog.version(&tx, run.version_pk).await?;
    let mut gates = Gates::default();
    run_gates(&tx, &run, &row, &mut gates).await?;
    let Some((task_id, map_index)) = task else {
        if !run.state.is_finished() {
            schedulers::gate(&tx, &mut gates).await?;
        }
        return Ok(of_run(run, gates));
    };
    let no_task = || Refusal::NoTask { run_id: run_id.into(), task_id: task_id.into() };
    let index = version.task_index(task_id).ok_or_else(no_task)?;
    let tis = task_instance::of_tasks(&tx, run.run_pk, &[index]).await?;
    let ti = tis.into_iter().find(|ti| map_index.is_none_or(|index| index == ti.key.map_index));
    let Some(ti) = ti else {
        let mut explained = of_run(run, gates);
        explained.summary = format!("{task_id} waits for its run to start");
        return Ok(explained);
    };
    if matches!(ti.state, TiState::None | TiState::Scheduled | TiState::UpForRetry) {
        schedulers::gate(&tx, &mut gates).await?;
    }
    task_gates(cx, &tx, &version, &run, &row, &ti, &mut gates).await?;
    Ok(of_task(run, ti, gates))
}

fn of_run(run: Run, gates: Gates) -> Explanation {
    let summary = match gates.blocking() {
        Some(gate) => format!("{} is {}: {}", run.run_id, run.state, gate.text),
        None => format!("{} is {}; nothing holds it up", run.run_id, run.state),
    };
    Explanation {
        state: run.state.to_string(),
        since: run.ended_at.or(run.started_at).or(Some(run.created_at)),
        summary,
        ti: None,
        next: gates.next,
        gates: gates.list,
        dag_id: run.dag_id.clone(),
        run: Some(run),
    }
}

fn of_task(run: Run, ti: Ti, gates: Gates) -> Explanation {
    let name = match ti.key.map_index {
        index if index >= 0 => format!("{}[{index}]", ti.task_id),
        _ => ti.task_id.clone(),
    };
    let summary = match gates.blocking() {
        Some(gate) => format!("{name} is {}: {}", ti.state, gate.text),
        None if ti.state.is_finished() => {
            let why = ti.reason.as_deref().unwrap_or("done");
            format!("{name} is {} ({why})", ti.state)
        }
        None => format!("{name} is {}; nothing holds it up", ti.state),
    };
    let since = match ti.state {
        TiState::Scheduled => ti.scheduled_at,
        TiState::Queued => ti.queued_at,
        TiState::Running | TiState::Restarting => ti.started_at,
        TiState::UpForRetry
        | TiState::Success
        | TiState::Failed
        | TiState::Skipped
        | TiState::UpstreamFailed
        | TiState::Removed => ti.ended_at,
        TiState::Deferred => ti.queued_at,
        TiState::None | TiState::Held => run.started_at,
    };
    Explanation {
        state: ti.state.to_string(),
        since,
        summary,
        gates: gates.list,
        next: gates.next,
        ti: Some(ti),
        dag_id: run.dag_id.clone(),
        run: Some(run),
    }
}

async fn run_gates(tx: &Tx, run: &Run, row: &DagRow, gates: &mut Gates) -> Result<(), EngineError> {
    if run.state.is_finished() {
        let why = run.reason.as_deref().unwrap_or("done");
        if run.state == RunState::Missed {
            slots::missed(run, why, gates);
            return Ok(());
        }
        gates.add("run_over", true, format!("run is over: {} ({why})", run.state));
        return Ok(());
    }
    files::note(tx, row, gates).await?;
    dag::pause_gate(row, gates);
    let text = if run.paused { "run is paused" } else { "run is not paused" };
    if gates.add("run_paused", !run.paused, text.into()) {
        let next = format!("fencepost runs resume {} {}", run.dag_id, run.run_id);
        gates.hold(Vec::new(), Some(next));
    }
    if run.state == RunState::Queued && run.backfill_pk.is_some() {
        slots::of_backfill(tx, run, gates).await?;
    } else if run.state == RunState::Queued {
        dag::limit_gate(tx, row, gates).await?;
    } else {
        gates.add("run_state", true, "run is running".into());
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "what was read once is shared by all gates")]
async fn task_gates(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    run: &Run,
    row: &DagRow,
    ti: &Ti,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    upstream::gate(tx, version, run, ti, gates).await?;
    if ti.state.is_finished() {
        return Ok(());
    }
    if ti.state == TiState::UpForRetry {
        let at = ti.retry_at.map_or_else(|| "?".into(), |at| at.to_string());
        gates.add("retry_delay", false, format!("try {} not before {at}", ti.try_number));
    }
    if ti.state == TiState::Deferred {
        deferred::gate(tx, run, ti, gates).await?;
    }
    if ti.state == TiState::Held {
        let why = ti.reason.as_deref().unwrap_or("held");
        let (text, next) = if why == "awaiting_evidence" {
            let token = ti.token.map_or_else(String::new, |token| token.to_string());
            (
                "evidence that its last attempt is gone starts it anew, or a person's word",
                format!("fencepost attempts confirm-dead {token}"),
            )
        } else {
            let (dag, run, task) = (&run.dag_id, &run.run_id, &ti.task_id);
            (
                "a person must decide",
                format!("fencepost held resolve {dag} {run} {task} --as success|failed|rerun"),
            )
        };
        let code = if previous::was_lost(tx, ti).await? { "held_lost" } else { "held" };
        gates.add(code, false, format!("held ({why}): {text}"));
        gates.hold(Vec::new(), Some(next));
    }
    if matches!(ti.state, TiState::Running | TiState::Restarting) {
        previous::gate(tx, ti, gates).await?;
    }
    if ti.recheck == 2 {
        previous::run_gate(cx, tx, version, ti, gates).await?;
    }
    if matches!(ti.state, TiState::Scheduled | TiState::Queued) {
        epoch_gate(cx, tx, version, ti, gates).await?;
    }
    if matches!(ti.state, TiState::Scheduled | TiState::None) {
        limit_gates(tx, version, row, ti, gates).await?;
    }
    if ti.state == TiState::Queued {
        // Nobody draws from a ramp for a queue that nobody serves.
        takers::gate(tx, version, ti, gates).await?;
        ramp_gate(tx, ti, gates).await?;
    }
    Ok(())
}

/// Shown only where it matters: a ramp is the exception.
async fn ramp_gate(tx: &Tx, ti: &Ti, gates: &mut Gates) -> Result<(), EngineError> {
    const MANY: u32 = 10_000;
    let Some(token) = ti.token else { return Ok(()) };
    let own = attempt::get(tx, &[token]).await?.pop();
    let own = own.filter(|own| own.state == AttemptState::Queued);
    let Some((pool, queue)) = own.and_then(|own| Some((own.ramp?, own.queue))) else {
        return Ok(());
    };
    let waiting = ramp::waiting(tx, (&pool, &queue), MANY).await?;
    let many = if waiting == MANY { " or more" } else { "" };
    let ramp = ramp::get(tx, &pool).await?;
    let pace = ramp.map_or_else(
        || "one may start now".into(),
        |ramp| format!("{} a second, next at {}", f64::from(ramp.rate) / 1_000.0, ramp.free_at),
    );
    let is_free = ramp.is_none_or(|ramp| Ramp::opens_at(ramp.free_at, tx.now()).is_none());
    let text = format!("recovered work of pool `{pool}`: {waiting}{many} waiting, {pace}");
    gates.add("recovery_ramp", is_free, text);
    Ok(())
}

/// Shown only where it blocks: an epoch is the exception.
async fn epoch_gate(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    ti: &Ti,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    const CODE: &str = "epoch_reconciling";
    let Some(standing) = installation::standing(tx).await? else { return Ok(()) };
    if !gate::is_open(cx, Some(&standing)) {
        let behind = lease::behind(tx, standing.epoch).await?;
        let patience = gate::patience(lease::longest_ttl(tx).await?);
        let text =
            format!("the store lost its last commits: epoch {} is reconciled", standing.epoch);
        if gates.add(CODE, false, text) {
            gates.hold(behind, Some(format!("wait for these workers, at most {patience}")));
        }
        return Ok(());
    }
    let task = version.dag.tasks.get(ti.key.task_index as usize);
    if gate::stays_apart(Some(&standing)) && task.is_some_and(stays_apart) {
        let patience = gate::patience(lease::longest_ttl(tx).await?);
        let text = format!(
            "waits {patience} from {}: a worker of an earlier epoch may still run it",
            standing.epoch_at
        );
        gates.add(CODE, false, text);
    }
    Ok(())
}

async fn limit_gates(
    tx: &Tx,
    version: &Version,
    row: &DagRow,
    ti: &Ti,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    let active = pool::active(tx).await?;
    let of_dag = || active.iter().filter(|a| a.dag_id == ti.dag_id);
    let held: i64 = of_dag().map(|a| a.count).sum();
    let text = format!("max_active_tasks {held}/{}", row.max_active_tasks);
    gates.add("dag_task_limit", held < row.max_active_tasks, text);
    let limits = version.dag.tasks.get(ti.key.task_index as usize).map(|task| &task.limits);
    let of_task = || of_dag().filter(|a| a.task_index == ti.key.task_index);
    if let Some(most) = limits.and_then(|limits| limits.max_active_tis_per_dag) {
        let held: i64 = of_task().map(|a| a.count).sum();
        let text = format!("max_active_tis_per_dag {held}/{most}");
        gates.add("task_limit", held < i64::from(most), text);
    }
    if let Some(most) = limits.and_then(|limits| limits.max_active_tis_per_dagrun) {
        let held: i64 = of_task().filter(|a| a.run_pk == ti.key.run_pk).map(|a| a.count).sum();
        let text = format!("max_active_tis_per_dagrun {held}/{most}");
        gates.add("task_limit", held < i64::from(most), text);
    }
    pool_gate(tx, ti, &active, gates).await
}

async fn pool_gate(
    tx: &Tx,
    ti: &Ti,
    active: &[pool::Active],
    gates: &mut Gates,
) -> Result<(), EngineError> {
    let pools = pool::list(tx).await?;
    let Some(own) = pools.iter().find(|pool| pool.name == ti.pool) else {
        gates.add("pool_missing", false, format!("there is no pool `{}`", ti.pool));
        let next = format!("fencepost pools set {} {}", ti.pool, ti.pool_slots.max(1));
        gates.hold(Vec::new(), Some(next));
        return Ok(());
    };
    let free = own.slots - own.held;
    let text =
        format!("pool `{}` {}/{} slots; needs {}", own.name, own.held, own.slots, ti.pool_slots);
    let code = if ti.pool_slots > own.slots { "pool_too_small" } else { "pool_full" };
    if gates.add(code, free >= ti.pool_slots, text) {
        let holders = active.iter().take(20).map(|a| format!("{} ×{}", a.dag_id, a.count));
        let next = format!("free {} slots, or  fencepost pools set {} N", ti.pool_slots, own.name);
        gates.hold(holders.collect(), Some(next));
    }
    Ok(())
}
