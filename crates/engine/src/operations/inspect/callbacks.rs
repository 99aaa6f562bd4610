//! What was to be told and has not arrived: what waits, and what nobody tries any more.

use super::{Found, PAGE};
use crate::Cx;
use crate::error::EngineError;
use fencepost_store::query::callback::{self, Callback};

/// Callbacks that wait, then dead ones, each by age.
pub(super) async fn callbacks(cx: &Cx) -> Result<Vec<Found>, EngineError> {
    let tx = cx.store.read("inspect").await?;
    let mut found = Vec::new();
    for state in ["due", "dead"] {
        let mut after = String::new();
        loop {
            let page = callback::page(&tx, &after, (state, ""), PAGE).await?;
            after = page.last().map(|last| last.id.clone()).unwrap_or_default();
            found.extend(page.iter().map(line));
            if page.len() < PAGE as usize {
                break;
            }
        }
    }
    Ok(found)
}

fn line(of: &Callback) -> Found {
    let task = of.task_id.as_ref().map(|task| format!(" {task}")).unwrap_or_default();
    let why = of.last_error.as_deref().unwrap_or("not tried yet");
    let next = if of.state == "dead" {
        format!("fencepost callbacks retry {}", of.id)
    } else {
        format!("tried again {}", of.due_at)
    };
    Found {
        subject: format!("{} {}{task}: {} {}", of.dag_id, of.run_id, of.occasion.as_str(), of.kind),
        state: of.state.clone(),
        since: Some(of.created_at),
        owner: Some(of.target.clone()),
        detail: format!("{} tries: {why}; {next}", of.tries),
    }
}
