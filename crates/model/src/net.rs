//! Calls of workers: straight, late, answered late, or twice.

use crate::state::{Call, Job, Letter, Outage, Reply, State, Way};
use crate::store::{beat, claim, register, report, start, take_over};
use crate::worker;
use crate::world::World;

/// Whether a worker's calls come through.
pub(crate) fn reaches(state: &State, slot: u8) -> bool {
    let is_parted = state.workers.get(usize::from(slot)).is_none_or(|worker| worker.is_parted);
    !is_parted && state.outage == Outage::None
}

/// Makes a call, which fares as it does.
pub(crate) fn call(world: &World, state: &mut State, (slot, job): (u8, Job), call: Call, way: Way) {
    match way {
        Way::Straight => {
            if let Some(reply) = serve(world, state, job, &call) {
                worker::hear(world, state, slot, reply);
            }
        }
        Way::LateRequest => {
            send(state, Letter::Request { slot, job, call });
        }
        Way::LateReply => {
            if let Some(reply) = serve(world, state, job, &call) {
                send(state, Letter::Reply { slot, job, reply });
            }
        }
        Way::Twice => {
            send(state, Letter::Request { slot, job, call: call.clone() });
            if let Some(reply) = serve(world, state, job, &call) {
                worker::hear(world, state, slot, reply);
            }
        }
    }
}

/// Pays for the way that a message takes. One that comes after later ones is as good as lost.
pub(crate) fn pay(state: &mut State, way: Way) {
    let left = &mut state.faults;
    let count = match way {
        Way::Straight => return,
        Way::LateRequest => &mut left.late_request,
        Way::LateReply => &mut left.late_reply,
        Way::Twice => &mut left.twice,
    };
    *count = count.saturating_sub(1);
    state.witness.has_harm |= way != Way::LateReply;
}

fn send(state: &mut State, letter: Letter) {
    state.letters.push(letter);
    state.letters.sort();
}

/// A message arrives. The answer to a request that its caller gave up is heard by nobody.
pub(crate) fn deliver(world: &World, state: &mut State, index: usize) {
    match state.letters.remove(index) {
        Letter::Request { job, call, .. } => {
            serve(world, state, job, &call);
        }
        Letter::Reply { slot, job, reply } => {
            if state.workers.get(usize::from(slot)).is_some_and(|worker| worker.job == job) {
                worker::hear(world, state, slot, reply);
            }
        }
    }
}

/// The server's side of a call; no answer if it is to be asked again.
fn serve(world: &World, state: &mut State, job: Job, call: &Call) -> Option<Reply> {
    Some(match call {
        Call::Register { home, registration } => {
            register::worker(world, state, (job, *home), *registration)
        }
        Call::Beat(sent) => Reply::Beaten(beat::take(world, state, job, sent)),
        Call::Claim { call, held } => claim::claim(world, state, job, (*call, held)),
        Call::Start { token, start_id, call } => {
            let accepted = start::start(world, state, job, (*token, *start_id, *call))?;
            Reply::Started { token: *token, accepted }
        }
        Call::Report { token, end } => {
            report::report(world, state, job, (*token, *end))?;
            Reply::Reported { token: *token }
        }
        Call::TakeOver { token, call, runs } => {
            let accepted = take_over::take_over(world, state, job, (*token, *call, *runs));
            Reply::TookOver { token: *token, accepted, runs: *runs }
        }
    })
}
