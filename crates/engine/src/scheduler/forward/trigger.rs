//! Tasks that trigger a run of another DAG: the run is made in the commit in which the task succeeds,
//! so there is one for each success, whatever crashes (I7). No worker has anything to do with it.

use crate::Cx;
use crate::assets::{Emissions, Producer};
use crate::catalog::Version;
use crate::error::EngineError;
use crate::facts::{self, Facts};
use crate::log;
use crate::operations::trigger::{LogicalDate, TriggerRequest, make_run};
use fencepost_core::dag::{Action, TriggerDag};
use fencepost_core::lifecycle::{TiEvent, ti_next};
use fencepost_core::state::TiState;
use fencepost_store::Tx;
use fencepost_store::query::event;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Ti, TiChange};
use serde_json::{Map, Value};

/// Makes the runs of the instances of a task whose turn has come; how many instances moved. One that is
/// refused (no such DAG, a param that does not fit) fails, and its events say why.
pub(super) async fn trigger(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    head: &Ti,
) -> Result<usize, EngineError> {
    let Some(run) = run::by_pks(tx, &[head.key.run_pk]).await?.into_iter().next() else {
        return Ok(0);
    };
    let task = version.dag.tasks.get(head.key.task_index as usize);
    let Some(Action::TriggerDag(wanted)) = task.map(|task| &task.action) else { return Ok(0) };
    let tis = task_instance::of_tasks(tx, run.run_pk, &[head.key.task_index]).await?;
    let (mut changes, mut lines) = (Vec::new(), Vec::new());
    let mut emissions = Emissions::default();
    for ti in tis.into_iter().filter(|ti| ti.state == TiState::None) {
        let facts = facts::load(tx, &cx.catalog, run.clone(), ti).await?;
        let made = match request(cx, wanted, &facts) {
            Ok(request) => made(cx, tx, request).await?,
            Err(why) => Err(why),
        };
        let (event, reason) = match &made {
            Ok(_) => (TiEvent::Complete, "triggered"),
            Err(_) => (TiEvent::ConditionError, "trigger_refused"),
        };
        let Ok(to) = ti_next(facts.ti.state, event) else { continue };
        let mut change = TiChange::of(&facts.ti);
        change.to.state = to;
        change.to.reason = Some(reason.into());
        change.to.forward_due = true;
        change.to.recheck = 0;
        change.to.ended_at = Some(tx.now());
        if made.is_ok() {
            emissions.succeeded(Some(version), &Producer::of(&change.to), &[], log::SCHEDULER);
        }
        let mut line = log::ti_state(&change.to, change.from, log::SCHEDULER);
        line.reason = Some(made.unwrap_or_else(|why| why));
        lines.push(line);
        changes.push(change);
    }
    task_instance::change(tx, &changes).await?;
    event::append(tx, lines).await?;
    emissions.write(tx).await?;
    Ok(changes.len())
}

/// The run that was made, or why it was refused.
async fn made(
    cx: &Cx,
    tx: &Tx,
    request: TriggerRequest,
) -> Result<Result<String, String>, EngineError> {
    match make_run(cx, tx, request).await {
        Ok(run) => Ok(Ok(format!("triggered {} {}", run.dag_id, run.run_id))),
        Err(EngineError::Refused(refusal)) => Ok(Err(refusal.to_string())),
        Err(error) => Err(error),
    }
}

fn request(cx: &Cx, wanted: &TriggerDag, facts: &Facts) -> Result<TriggerRequest, String> {
    let value = |name: &str, template: &str| {
        (cx.env.value)(&format!("trigger_dag.{name}"), template, facts)
    };
    let text = |name: &str, template: &str| -> Result<String, String> {
        let given = value(name, template)?;
        Ok(given.as_str().map_or_else(|| given.to_string(), str::to_owned))
    };
    let mut params = Map::new();
    for (name, given) in &wanted.params {
        let given = match given.as_str() {
            Some(template) => value(name, template)?,
            None => given.clone(),
        };
        params.insert(name.clone(), given);
    }
    let logical_date = match &wanted.logical_date {
        None => LogicalDate::Now,
        Some(template) => {
            let at = text("logical_date", template)?;
            let read = at.parse().map(LogicalDate::At);
            read.map_err(|_| format!("`{at}` is no instant for `logical_date`"))?
        }
    };
    Ok(TriggerRequest {
        dag_id: text("dag_id", &wanted.dag_id)?,
        run_id: wanted.run_id.as_deref().map(|template| text("run_id", template)).transpose()?,
        logical_date,
        params,
        conf: Value::Null,
        note: None,
        by: format!("{}/{}/{}", facts.run.dag_id, facts.run.run_id, facts.ti.task_id),
    })
}
