//! Whether the job in whose name something is asked for is not over.
//!
//! The check and what follows from it are one transaction, and the check locks the row against a
//! declaration: a job that is declared lost claims, starts and takes over nothing any more.

use crate::Cx;
use crate::error::EngineError;
use crate::liveness::gate;
use fencepost_core::guard::Guard;
use fencepost_core::id::JobId;
use fencepost_store::Tx;
use fencepost_store::query::{installation, lease};

/// A transaction in the name of a job.
pub(crate) struct Acting {
    pub(crate) tx: Tx,
    /// The epoch in which the job reconciled last; 0: it is not known.
    pub(crate) epoch: u32,
}

impl Acting {
    /// Whether the gate of the epoch lets the job claim and start.
    pub(crate) async fn is_admitted(&self, cx: &Cx) -> Result<bool, EngineError> {
        let standing = installation::standing(&self.tx).await?;
        Ok(gate::admits(cx, standing.as_ref(), self.epoch))
    }
}

/// Begins a transaction in the name of a job; `None` if the job is over.
pub(crate) async fn begin(
    cx: &Cx,
    op: &'static str,
    job: JobId,
) -> Result<Option<Acting>, EngineError> {
    let guards = cx.settings.guards;
    if !guards.on(Guard::DeclareRowLock) {
        // Without the lock: what was read before is believed.
        let look = cx.store.read("look_at_owner").await?;
        let alive = lease::alive(&look, job).await?;
        drop(look);
        let Some(epoch) = alive else { return Ok(None) };
        return Ok(Some(Acting { tx: cx.store.begin(op).await?, epoch }));
    }
    let tx = cx.store.begin(op).await?;
    let alive = lease::alive(&tx, job).await?;
    if !guards.on(Guard::OwnerAlive) {
        return Ok(Some(Acting { tx, epoch: alive.unwrap_or(u32::MAX) }));
    }
    Ok(alive.map(|epoch| Acting { tx, epoch }))
}
