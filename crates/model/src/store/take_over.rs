//! What a worker says of an attempt that was handed over to it, or that it was asked about.

use super::{epoch, is_current, owner, start};
use crate::state::{Job, State};
use crate::world::World;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{AttemptEvent, TiEvent, TiRecord, attempt_next, step};
use fencepost_core::state::AttemptState;

/// Whether the answer is accepted. `runs`: the shim lives and is its own now; else it is proved not to
/// have run, and may be started under the same token.
pub(crate) fn take_over(
    world: &World,
    state: &mut State,
    job: Job,
    (token, call, runs): (Token, i64, bool),
) -> bool {
    if owner(world, state, job).is_none() || !is_current(state, token) {
        return false;
    }
    let Some(attempt) = state.store.attempt(token) else { return false };
    let is_early = attempt.state == AttemptState::Queued
        || (attempt.state == AttemptState::Claimed && attempt.job == Some(job));
    let is_forgotten = is_early && !epoch::is_reconciled(&state.store);
    if attempt.job != Some(job) && !is_forgotten {
        return false;
    }
    if runs && is_forgotten {
        return record_again(state, job, token, call);
    }
    if let Some(attempt) = state.store.attempt_mut(token) {
        attempt.call = call;
        if !runs && attempt.state == AttemptState::Running {
            attempt.start_id = None;
        }
    }
    true
}

/// The claim and the start of an attempt that runs, which the store has forgotten.
fn record_again(state: &mut State, job: Job, token: Token, call: i64) -> bool {
    let Some(attempt) = state.store.attempt(token) else { return false };
    let Some(ti) = state.store.tis.get(usize::from(attempt.ti)) else { return false };
    let claimed = if attempt.state == AttemptState::Queued {
        attempt_next(attempt.state, AttemptEvent::Claim)
    } else {
        Ok(attempt.state)
    };
    let started = claimed.and_then(|state| attempt_next(state, AttemptEvent::Start));
    let record = TiRecord { state: ti.state, token: ti.token };
    if started.is_err() || step(&record, TiEvent::Start, Some(token)).is_err() {
        return false;
    }
    if let Some(attempt) = state.store.attempt_mut(token) {
        attempt.state = AttemptState::Claimed;
    }
    start::record(state, (token, job), ((job, 0), call));
    true
}
