//! A person answers what a deferred task asks (`wait: {approval: ...}`): approve or reject, once.

use super::find_run;
use crate::Cx;
use crate::error::{EngineError, Refusal};
use crate::triggerer::{Waking, settle};
use fencepost_core::state::TiState;
use fencepost_core::wait::{How, Wait, Waiting};
use fencepost_store::query::task_instance::{self, Ti};
use fencepost_store::query::trigger;
use serde_json::json;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    /// Of a mapped task.
    pub map_index: Option<i32>,
    pub approves: bool,
    pub by: String,
    pub reason: Option<String>,
}

/// Takes an answer; the instance as it was, and its state now. Of two answers the first counts, and the second is refused.
pub async fn answer(cx: &Cx, reply: &Reply) -> Result<(Ti, TiState), EngineError> {
    let tx = cx.store.begin("answer").await?;
    let run = find_run(&tx, &reply.dag_id, &reply.run_id).await?;
    let version = cx.catalog.version(&tx, run.version_pk).await?;
    let no_task =
        || Refusal::NoTask { run_id: reply.run_id.clone(), task_id: reply.task_id.clone() };
    let index = version.task_index(&reply.task_id).ok_or_else(no_task)?;
    task_instance::lock_tasks(&tx, run.run_pk, &[index]).await?;
    let tis = task_instance::of_tasks(&tx, run.run_pk, &[index]).await?;
    let mut of_index =
        tis.into_iter().filter(|ti| reply.map_index.is_none_or(|index| index == ti.key.map_index));
    let ti = of_index.next().ok_or_else(no_task)?;
    if of_index.next().is_some() {
        let text = format!("`{}` is mapped: name one instance (--map-index)", reply.task_id);
        return Err(Refusal::Invalid(text).into());
    }
    let asked = match ti.token.filter(|_| ti.state == TiState::Deferred) {
        Some(token) => trigger::get(&tx, &[token]).await?.pop(),
        None => None,
    };
    let waiting = asked.as_ref().and_then(|trigger| Waiting::from_json(&trigger.wait).ok());
    let (Some(trigger), Some(Waiting { wait: Wait::Approval(question), .. })) = (asked, waiting)
    else {
        let what = format!("`{}`", reply.task_id);
        let state = format!("{}, and asks nobody", ti.state);
        return Err(Refusal::AlreadyTerminal { what, state }.into());
    };
    let how = if reply.approves {
        How::Met(json!({ "approved": true, "by": reply.by, "reason": reply.reason }))
    } else {
        let (by, reason) = (reply.by.clone(), reply.reason.clone());
        How::Rejected { by, reason, fails: question.fail_on_reject }
    };
    settle(cx, &tx, vec![Waking { ti: ti.clone(), trigger, how }], &reply.by).await?;
    let after = task_instance::get(&tx, &[ti.key]).await?.pop().map_or(ti.state, |ti| ti.state);
    tx.commit().await?;
    cx.wakes.engine();
    Ok((ti, after))
}
