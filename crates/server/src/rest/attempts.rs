//! Attempts: list, show, kill, confirm as dead.

use super::answer::{Answer, Done};
use super::call::{Call, states};
use super::failure::Failure;
use super::runs::{check_text, keep_reason};
use super::target::At;
use super::{attempt_view, cursor};
use fencepost_api::rest::{Action, AttemptQuery, ListQuery};
use fencepost_core::id::Token;
use fencepost_core::state::AttemptState;
use fencepost_engine::error::Refusal;
use fencepost_engine::operations::confirm_dead;
use fencepost_engine::operations::run_control::{self, AttemptRef, find_attempt};
use fencepost_store::Tx;
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::event::Event;
use fencepost_store::query::listing;
use fencepost_store::query::listing::attempts::AttemptFilter;
use fencepost_store::query::task_instance::TiKey;

/// What has not ended.
const OPEN: &str = "queued,claimed,running,stopping,lost_open";

/// The attempt that the address names: by its id, its token, or `EPOCH-COUNTER`.
pub(super) async fn find(tx: &Tx, text: &str) -> Result<Attempt, Failure> {
    Ok(find_attempt(tx, &AttemptRef::parse(text)?).await?)
}

pub(super) async fn list(call: &Call) -> Done {
    let query: AttemptQuery = call.query()?;
    let wanted = query.state.as_deref().filter(|text| !text.is_empty()).unwrap_or(OPEN);
    let filter = AttemptFilter {
        states: states("state", Some(wanted), AttemptState::parse)?,
        dag_id: query.dag_id.unwrap_or_default(),
        worker: query.worker.unwrap_or_default(),
    };
    let limit = cursor::limit(query.limit);
    let after = after(query.cursor.as_deref())?;
    let tx = call.read().await?;
    let found = listing::attempts::page(&tx, after, &filter, limit + 1).await?;
    page(&tx, found, limit).await
}

fn after(text: Option<&str>) -> Result<i64, Failure> {
    match cursor::read::<1>("attempts", text)? {
        Some([token]) => cursor::number(&token),
        None => Ok(0),
    }
}

async fn page(tx: &Tx, found: Vec<Token>, limit: u32) -> Done {
    let (found, next) = cursor::cut(found, limit, |token| {
        cursor::write("attempts", &[&token.as_i64().to_string()])
    });
    let rows = attempt::get(tx, &found).await?;
    Answer::ok(&cursor::page(attempt_view::attempts(tx, rows).await?, next))
}

/// Of one instance, or of every instance of a task.
pub(super) async fn of_task(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let after = after(query.cursor.as_deref())?;
    let tx = call.read().await?;
    let at = At::of(call, &tx).await?;
    let named = at.named(call.arg(2))?;
    let (run_pk, task_index) = (at.run.run_pk, named.task_index);
    let found = match named.map_index {
        Some(map_index) => {
            let ti = TiKey { run_pk, task_index, map_index };
            at.one(&tx, &named).await?;
            listing::attempts::of_ti(&tx, ti, after, limit + 1).await?
        }
        None => listing::attempts::of_task(&tx, run_pk, task_index, after, limit + 1).await?,
    };
    page(&tx, found, limit).await
}

pub(super) async fn show(call: &Call) -> Done {
    let tx = call.read().await?;
    let found = find(&tx, call.arg(0)).await?;
    match attempt_view::attempts(&tx, vec![found]).await?.pop() {
        Some(attempt) => Answer::ok(&attempt),
        None => Err(Refusal::NoAttempt(call.arg(0).into()).into()),
    }
}

pub(super) async fn kill(call: &Call) -> Done {
    let action: Action = call.body()?;
    check_text("/reason", action.reason.as_deref())?;
    let named = AttemptRef::parse(call.arg(0))?;
    run_control::kill_attempt(call.cx(), &named, call.by()).await?;
    let found = {
        let tx = call.read().await?;
        find(&tx, call.arg(0)).await?
    };
    keep_reason(call, about(found), action.reason).await?;
    show(call).await
}

/// What a line of the log says about an attempt.
pub(super) fn about(attempt: Attempt) -> Event {
    Event {
        dag_id: Some(attempt.dag_id),
        run_pk: Some(attempt.ti.run_pk),
        map_index: Some(attempt.ti.map_index),
        token: Some(attempt.token),
        ..Event::default()
    }
}

pub(super) async fn confirm_dead(call: &Call) -> Done {
    let action: Action = call.body()?;
    check_text("/reason", action.reason.as_deref())?;
    let named = AttemptRef::parse(call.arg(0))?;
    let reason = action.reason.as_deref();
    confirm_dead::confirm_dead(call.cx(), &named, call.by(), reason).await?;
    show(call).await
}
