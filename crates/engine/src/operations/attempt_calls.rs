//! What the process of a task asks for itself: whether its attempt is current, and outputs.
//!
//! Its credential is good for that attempt while it is current (section 7 of the semantics): each
//! call looks first, in the transaction that it acts in.

use super::{Answer, Refused};
use crate::Cx;
use crate::error::{EngineError, Refusal};
use fencepost_core::id::{AttemptId, Token};
use fencepost_core::state::AttemptState;
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, Ti};
use fencepost_store::query::xcom;
use serde_json::Value;

/// Which output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// `None`: of the attempt's own task.
    pub task_id: Option<String>,
    /// `None`: of a mapped task all, as a list; of the own task the own instance.
    pub map_index: Option<i32>,
    pub name: String,
}

/// What a call found, if the attempt is current.
#[derive(Debug, Clone, PartialEq)]
pub enum Called<T> {
    Done(T),
    Refused(Refused, String),
}

/// Whether an attempt is the current one of its instance, runs, was not told to stop, and has an
/// owner that is believed alive.
pub async fn check(cx: &Cx, id: AttemptId, token: Token) -> Result<Answer, EngineError> {
    let tx = cx.store.read("fence_check").await?;
    Ok(match current(&tx, id, token).await? {
        Called::Done(_) => Answer::Accepted,
        Called::Refused(why, text) => Answer::Refused(why, text),
    })
}

/// An output of a task of the same run; `None` if there is none of that name.
pub async fn output(
    cx: &Cx,
    (id, token): (AttemptId, Token),
    wanted: &Wanted,
) -> Result<Called<Option<Value>>, EngineError> {
    let tx = cx.store.read("xcom_get").await?;
    let (ti, run) = match current(&tx, id, token).await? {
        Called::Done(found) => found,
        Called::Refused(why, text) => return Ok(Called::Refused(why, text)),
    };
    let version = cx.catalog.version(&tx, run.version_pk).await?;
    let own = wanted.task_id.as_ref().is_none_or(|task_id| *task_id == ti.task_id);
    let task_id = wanted.task_id.clone().unwrap_or_else(|| ti.task_id.clone());
    let Some(index) = version.task_index(&task_id) else {
        return Err(Refusal::NoTask { run_id: run.run_id, task_id }.into());
    };
    let mapped = version.dag.tasks.get(index as usize).is_some_and(|t| !t.expand.is_empty());
    let place = wanted.map_index.or_else(|| own.then_some(ti.key.map_index));
    let found = xcom::of_tasks(&tx, &[(run.run_pk, index)]).await?.into_iter();
    let mut values = found
        .filter(|x| x.name == wanted.name && place.is_none_or(|place| x.map_index == place))
        .map(|x| x.value);
    if mapped && place.is_none() {
        let all: Vec<Value> = values.collect();
        return Ok(Called::Done((!all.is_empty()).then_some(Value::Array(all))));
    }
    Ok(Called::Done(values.next()))
}

/// Sets an output of the attempt's own instance. A declared one is written to the output file,
/// where it is checked: it is refused here.
pub async fn set_output(
    cx: &Cx,
    (id, token): (AttemptId, Token),
    output: &(String, Value),
) -> Result<Called<()>, EngineError> {
    let tx = cx.store.begin("xcom_set").await?;
    let (ti, run) = match current(&tx, id, token).await? {
        Called::Done(found) => found,
        Called::Refused(why, text) => return Ok(Called::Refused(why, text)),
    };
    let version = cx.catalog.version(&tx, run.version_pk).await?;
    let task = version.dag.tasks.get(ti.key.task_index as usize);
    if task.is_some_and(|task| task.outputs.iter().any(|(name, _)| *name == output.0)) {
        let text =
            format!("`{}` is a declared output: write it to FENCEPOST_OUTPUT_FILE", output.0);
        return Err(Refusal::Invalid(text).into());
    }
    xcom::set(&tx, run.run_pk, token, (ti.key.task_index, ti.key.map_index), output).await?;
    tx.commit().await?;
    Ok(Called::Done(()))
}

async fn current(tx: &Tx, id: AttemptId, token: Token) -> Result<Called<(Ti, Run)>, EngineError> {
    let refused = |why, text: &str| Ok(Called::Refused(why, text.to_owned()));
    // The instance first, as everybody does who locks both.
    let ti = task_instance::of_attempts(tx, &[token]).await?.into_iter().next();
    let own = attempt::get(tx, &[token]).await?.into_iter().next();
    let Some(own) = own.filter(|own| own.attempt_id == id) else {
        return refused(Refused::NotRunning, "there is no such attempt: its run was deleted");
    };
    let Some(ti) = ti.filter(|ti| ti.token == Some(token)) else {
        return refused(Refused::Superseded, "a newer attempt exists");
    };
    if own.stop_reason.is_some() {
        return refused(Refused::Cancelled, "the attempt was told to stop");
    }
    if own.state != AttemptState::Running {
        return refused(Refused::NotRunning, &format!("the attempt is {}", own.state));
    }
    if !owner_lives(tx, &own).await? {
        return refused(Refused::Fenced, "the lease of its worker is over");
    }
    let Some(run) = run::by_pks(tx, &[own.ti.run_pk]).await?.into_iter().next() else {
        return refused(Refused::NotRunning, "its run was deleted");
    };
    Ok(Called::Done((ti, run)))
}

async fn owner_lives(tx: &Tx, own: &Attempt) -> Result<bool, EngineError> {
    let Some(job_id) = own.job_id else { return Ok(false) };
    let job = fencepost_store::query::job::get(tx, job_id).await?;
    // A worker that restarts leaves what runs to its shims, which live by the lease that it had.
    Ok(job.is_some_and(|job| job.state != fencepost_core::state::JobState::Lost))
}
