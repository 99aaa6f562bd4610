//! The store: what each transaction of the engine does to its rows.
//!
//! The statements are the model's own, as small as they can be; whether an event may happen and what it
//! leads to is asked of the core, as the engine does. A transaction is one step, except where a world
//! lets a process stand still before it ([`crate::state::Intent`]) or within it
//! ([`crate::state::OpenClaim`]).

pub(crate) mod beat;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod declare;
pub(crate) mod dispatch;
pub(crate) mod epoch;
pub(crate) mod register;
pub(crate) mod report;
pub(crate) mod start;
pub(crate) mod take_over;

use crate::state::{Job, State};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::state::TiState;

/// Whether something may be done in the name of a job; the epoch in which it reconciled last.
pub(crate) fn owner(world: &World, state: &State, job: Job) -> Option<u32> {
    let row = state.store.job(job).filter(|row| row.is_live());
    match row {
        Some(row) => Some(row.epoch),
        None if world.guards.on(Guard::OwnerAlive) => None,
        None => Some(u32::MAX),
    }
}

/// Writes the state of an instance.
pub(crate) fn change_ti(state: &mut State, ti: u8, to: TiState) {
    let Some(row) = state.store.tis.get_mut(usize::from(ti)) else { return };
    let from = row.state;
    row.state = to;
    if from.is_finished() && from != to {
        let what = || format!("t{ti} was {from} and is {to} now");
        state.witness.breaks("I4", what);
    }
    if to.is_finished() && !from.is_finished() {
        row.ends += 1;
        if row.ends > 1 {
            state.witness.breaks("I7", || format!("t{ti} ended twice"));
        }
    }
    if to == TiState::Success && state.witness.was_cancelled {
        state.witness.breaks("I13", || format!("t{ti} succeeds after it was cancelled"));
    }
}

/// Whether a write under that token is of the current attempt (I3).
pub(crate) fn is_current(state: &State, token: Token) -> bool {
    use fencepost_core::state::AttemptState::Ended;
    state.store.attempt(token).is_some_and(|attempt| {
        let ti = state.store.tis.get(usize::from(attempt.ti));
        attempt.state != Ended && ti.is_some_and(|ti| ti.token == Some(token))
    })
}
