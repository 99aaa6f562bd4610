//! claimed -> running: a worker execs only after this was accepted.

use super::{change_ti, epoch, is_current, owner};
use crate::state::{Job, StartId, State};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{AttemptEvent, TiEvent, TiRecord, attempt_next, step};
use fencepost_core::state::AttemptState;

/// Whether a start is accepted; `None`: to be asked again.
pub(crate) fn start(
    world: &World,
    state: &mut State,
    job: Job,
    (token, start_id, call): (Token, StartId, i64),
) -> Option<bool> {
    let Some(epoch) = owner(world, state, job) else { return Some(false) };
    let is_admitted = epoch::admits(world, state, epoch);
    let is_accepted = decide(world, state, job, (token, start_id));
    if is_accepted && !is_current(state, token) {
        state.witness.breaks("I3", || format!("a start of {token} is accepted, which is over"));
    }
    let is_new =
        |row: &crate::state::AttemptRow| row.start_id.is_none() && row.state != AttemptState::Ended;
    if !is_accepted || !state.store.attempt(token).is_some_and(is_new) {
        return Some(is_accepted);
    }
    if !is_admitted {
        return None;
    }
    record(state, (token, job), (start_id, call));
    Some(true)
}

/// Writes a start down.
pub(super) fn record(
    state: &mut State,
    (token, job): (Token, Job),
    (start_id, call): (StartId, i64),
) {
    let Some(attempt) = state.store.attempt_mut(token) else { return };
    let was_claimed = attempt.state == AttemptState::Claimed;
    (attempt.state, attempt.job) = (AttemptState::Running, Some(job));
    (attempt.start_id, attempt.call) = (Some(start_id), call);
    let number = attempt.ti;
    let Some(ti) = state.store.tis.get(usize::from(number)).filter(|_| was_claimed) else { return };
    let record = TiRecord { state: ti.state, token: ti.token };
    if let Ok(to) = step(&record, TiEvent::Start, Some(token)) {
        change_ti(state, number, to);
    }
}

fn decide(world: &World, state: &State, job: Job, (token, start_id): (Token, StartId)) -> bool {
    let Some(attempt) = state.store.attempt(token) else { return false };
    if !is_current(state, token) {
        return !world.guards.on(Guard::StartToken);
    }
    if attempt.job != Some(job) {
        return false;
    }
    if attempt.state == AttemptState::Running {
        return attempt.start_id.is_none_or(|known| known == start_id);
    }
    attempt_next(attempt.state, AttemptEvent::Start).is_ok()
}
