//! Callbacks: what is told to the outside, and another round for what nobody tried any more.

use super::answer::{Answer, Done};
use super::call::Call;
use super::cursor;
use super::runs::check_text;
use fencepost_api::rest::{Action, Callback, CallbackQuery};
use fencepost_engine::error::Refusal;
use fencepost_engine::operations::callbacks;
use fencepost_store::query::callback as rows;

pub(super) async fn list(call: &Call) -> Done {
    let query: CallbackQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let [after] = cursor::read::<1>("callbacks", query.cursor.as_deref())?.unwrap_or_default();
    let state = query.state.as_deref().unwrap_or_default();
    let of = (state, query.dag_id.as_deref().unwrap_or_default());
    let tx = call.read().await?;
    let found = rows::page(&tx, &after, of, limit + 1).await?;
    let place = |one: &rows::Callback| cursor::write("callbacks", &[&one.id]);
    let (found, next) = cursor::cut(found, limit, place);
    Answer::ok(&cursor::page(found.into_iter().map(wire).collect(), next))
}

pub(super) async fn show(call: &Call) -> Done {
    let tx = call.read().await?;
    let found = rows::get(&tx, call.arg(0)).await?;
    Answer::ok(&wire(found.ok_or_else(|| Refusal::NoCallback(call.arg(0).into()))?))
}

pub(super) async fn retry(call: &Call) -> Done {
    let action: Action = call.body()?;
    check_text("/reason", action.reason.as_deref())?;
    let after = callbacks::retry(call.cx(), call.arg(0), call.by(), action.reason).await?;
    Answer::ok(&wire(after))
}

fn wire(of: rows::Callback) -> Callback {
    let is_due = of.state == "due";
    Callback {
        id: of.id,
        dag_id: of.dag_id,
        run_id: of.run_id,
        task_id: of.task_id,
        map_index: of.map_index,
        token: of.token.map(|token| token.as_i64().to_string()),
        occasion: of.occasion.as_str().into(),
        kind: of.kind,
        target: of.target,
        state: of.state,
        tries: of.tries,
        created_at: of.created_at.to_string(),
        due_at: is_due.then(|| of.due_at.to_string()),
        ended_at: of.ended_at.map(|at| at.to_string()),
        last_error: of.last_error,
        told: of.told,
    }
}
