//! A person states that the processes of an attempt are gone.
//!
//! It is evidence like any other (1-semantics section 3) and goes the way of a report: whoever owns
//! the attempt, and with the same checks, so a worker that reports meanwhile wins or loses by the
//! order of commits. Who said it and why is written with the attempt's end.

use super::Answer;
use super::report::{self, EndReport};
use super::run_control::{AttemptRef, find_attempt};
use crate::Cx;
use crate::error::{EngineError, Refusal};
use fencepost_core::id::Token;
use fencepost_core::state::AttemptState;
use fencepost_core::verdict::{Death, Ending};
use fencepost_store::query::attempt::{Attempt, afterwards};
use fencepost_store::query::event::{self, Event};
use serde_json::json;

/// Ends an attempt as lost, on a person's word; it is replaced or fails as its task says.
pub async fn confirm_dead(
    cx: &Cx,
    attempt_ref: &AttemptRef,
    by: &str,
    reason: Option<&str>,
) -> Result<(), EngineError> {
    let found = {
        let tx = cx.store.read("find_attempt").await?;
        find_attempt(&tx, attempt_ref).await?
    };
    let name = format!("attempt {}", found.token);
    let over = |state: String| Refusal::AlreadyTerminal { what: name.clone(), state };
    if found.state == AttemptState::Ended {
        if afterwards_dead(cx, &found, by, reason).await? {
            return Ok(());
        }
        let outcome = found.outcome.map_or("ended", |outcome| outcome.as_str());
        return Err(over(outcome.into()).into());
    }
    let Some(owner) = found.job_id else {
        let text = format!("{name} is in no worker's hands: there are no processes to be gone");
        return Err(Refusal::Invalid(text).into());
    };
    let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let word = person_report(&found, format!("confirmed dead by {by}{why}"));
    let known = json!({
        "kind": "person",
        "job": owner.to_string(),
        "declared_by": by,
        "reason": reason,
    });
    match report::report_on(cx, owner, vec![word], &known).await?.into_iter().next() {
        Some(Answer::Refused(why, text)) => {
            return Err(over(format!("{} ({text})", why.as_str())).into());
        }
        Some(Answer::Accepted) | None => {}
    }
    let tx = cx.store.begin("confirm_dead").await?;
    event::append(&tx, vec![line(&found, by, reason)]).await?;
    tx.commit().await?;
    cx.wakes.workers();
    Ok(())
}

/// It was closed without a proof that its processes are gone: this is the proof.
async fn afterwards_dead(
    cx: &Cx,
    found: &Attempt,
    by: &str,
    reason: Option<&str>,
) -> Result<bool, EngineError> {
    let tx = cx.store.begin("confirm_dead").await?;
    if !afterwards::gone(&tx, &[found.token]).await?.contains(&true) {
        return Ok(false);
    }
    event::append(&tx, vec![line(found, by, reason)]).await?;
    tx.commit().await?;
    Ok(true)
}

fn person_report(attempt: &Attempt, message: String) -> EndReport {
    let claimed = attempt.state == AttemptState::Claimed;
    EndReport {
        token: attempt.token,
        // A claim that was not started has nothing that could be lost.
        ending: if claimed { Ending::NeverRan } else { Ending::Gone(Death::Orderly) },
        asked: None,
        outputs: Vec::new(),
        level: None,
        message: Some(message),
        exit_code: None,
        signal: None,
        evidence: Some("person".into()),
        checkpoint: None,
        digest: digest(attempt.token),
    }
}

/// Equal for each repeat, so that a second confirmation changes nothing.
fn digest(token: Token) -> String {
    format!("person:{token}")
}

fn line(attempt: &Attempt, by: &str, reason: Option<&str>) -> Event {
    Event {
        kind: "confirmed_dead",
        dag_id: Some(attempt.dag_id.clone()),
        run_pk: Some(attempt.ti.run_pk),
        map_index: Some(attempt.ti.map_index),
        token: Some(attempt.token),
        actor: by.into(),
        reason: reason.map(Into::into),
        ..Event::default()
    }
}
