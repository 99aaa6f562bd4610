//! A person asks for another round for a callback that nobody tried any more.

use crate::Cx;
use crate::callbacks::UNRENDERED;
use crate::error::{EngineError, Refusal};
use fencepost_store::query::callback::{self, Callback};
use fencepost_store::query::event::{self, Event};

/// Makes a dead callback due again.
pub async fn retry(
    cx: &Cx,
    id: &str,
    by: &str,
    reason: Option<String>,
) -> Result<Callback, EngineError> {
    let tx = cx.store.begin("retry_callback").await?;
    let none = || Refusal::NoCallback(id.to_owned());
    let found = callback::get(&tx, id).await?.ok_or_else(none)?;
    if found.spec.get(UNRENDERED).is_some() {
        let why = found.last_error.unwrap_or_default();
        let text = format!("it could not be rendered, and nothing can be sent of it: {why}");
        return Err(Refusal::Invalid(text).into());
    }
    if !callback::retry(&tx, id).await? {
        let (what, state) = (format!("callback {id}"), found.state);
        return Err(Refusal::AlreadyTerminal { what, state }.into());
    }
    let line = Event {
        kind: "callback_retried",
        dag_id: Some(found.dag_id),
        run_pk: Some(found.run_pk),
        task_id: found.task_id,
        actor: by.to_owned(),
        reason,
        evidence: Some(serde_json::json!({ "callback": id })),
        ..Event::default()
    };
    event::append(&tx, vec![line]).await?;
    let after = callback::get(&tx, id).await?.ok_or_else(none)?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(after)
}
