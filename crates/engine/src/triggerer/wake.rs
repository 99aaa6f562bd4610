//! The one way out of a wait: an end of it, accepted once.

use crate::Cx;
use crate::assets;
use crate::error::EngineError;
use crate::log;
use crate::operations::stop;
use fencepost_core::lifecycle::{TiEvent, TiRecord, step};
use fencepost_core::state::TiState;
use fencepost_core::wait::{How, Waiting, end};
use fencepost_store::Tx;
use fencepost_store::query::event;
use fencepost_store::query::task_instance::deferral;
use fencepost_store::query::task_instance::{self, Ti, TiChange};
use fencepost_store::query::trigger::Trigger;
use serde_json::Value;

/// An end of a wait, and whom it is for. The caller has the instance's lock.
pub(crate) struct Waking {
    pub(crate) ti: Ti,
    pub(crate) trigger: Trigger,
    pub(crate) how: How,
}

/// Ends waits; how many did end. One whose instance has moved on meanwhile changes nothing.
pub(crate) async fn settle(
    cx: &Cx,
    tx: &Tx,
    wakings: Vec<Waking>,
    actor: &str,
) -> Result<usize, EngineError> {
    let mut changes = Vec::new();
    let mut told = Vec::new();
    for waking in &wakings {
        let Some((change, event)) = decide(tx, waking) else { continue };
        told.push(event);
        changes.push(change);
    }
    let changed = task_instance::change(tx, &changes).await?;
    let mut lines = Vec::new();
    let mut events = Vec::new();
    for ((change, told), _) in changes.iter().zip(told).zip(&changed).filter(|(_, done)| **done) {
        let mut line = log::ti_state(&change.to, change.from, actor);
        line.evidence = Some(told.clone());
        lines.push(line);
        if let Some(token) = change.from_token.filter(|_| change.to.state == TiState::Scheduled) {
            events.push((change.to.key, token, told.to_string()));
        }
    }
    let moved = lines.len();
    deferral::set_events(tx, &events).await?;
    event::append(tx, lines).await?;
    let ended: Vec<&TiChange> =
        changes.iter().zip(&changed).filter(|(_, done)| **done).map(|(change, _)| change).collect();
    assets::emit_for(cx, tx, &ended, actor).await?;
    Ok(moved)
}

/// The change that an end of a wait is, and what is told; `None` if the table has no way from here.
fn decide(tx: &Tx, waking: &Waking) -> Option<(TiChange, Value)> {
    let Waking { ti, trigger, how } = waking;
    let waiting = Waiting::from_json(&trigger.wait).ok();
    let (soft_fail, context) =
        waiting.map_or((false, Value::Null), |waiting| (waiting.soft_fail, waiting.context));
    let record = TiRecord { state: ti.state, token: ti.token };
    let event = end(how, trigger.resumes, soft_fail);
    let to = step(&record, event, Some(trigger.token)).ok()?;
    let mut change = TiChange::of(ti);
    change.to.state = to;
    if event == TiEvent::Resume {
        change.to.reason = Some("resumed".into());
        change.to.next_why = "resumed".into();
        change.to.scheduled_at = Some(tx.now());
        change.to.ended_at = None;
    } else {
        stop::finish(&mut change.to, how.reason(), tx.now());
    }
    Some((change, how.event(&trigger.kind, &context, tx.now())))
}
