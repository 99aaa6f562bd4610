//! The end of a reconciliation: every worker has come to the epoch, or had its TTL to do so.
//!
//! What still waits under a token of an earlier epoch may have been claimed in a commit that is lost, by
//! a worker that nobody knows any more. It ends `never_ran`, which costs nothing, and is replaced under a
//! new token before anything is claimed; a start under the old one is refused from then on.

use super::{gate, renew_epoch};
use crate::error::EngineError;
use crate::reaper::{Late, take_back};
use crate::{Cx, Report};
use fencepost_core::dag::{OnLost, Replace, Task};
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::liveness::reconcile::is_over;
use fencepost_core::time::Span;
use fencepost_store::Tx;
use fencepost_store::query::attempt;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::installation::{self, Standing};
use fencepost_store::query::lease;

/// Attempts replaced in one transaction.
const PAGE: u32 = 100;
/// How often it is looked whether the others have come.
const LOOK: Span = Span::from_secs(1);

/// Opens the gate if everybody has come to the epoch; whether it is open now.
pub(crate) async fn finish(cx: &Cx, report: &mut Report) -> Result<bool, EngineError> {
    loop {
        let tx = cx.store.begin("reconcile").await?;
        let Some(standing) = installation::standing(&tx).await? else { return Ok(true) };
        if gate::is_open(cx, Some(&standing)) {
            return Ok(true);
        }
        if !standing.is_same_server && cx.settings.guards.on(Guard::Epoch) {
            drop(tx);
            renew_epoch(cx).await?;
            report.merge(Report { next_due: Some(cx.store.clock().now()), ..Report::default() });
            return Ok(false);
        }
        if !lease::behind(&tx, standing.epoch).await?.is_empty() {
            let again = tx.now().plus(LOOK);
            report.merge(Report { next_due: Some(again), ..Report::default() });
            return Ok(false);
        }
        if open(cx, tx, &standing, &[], report).await? {
            return Ok(true);
        }
    }
}

/// Waits for nobody any longer if the epoch was `observed` for a lease: opens the gate, and lets go what
/// was kept apart.
pub(crate) async fn give_up(
    cx: &Cx,
    observed: Span,
    report: &mut Report,
) -> Result<(), EngineError> {
    loop {
        let tx = cx.store.begin("give_up").await?;
        let Some(standing) = installation::standing(&tx).await? else { return Ok(()) };
        let lease = gate::patience(lease::longest_ttl(&tx).await?);
        let (since, guards) = (standing.epoch_at, cx.settings.guards);
        if !standing.is_same_server || !is_over(observed, lease, since, tx.now(), guards) {
            return Ok(());
        }
        if !gate::is_reconciled(&standing) {
            let behind = lease::behind(&tx, standing.epoch).await?;
            open(cx, tx, &standing, &behind, report).await?;
            continue;
        }
        report.moved += usize::from(installation::settled(&tx, standing.epoch).await?);
        tx.commit().await?;
        cx.wakes.engine();
        return Ok(());
    }
}

/// Replaces a page of what waits under older tokens; if nothing does, opens the gate: whether it did.
async fn open(
    cx: &Cx,
    tx: Tx,
    standing: &Standing,
    behind: &[String],
    report: &mut Report,
) -> Result<bool, EngineError> {
    let moved = replace(cx, &tx, standing).await?;
    if moved == 0 {
        installation::reconciled(&tx, standing.epoch).await?;
        event::append(&tx, vec![line(cx, standing, behind)]).await?;
    }
    tx.commit().await?;
    report.moved += moved;
    if moved == 0 {
        cx.wakes.engine();
        cx.wakes.workers();
    }
    Ok(moved == 0)
}

/// Whether the policy of a task is that a lost execution is never replaced on suspicion.
pub(crate) fn stays_apart(task: &Task) -> bool {
    task.on_lost == OnLost::Hold || task.replace == Replace::AfterConfirmedDead
}

async fn replace(cx: &Cx, tx: &Tx, standing: &Standing) -> Result<usize, EngineError> {
    let Ok(first) = Token::new(standing.epoch, 0) else { return Ok(0) };
    let found = attempt::queued_before(tx, first, PAGE).await?;
    let found: Vec<_> = found.into_iter().map(|attempt| (attempt, Late::Epoch)).collect();
    if found.is_empty() { Ok(0) } else { take_back(cx, tx, &found).await }
}

fn line(cx: &Cx, standing: &Standing, behind: &[String]) -> Event {
    let reason = if behind.is_empty() {
        "every worker has reconciled".to_owned()
    } else {
        format!("{} did not reconcile within a lease", behind.join(", "))
    };
    Event {
        kind: "epoch_reconciled",
        actor: cx.actor().into(),
        reason: Some(reason),
        evidence: Some(serde_json::json!({
            "epoch": standing.epoch, "began_at": standing.epoch_at.to_string(), "behind": behind,
        })),
        ..Event::default()
    }
}
