//! A second passes: deadlines are kept, leases renewed, and those of others read.

use crate::host;
use crate::scheduler;
use crate::state::{Life, Outage, State};
use crate::worker;
use crate::world::World;
use fencepost_core::state::JobKind;

pub(crate) fn tick(world: &World, state: &mut State) {
    state.now += 1;
    host::deadlines(state);
    if state.outage == Outage::None {
        state.server_seq += 1;
    }
    silence(state);
    let workers = u8::try_from(state.workers.len()).unwrap_or(u8::MAX);
    for slot in 0..workers {
        turn(world, state, slot);
    }
    let schedulers = u8::try_from(state.schedulers.len()).unwrap_or(u8::MAX);
    for number in 0..schedulers {
        scheduler::turn(world, state, number);
    }
}

/// Silence counts only where a voice would have been heard.
fn silence(state: &mut State) {
    let outage = state.outage;
    let heard = |kind| match kind {
        JobKind::Worker => outage == Outage::None,
        JobKind::Scheduler | JobKind::Server | JobKind::Triggerer => outage != Outage::Store,
    };
    let live = state.store.jobs.iter().filter(|row| row.is_live());
    for (job, kind) in live.map(|row| (row.job, row.kind)) {
        state.witness.misses(job, heard(kind));
    }
}

fn turn(world: &World, state: &mut State, slot: u8) {
    let worker = state.worker(slot);
    if worker.life != Life::Alive || !worker.is_registered || worker.is_over {
        return;
    }
    worker::beat(world, state, slot);
    if !state.worker(slot).acts(state.now) {
        worker::fence(world, state, slot);
    }
}
