//! What may go wrong next, within what the world's budget leaves, and how it is mended.

use super::{Fault, Mend, Step, count, forget};
use crate::fault::Faults;
use crate::net;
use crate::scheduler;
use crate::state::{End, Letter, Life, Outage, Phase, State, Way};
use crate::store::{cancel, claim};
use crate::worker;
use crate::world::World;

pub(super) fn faults(world: &World, state: &State, steps: &mut Vec<Step>) {
    let left = &state.faults;
    for slot in 0..count(state.workers.len()) {
        of_worker(world, state, slot, steps);
    }
    for number in 0..count(state.schedulers.len()) {
        let scheduler = state.scheduler(number);
        if scheduler.life == Life::Alive && scheduler.intent.is_none() {
            if left.scheduler_crash > 0 {
                steps.push(Step::Fault(Fault::CrashScheduler(number)));
            }
            if left.scheduler_pause > 0 {
                steps.push(Step::Fault(Fault::PauseScheduler(number)));
            }
        }
    }
    if left.shim > 0 {
        for home in 0..count(state.homes.len()) {
            let shims = state.homes[usize::from(home)].shims.iter();
            let alive = shims.filter(|shim| matches!(shim.phase, Phase::Launched | Phase::Running));
            let kill = |shim: &crate::state::Shim| Fault::KillShim(home, shim.token, shim.start);
            steps.extend(alive.map(|shim| Step::Fault(kill(shim))));
        }
    }
    of_store(state, steps);
}

fn of_worker(world: &World, state: &State, slot: u8, steps: &mut Vec<Step>) {
    let (left, worker) = (&state.faults, state.worker(slot));
    let mut push = |may: bool, fault: Fault| {
        if may {
            steps.push(Step::Fault(fault));
        }
    };
    push(left.crash > 0 && worker.life != Life::Dead, Fault::Crash(slot));
    if worker.life != Life::Alive {
        return;
    }
    push(left.pause > 0, Fault::Pause(slot));
    push(left.partition > 0 && !worker.is_parted, Fault::Part(slot));
    if !worker.is_registered || worker.is_over || !net::reaches(state, slot) {
        return;
    }
    if world.late.beat && worker.beat == Way::Straight {
        push(left.late_request > 0, Fault::Beat(slot, Way::LateRequest));
        push(left.late_reply > 0, Fault::Beat(slot, Way::LateReply));
        push(left.twice > 0, Fault::Beat(slot, Way::Twice));
    }
    let is_idle = worker.held.is_empty() && state.claim.is_none();
    push(left.server_stall > 0 && is_idle && worker.acts(state.now), Fault::StallClaim(slot));
}

fn of_store(state: &State, steps: &mut Vec<Step>) {
    let left = &state.faults;
    let mut push = |may: bool, fault: Fault| {
        if may {
            steps.push(Step::Fault(fault));
        }
    };
    let is_well = state.outage == Outage::None;
    push(left.part_all > 0, Fault::PartAll);
    push(left.servers_away > 0 && is_well, Fault::ServersAway);
    push(left.store_away > 0 && is_well, Fault::StoreAway);
    push(left.clock_step > 0, Fault::ClockStep);
    push(left.failover > 0 && state.standby.is_none(), Fault::Lag);
    push(state.standby.is_some(), Fault::Failover);
    push(left.cancel > 0 && !state.witness.was_cancelled, Fault::Cancel);
}

pub(super) fn mends(state: &State, steps: &mut Vec<Step>) {
    let all_parted = state.workers.len() > 1 && state.workers.iter().all(|worker| worker.is_parted);
    if all_parted {
        steps.push(Step::Mend(Mend::HealAll));
    }
    for slot in 0..count(state.workers.len()) {
        let worker = state.worker(slot);
        if worker.life == Life::Paused {
            steps.push(Step::Mend(Mend::Continue(slot)));
        }
        if worker.is_parted && !all_parted {
            steps.push(Step::Mend(Mend::Heal(slot)));
        }
    }
    for number in 0..count(state.schedulers.len()) {
        match state.scheduler(number).life {
            Life::Paused => steps.push(Step::Mend(Mend::ContinueScheduler(number))),
            Life::Dead => steps.push(Step::Mend(Mend::RestartScheduler(number))),
            Life::Alive => {}
        }
    }
    if state.outage != Outage::None {
        steps.push(Step::Mend(Mend::Back));
    }
}

pub(super) fn befall(world: &World, state: &mut State, fault: &Fault) {
    spend(&mut state.faults, fault);
    let is_harm = !matches!(fault, Fault::Beat(..) | Fault::StallClaim(_));
    state.witness.has_harm |= is_harm;
    match fault {
        Fault::Crash(slot) => {
            let job = state.worker(*slot).job;
            worker::die(state, *slot);
            state
                .letters
                .retain(|letter| !matches!(letter, Letter::Reply { job: of, .. } if *of == job));
        }
        Fault::Pause(slot) => state.worker_mut(*slot).life = Life::Paused,
        Fault::PartAll => part_all(state, true),
        Fault::Part(slot) => state.worker_mut(*slot).is_parted = true,
        Fault::KillShim(home, token, start) => {
            if let Some(shim) = state.start_of(*home, (*token, *start)) {
                let had_begun = shim.phase == Phase::Running;
                shim.phase = Phase::Ended(if had_begun { End::Died } else { End::NeverRan });
            }
        }
        Fault::Beat(slot, way) => state.worker_mut(*slot).beat = *way,
        Fault::StallClaim(slot) => {
            let worker = state.worker_mut(*slot);
            worker.calls += 1;
            let (job, call) = (worker.job, worker.calls);
            worker.polls.push(call);
            claim::begin(world, state, *slot, (job, call));
        }
        Fault::CrashScheduler(number) => {
            scheduler::drop_beliefs(world, state, *number);
            state.scheduler_mut(*number).life = Life::Dead;
        }
        Fault::PauseScheduler(number) => state.scheduler_mut(*number).life = Life::Paused,
        Fault::Stall(number, intent) => {
            forget(state, *number, intent);
            let scheduler = state.scheduler_mut(*number);
            (scheduler.intent, scheduler.life) = (Some(*intent), Life::Paused);
        }
        Fault::ServersAway => state.outage = Outage::Servers,
        Fault::StoreAway => state.outage = Outage::Store,
        Fault::ClockStep => state.clock_offset += i16::from(world.lease_ticks()),
        Fault::Lag => state.standby = Some(Box::new(state.store.clone())),
        Fault::Failover => {
            if let Some(standby) = state.standby.take() {
                state.store = *standby;
                state.server += 1;
                state.claim = None;
            }
        }
        Fault::Cancel => cancel::cancel(state),
    }
}

fn part_all(state: &mut State, is_parted: bool) {
    for worker in &mut state.workers {
        worker.is_parted = is_parted;
    }
}

fn spend(left: &mut Faults, fault: &Fault) {
    let count = match fault {
        Fault::Crash(_) => &mut left.crash,
        Fault::Pause(_) => &mut left.pause,
        Fault::PartAll => &mut left.part_all,
        Fault::Part(_) => &mut left.partition,
        Fault::KillShim(..) => &mut left.shim,
        Fault::StallClaim(_) => &mut left.server_stall,
        Fault::CrashScheduler(_) => &mut left.scheduler_crash,
        Fault::PauseScheduler(_) => &mut left.scheduler_pause,
        Fault::Stall(..) => &mut left.stall,
        Fault::ServersAway => &mut left.servers_away,
        Fault::StoreAway => &mut left.store_away,
        Fault::ClockStep => &mut left.clock_step,
        Fault::Lag => &mut left.failover,
        Fault::Cancel => &mut left.cancel,
        // Paid for when it is sent, or with the lag that came before.
        Fault::Beat(..) | Fault::Failover => return,
    };
    *count = count.saturating_sub(1);
}

pub(super) fn mend(world: &World, state: &mut State, mend: Mend) {
    match mend {
        Mend::Continue(slot) => state.worker_mut(slot).life = Life::Alive,
        Mend::HealAll => part_all(state, false),
        Mend::Heal(slot) => state.worker_mut(slot).is_parted = false,
        Mend::ContinueScheduler(number) => state.scheduler_mut(number).life = Life::Alive,
        Mend::RestartScheduler(number) => {
            scheduler::drop_beliefs(world, state, number);
            state.scheduler_mut(number).life = Life::Alive;
        }
        Mend::Back => state.outage = Outage::None,
    }
}
