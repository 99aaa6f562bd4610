//! A worker takes queued attempts.

use super::{epoch, owner};
use crate::state::{Job, OpenClaim, Reply, State};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{AttemptEvent, attempt_next};
use fencepost_core::state::AttemptState;

/// What a job gets: claims of its own whose delivery was lost, then what waits.
pub(crate) fn claim(
    world: &World,
    state: &mut State,
    job: Job,
    (call, held): (i64, &[Token]),
) -> Reply {
    let mut claims: Vec<(Token, u8)> = redelivered(state, job, held);
    let taken = held.len() + claims.len();
    if let Some(epoch) = owner(world, state, job)
        && epoch::admits(world, state, epoch)
    {
        let room = world.capacity.saturating_sub(taken);
        take(world, state, (job, call), (room, &mut claims));
    }
    Reply::Claimed { call, claims }
}

pub(crate) fn redelivered(state: &State, job: Job, held: &[Token]) -> Vec<(Token, u8)> {
    let open = state.store.open_of(job);
    let is_lost = |row: &&crate::state::AttemptRow| {
        row.state == AttemptState::Claimed && !held.contains(&row.token)
    };
    open.filter(is_lost).map(|row| (row.token, row.ti)).collect()
}

/// Claims up to so many.
fn take(
    world: &World,
    state: &mut State,
    (job, call): (Job, i64),
    (room, claims): (usize, &mut Vec<(Token, u8)>),
) {
    // Where nothing takes claims back it is no matter when they were made.
    let now = world.start_timeout.map_or(0, |_| state.store_now());
    for row in &mut state.store.attempts {
        if claims.len() >= room {
            return;
        }
        let Ok(to) = attempt_next(row.state, AttemptEvent::Claim) else { continue };
        (row.state, row.job, row.call, row.claimed_at) = (to, Some(job), call, now);
        claims.push((row.token, row.ti));
    }
}

/// A server begins a claim and stands still. With the lock the job cannot be declared meanwhile.
pub(crate) fn begin(world: &World, state: &mut State, slot: u8, (job, call): (Job, i64)) {
    let is_admitted =
        owner(world, state, job).is_some_and(|epoch| epoch::admits(world, state, epoch));
    state.claim = Some(OpenClaim { slot, job, call, is_admitted });
}

/// It goes on, with what it has seen.
pub(crate) fn commit(world: &World, state: &mut State, open: &OpenClaim) {
    if open.is_admitted {
        let into = (world.capacity, &mut Vec::new());
        take(world, state, (open.job, open.call), into);
    }
}

/// Whether a job's row is locked by a claim that is open.
pub(crate) fn is_locked(world: &World, state: &State, job: Job) -> bool {
    let is_open = state.claim.as_ref().is_some_and(|open| open.job == job);
    is_open && world.guards.on(Guard::DeclareRowLock)
}
