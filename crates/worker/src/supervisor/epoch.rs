//! The epoch of the store, as this worker knows it.
//!
//! The highest that it has seen is kept in the home before anything is done in it, and presented with
//! every beat: a store that has forgotten it makes a new one above. In a new epoch the worker sends
//! whole inventories until the server says that nothing is left to end or to ask; its lease counts from its
//! last beat before that epoch until then.

use super::Shared;
use super::launch::blocking;
use super::report::chain;
use fencepost_api::execution::Beaten;
use fencepost_api::problem::{Problem, ProblemCode};
use fencepost_core::liveness::reconcile;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What a worker keeps of epochs.
#[derive(Default)]
pub(super) struct Epochs {
    /// The highest, as it is on disk.
    kept: AtomicU32,
    /// The one in which it has reconciled.
    reached: AtomicU32,
    /// That, or the one of its first beat.
    come: AtomicU32,
    /// A whole inventory is due.
    is_behind: AtomicBool,
}

impl Epochs {
    /// The highest epoch that was seen.
    pub(super) fn kept(&self) -> u32 {
        self.kept.load(Ordering::SeqCst)
    }

    /// Whether the server waits for a whole inventory.
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind.load(Ordering::SeqCst)
    }
}

/// Reads what the home has kept. The first inventory of a job is whole.
pub(super) async fn begin(shared: &Arc<Shared>) -> Result<(), Problem> {
    let inner = Arc::clone(shared);
    let kept = blocking(shared, move || inner.host.kept_epoch(&inner.settings.home)).await;
    let kept = kept.map_err(|error| Problem::new(ProblemCode::Internal, chain(&error)))?;
    shared.epochs.kept.store(kept, Ordering::SeqCst);
    shared.epochs.is_behind.store(true, Ordering::SeqCst);
    Ok(())
}

/// What a beat was answered with.
pub(super) async fn note(shared: &Arc<Shared>, answer: &Beaten) {
    let epochs = &shared.epochs;
    if !keep(shared, answer.epoch).await {
        return;
    }
    if answer.is_reconciled || epochs.come.load(Ordering::SeqCst) == 0 {
        epochs.come.fetch_max(answer.epoch, Ordering::SeqCst);
    }
    if answer.is_reconciled {
        epochs.reached.store(answer.epoch, Ordering::SeqCst);
    }
    // 0: a server that knows nothing of it.
    let is_behind = answer.epoch != 0 && epochs.reached.load(Ordering::SeqCst) != answer.epoch;
    epochs.is_behind.store(is_behind, Ordering::SeqCst);
}

/// Whether an answer prolongs the lease: not in an epoch that this worker has not come to.
pub(super) fn counts(shared: &Shared, answer: &Beaten) -> bool {
    let come = shared.epochs.come.load(Ordering::SeqCst);
    reconcile::acknowledges(come, answer.epoch, shared.settings.guards)
}

/// Keeps an epoch if it is the highest; false if it cannot be written, and then nothing is done in it.
async fn keep(shared: &Arc<Shared>, epoch: u32) -> bool {
    if epoch <= shared.epochs.kept() {
        return true;
    }
    let inner = Arc::clone(shared);
    let kept = blocking(shared, move || inner.host.keep_epoch(&inner.settings.home, epoch)).await;
    if kept.is_ok() {
        shared.epochs.kept.store(epoch, Ordering::SeqCst);
    }
    kept.is_ok()
}
