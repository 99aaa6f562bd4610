//! A new epoch, when the store's server is another than the one that the epoch was made on.
//!
//! A server that was promoted, or put back from a copy, may have lost the last commits, and with them
//! tokens that were handed out. Whoever registered in the epoch before is fenced from this commit on,
//! and registers anew.

use crate::Cx;
use crate::error::EngineError;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::installation;

pub(crate) async fn renew_epoch(cx: &Cx) -> Result<(), EngineError> {
    let tx = cx.store.begin("renew_epoch").await?;
    // Another one may have come first.
    if let Some(epoch) = installation::renew_epoch(&tx, 0).await? {
        let line = Event {
            kind: "epoch_raised",
            actor: cx.actor().into(),
            reason: Some("the store's server is not the one that its epoch was made on".into()),
            evidence: Some(serde_json::json!({ "epoch": epoch })),
            ..Event::default()
        };
        event::append(&tx, vec![line]).await?;
    }
    tx.commit().await?;
    Ok(())
}
