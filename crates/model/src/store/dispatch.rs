//! Scheduled instances get an attempt, a token and their slot.

use super::{change_ti, epoch};
use crate::state::{AttemptRow, State};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{TiEvent, ti_next};
use fencepost_core::plan::dispatch::{Candidate, Room, admit};
use fencepost_core::state::AttemptState;

const POOL: &str = "p";

/// Whether an instance gets an attempt now.
pub(crate) fn is_due(world: &World, state: &State, ti: u8) -> bool {
    let row = state.store.tis.get(usize::from(ti));
    let is_ready = row.is_some_and(|row| ti_next(row.state, TiEvent::Queue).is_ok());
    is_ready && epoch::is_open(world, state) && has_room(world, state, ti)
}

fn has_room(world: &World, state: &State, ti: u8) -> bool {
    let held = state.store.attempts.iter().filter(|attempt| attempt.holds).count();
    let held = i64::try_from(held).unwrap_or(i64::MAX);
    let mut room = Room::default();
    room.pools.insert(POOL.into(), world.pool.saturating_sub(held));
    let candidate = Candidate {
        run: 1,
        task: u32::from(ti),
        dag_id: String::new(),
        pool: POOL.into(),
        pool_slots: 1,
    };
    admit(&mut room, &candidate).is_ok()
}

/// Makes the attempt and its token.
pub(crate) fn dispatch(world: &World, state: &mut State, ti: u8) {
    if !is_due(world, state, ti) {
        return;
    }
    if world.guards.on(Guard::Epoch) && !epoch::is_same_server(state) {
        return;
    }
    state.store.counter += 1;
    let Ok(token) = Token::new(state.store.epoch, state.store.counter) else { return };
    witness(state, token);
    let row = AttemptRow {
        token,
        ti,
        state: AttemptState::Queued,
        outcome: None,
        job: None,
        start_id: None,
        call: 0,
        claimed_at: 0,
        stop: false,
        holds: true,
        infra: false,
        digest: None,
    };
    state.store.attempts.push(row);
    if let Some(row) = state.store.tis.get_mut(usize::from(ti)) {
        row.token = Some(token);
        row.attempts += 1;
    }
    change_ti(state, ti, fencepost_core::state::TiState::Queued);
}

/// Each token is above all others that were ever made (I2), and a cancel makes no new one (I13).
fn witness(state: &mut State, token: Token) {
    if let Some(highest) = state.witness.highest.filter(|highest| *highest >= token) {
        state.witness.breaks("I2", || format!("{token} is minted after {highest}"));
    }
    state.witness.highest = state.witness.highest.max(Some(token));
    if state.witness.was_cancelled {
        state.witness.breaks("I13", || format!("{token} is made after the cancel"));
    }
}
