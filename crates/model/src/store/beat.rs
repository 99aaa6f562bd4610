//! A worker's sign of life, with its whole inventory.

use super::epoch;
use crate::state::{BeatCall, Beaten, Job, State};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::liveness::inventory::{InHand, Taken, questions};
use fencepost_core::liveness::reconcile::{Named, Place, reconcile};
use fencepost_core::state::AttemptState;
use std::collections::BTreeSet;

/// Renews a lease; `false` if the job is over.
pub(crate) fn renew(world: &World, state: &mut State, job: Job, seq: i64) -> bool {
    let now = state.store_now();
    let in_order = world.guards.on(Guard::BeatOrder);
    let Some(row) = state.store.job_mut(job).filter(|row| row.is_live()) else { return false };
    let before = row.renew_seq;
    if before < seq || !in_order {
        (row.renew_seq, row.renewed_at) = (seq, now);
        state.witness.hears(job);
    }
    if before >= seq && !in_order {
        let what = || format!("beat {seq} of job {job} renews its lease after beat {before}");
        state.witness.breaks("I25", what);
    }
    true
}

pub(crate) fn take(world: &World, state: &mut State, job: Job, beat: &BeatCall) -> Beaten {
    let is_over = !renew(world, state, job, beat.beat.seq);
    let mut beaten = answer(world, state, job, (beat, is_over));
    beaten.beat = Some(beat.beat);
    if beaten.is_reconciled {
        let epoch = beaten.epoch;
        if let Some(row) = state.store.job_mut(job).filter(|row| row.epoch < epoch) {
            row.epoch = epoch;
        }
    }
    if world.guards.on(Guard::Epoch) {
        if !epoch::is_same_server(state) {
            epoch::renew(state);
        } else if let Some(seen) = seen(state, beat) {
            epoch::force(state, seen);
        }
    }
    beaten
}

fn answer(world: &World, state: &State, job: Job, (beat, is_over): (&BeatCall, bool)) -> Beaten {
    let store = &state.store;
    let mut beaten = Beaten { is_over, epoch: store.epoch, ..Beaten::default() };
    let taken = Taken { call: beat.call, unanswered: &beat.unanswered };
    let hand: Vec<InHand> = store
        .open_of(job)
        .filter(|row| row.state != AttemptState::LostOpen)
        .map(|row| InHand { token: row.token, call: row.call, is_owed: false })
        .collect();
    if !is_over && beat.reconciles {
        let named = named(state, job, beat);
        let found = reconcile(&taken, &named, &hand, world.guards);
        beaten.is_reconciled = found.is_done() && epoch::is_same_server(state);
        beaten.found(found);
        return beaten;
    }
    let may_have_lost = !epoch::is_same_server(state)
        || !epoch::is_reconciled(store)
        || seen(state, beat).is_some();
    if may_have_lost {
        return beaten;
    }
    let is_own = |token: &Token| hand.iter().any(|one| one.token == *token);
    beaten.disowned = beat.inventory.iter().filter(|token| !is_own(token)).copied().collect();
    if !is_over {
        let named: BTreeSet<Token> = beat.inventory.iter().copied().collect();
        beaten.questions = questions(&taken, &named, &hand, world.guards);
    }
    beaten
}

/// What it holds, and where the store has each.
fn named(state: &State, job: Job, beat: &BeatCall) -> Vec<Named> {
    let may_be_forgotten = !epoch::is_reconciled(&state.store);
    let place = |token: &Token| match state.store.attempt(*token) {
        Some(row) if row.job == Some(job) && row.state != AttemptState::Ended => {
            Place::Own(row.state)
        }
        Some(row) if row.state == AttemptState::Queued && may_be_forgotten => Place::Queued,
        Some(_) | None => Place::Elsewhere,
    };
    let named = beat.inventory.iter().map(|token| Named {
        token: *token,
        is_started: !beat.unstarted.contains(token),
        place: place(token),
    });
    named.collect()
}

/// The highest epoch that a worker has seen and the store has not.
fn seen(state: &State, beat: &BeatCall) -> Option<u32> {
    let store = &state.store;
    let counter = i64::try_from(store.counter).unwrap_or(i64::MAX);
    let is_above = |token: &&Token| {
        token.epoch() > store.epoch || (token.epoch() == store.epoch && token.counter() > counter)
    };
    let told = Some(beat.epoch).filter(|epoch| *epoch > store.epoch);
    let held = beat.inventory.iter().filter(is_above).map(|token| token.epoch()).max();
    told.max(held)
}
