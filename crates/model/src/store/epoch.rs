//! The gate of the epoch, new epochs, and the end of a reconciliation.

use super::change_ti;
use crate::state::{State, Store, store_time};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{AttemptEvent, TiEvent, attempt_next, ti_next};
use fencepost_core::liveness::reconcile::is_over;
use fencepost_core::state::{AttemptState, JobKind, Outcome};
use fencepost_core::time::Span;

pub(crate) const fn is_reconciled(store: &Store) -> bool {
    store.reconciled == store.epoch
}

pub(crate) const fn is_same_server(state: &State) -> bool {
    state.store.server == state.server
}

/// Whether anything may be dispatched.
pub(crate) fn is_open(world: &World, state: &State) -> bool {
    let guards = world.guards;
    (is_same_server(state) || !guards.on(Guard::Epoch))
        && (is_reconciled(&state.store) || !guards.on(Guard::EpochReconciliation))
}

/// Whether a job that reconciled in that epoch may claim and start.
pub(crate) fn admits(world: &World, state: &State, epoch: u32) -> bool {
    let is_behind = epoch < state.store.epoch;
    is_open(world, state) && !(is_behind && world.guards.on(Guard::Epoch))
}

/// The store's server is another one than that of its epoch.
pub(crate) fn renew(state: &mut State) {
    if !is_same_server(state) {
        begin(state, state.server.max(state.store.epoch + 1));
    }
}

/// Somebody has seen what the store has not.
pub(crate) fn force(state: &mut State, seen: u32) {
    begin(state, (state.store.epoch + 1).max(seen + 1));
}

fn begin(state: &mut State, epoch: u32) {
    state.store.epoch = epoch;
    state.store.epoch_at = Some(state.store_now());
    state.store.server = state.server;
}

/// Whether somebody has not come to the epoch.
fn waits(state: &State) -> bool {
    let store = &state.store;
    let is_behind = |row: &crate::state::JobRow| {
        row.kind == JobKind::Worker && row.epoch < store.epoch && row.is_live()
    };
    store.jobs.iter().any(is_behind)
}

/// Whether any scheduler would do something about the gate.
pub(crate) fn is_due(world: &World, state: &State) -> bool {
    !is_open(world, state)
        && ((!is_same_server(state) && world.guards.on(Guard::Epoch)) || !waits(state))
}

/// Whether a scheduler that has observed the epoch for so long waits for nobody any more.
pub(crate) fn gives_up(world: &World, state: &State, observed: Span) -> bool {
    let Some(since) = state.store.epoch_at else { return false };
    let (since, now) = (store_time(since), store_time(state.store_now()));
    !is_open(world, state)
        && is_same_server(state)
        && is_over(observed, world.lease.lease_ttl, since, now, world.guards)
}

/// Makes the epoch that is due, or opens the gate.
pub(crate) fn reconcile(world: &World, state: &mut State) {
    if is_open(world, state) {
        return;
    }
    if !is_same_server(state) && world.guards.on(Guard::Epoch) {
        renew(state);
        return;
    }
    if !waits(state) {
        open(state);
    }
}

/// Waits for nobody any more, after the epoch was observed for so long.
pub(crate) fn give_up(world: &World, state: &mut State, observed: Span) {
    if gives_up(world, state, observed) {
        open(state);
    }
}

fn open(state: &mut State) {
    let epoch = state.store.epoch;
    let is_old = |token: Token| token.epoch() < epoch;
    let queued = |row: &&crate::state::AttemptRow| row.state == AttemptState::Queued;
    let old: Vec<Token> = state.store.attempts.iter().filter(queued).map(|row| row.token).collect();
    for token in old.into_iter().filter(|token| is_old(*token)) {
        take_back(state, token, false, u8::MAX);
    }
    state.store.reconciled = epoch;
}

/// Ends an attempt that was not started; its instance goes back to the dispatcher.
pub(crate) fn take_back(state: &mut State, token: Token, counts: bool, limit: u8) {
    let Some(attempt) = state.store.attempt(token) else { return };
    let Some(ti) = state.store.tis.get(usize::from(attempt.ti)) else { return };
    if ti.token != Some(token) {
        return;
    }
    let number = attempt.ti;
    let event = if ti.requeues >= limit { TiEvent::GiveUp } else { TiEvent::Requeue };
    let ended = attempt_next(attempt.state, AttemptEvent::End(Outcome::NeverRan));
    let (Ok(to), Ok(ended)) = (ti_next(ti.state, event), ended) else { return };
    if let Some(attempt) = state.store.attempt_mut(token) {
        (attempt.state, attempt.outcome) = (ended, Some(Outcome::NeverRan));
        attempt.holds = false;
    }
    if let Some(ti) = state.store.tis.get_mut(usize::from(number)) {
        ti.requeues += u8::from(counts);
    }
    change_ti(state, number, to);
}
