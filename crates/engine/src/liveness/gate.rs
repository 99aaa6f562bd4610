//! The gate of the epoch: after the store's server changed, or somebody has seen what the store has
//! forgotten, nothing is dispatched, claimed or started until the workers have reconciled (I20).
//!
//! Two guards stand in it. A caller of an older epoch gets nothing ([`Guard::Epoch`]); and while an
//! epoch is not reconciled nobody does ([`Guard::EpochReconciliation`]). Both are read in the
//! transaction that acts.

use crate::Cx;
use fencepost_core::guard::Guard;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::query::installation::Standing;
use fencepost_store::{StoreError, StoreErrorKind};

/// How long workers are waited for if none is known whose TTL would say so.
const UNKNOWN_TTL: Span = Span::from_secs(300);

/// Whether anything may be dispatched. A store that was never used has no epoch to wait for.
pub(crate) fn is_open(cx: &Cx, standing: Option<&Standing>) -> bool {
    let guards = cx.settings.guards;
    standing.is_none_or(|standing| {
        (standing.is_same_server || !guards.on(Guard::Epoch))
            && (is_reconciled(standing) || !guards.on(Guard::EpochReconciliation))
    })
}

/// Whether a job that reconciled in that epoch may claim and start.
pub(crate) fn admits(cx: &Cx, standing: Option<&Standing>, epoch: u32) -> bool {
    let is_behind = standing.is_some_and(|standing| epoch < standing.epoch);
    is_open(cx, standing) && !(is_behind && cx.settings.guards.on(Guard::Epoch))
}

/// Everybody has come to the epoch.
pub(crate) const fn is_reconciled(standing: &Standing) -> bool {
    standing.reconciled == standing.epoch
}

/// How long those are waited for who do not come to an epoch: the longest lease of a worker.
pub(crate) fn patience(longest_ttl: Option<Span>) -> Span {
    longest_ttl.unwrap_or(UNKNOWN_TTL)
}

/// Whether no lease has passed since the epoch began: a worker that nobody knows any more may still run
/// what the store has forgotten, so instances wait whose executions are never to overlap.
pub(crate) fn stays_apart(standing: Option<&Standing>) -> bool {
    standing.is_some_and(|standing| standing.epoch_at != Timestamp::default())
}

/// What a caller gets that is to ask again: it is behind, or the gate is shut.
pub(crate) fn shut(op: &'static str) -> StoreError {
    let message = "the workers have not reconciled in this epoch yet";
    StoreError::new(StoreErrorKind::EpochOver, op, message)
}
