//! Whether the job in whose name something is asked for is not over.
//!
//! The check and what follows from it are one transaction, and the check locks the row against a
//! declaration: a job that is declared lost claims, starts and takes over nothing any more.

use crate::Cx;
use crate::error::EngineError;
use fencepost_core::guard::Guard;
use fencepost_core::id::JobId;
use fencepost_store::Tx;
use fencepost_store::query::lease;

/// Begins a transaction in the name of a job; `None` if the job is over.
pub(crate) async fn begin(
    cx: &Cx,
    op: &'static str,
    job: JobId,
) -> Result<Option<Tx>, EngineError> {
    let guards = cx.settings.guards;
    if !guards.on(Guard::OwnerAlive) {
        return Ok(Some(cx.store.begin(op).await?));
    }
    if !guards.on(Guard::DeclareRowLock) {
        // Without the lock: what was read before is believed.
        let look = cx.store.read("look_at_owner").await?;
        let is_alive = lease::is_alive(&look, job).await?;
        drop(look);
        return Ok(if is_alive { Some(cx.store.begin(op).await?) } else { None });
    }
    let tx = cx.store.begin(op).await?;
    Ok(if lease::is_alive(&tx, job).await? { Some(tx) } else { None })
}
