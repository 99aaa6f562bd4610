//! A new epoch, when the store's server is another than the one that the epoch was made on, or when
//! somebody has seen what the store has forgotten.
//!
//! A server that was promoted, or put back from a copy, may have lost the last commits, and with them
//! tokens that were handed out. Whoever registered in the epoch before is fenced from this commit on,
//! and registers anew.

use crate::Cx;
use crate::error::EngineError;
use fencepost_core::id::JobId;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::installation;

pub(crate) async fn renew_epoch(cx: &Cx) -> Result<(), EngineError> {
    let tx = cx.store.begin("renew_epoch").await?;
    // Another one may have come first.
    if let Some(epoch) = installation::renew_epoch(&tx, 0).await? {
        let why = "the store's server is not the one that its epoch was made on";
        event::append(&tx, vec![line(cx, epoch, why, None)]).await?;
    }
    tx.commit().await?;
    // Whatever waits looks again, and finds the gate shut.
    cx.wakes.engine();
    Ok(())
}

/// `seen`: an epoch, or that of a token above the store's counter, that a worker has kept. The store was
/// put back from a copy. Nothing if the epoch is not the one any more that was `read`.
pub(crate) async fn force_epoch(
    cx: &Cx,
    seen: u32,
    read: u32,
    by: JobId,
) -> Result<(), EngineError> {
    let tx = cx.store.begin("force_epoch").await?;
    if let Some(epoch) = installation::force_epoch(&tx, seen, read).await? {
        let why = "a worker has seen an epoch or a token above those of the store";
        event::append(&tx, vec![line(cx, epoch, why, Some(by))]).await?;
    }
    tx.commit().await?;
    cx.wakes.engine();
    Ok(())
}

fn line(cx: &Cx, epoch: u32, why: &str, by: Option<JobId>) -> Event {
    let by = by.map(|job| job.to_string());
    Event {
        kind: "epoch_raised",
        actor: cx.actor().into(),
        reason: Some(why.into()),
        evidence: Some(serde_json::json!({ "epoch": epoch, "seen_by": by })),
        ..Event::default()
    }
}
