//! A person's answer to what a deferred task asks.

use super::answer::{Answer, Done};
use super::call::Call;
use super::marks::Scope;
use super::runs::check_text;
use fencepost_api::rest::{Action, Change};
use fencepost_engine::operations::answer::{Reply, answer as reply};

pub(super) async fn answer(call: &Call, approves: bool) -> Done {
    let body: Action = call.body()?;
    check_text("/reason", body.reason.as_deref())?;
    let scope = Scope::of(call).await?;
    let named = scope.at.named(call.arg(2))?;
    let request = Reply {
        dag_id: scope.at.run.dag_id.clone(),
        run_id: scope.at.run.run_id.clone(),
        task_id: named.task_id,
        map_index: named.map_index,
        approves,
        by: call.by().into(),
        reason: body.reason,
    };
    let (before, after) = reply(call.cx(), &request).await?;
    let change = Change {
        run_id: scope.at.run.run_id.clone(),
        task_id: before.task_id,
        map_index: before.key.map_index,
        from: before.state.as_str().into(),
        to: Some(after.as_str().into()),
        new_key: false,
        reason: Some(if approves { "approved" } else { "rejected" }.into()),
    };
    Answer::ok(&scope.plan(false, vec![change]))
}
