//! The steps of a world: what may happen next in a state, and what each does.

mod faults;
mod show;

use crate::host;
use crate::net;
use crate::scheduler;
use crate::state::{Call, End, Held, Intent, Letter, Life, Outage, Phase, State, Way};
use crate::store::{claim, declare, epoch};
use crate::tick;
use crate::worker::{self, Found};
use crate::world::World;
use fencepost_core::id::Token;
use fencepost_core::liveness::Expired;
use fencepost_core::state::AttemptState;

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A second passes.
    Tick,
    Join(u8),
    Register(u8, Way),
    /// Its first beat: before it was answered it does nothing.
    Greet(u8),
    Claim(u8, Way),
    Start(u8, Token, Way),
    Launch(u8, Token),
    /// The shim of a home comes to its task.
    Begin(u8, Token, u8),
    /// The task of a home exits by itself.
    Exit(u8, Token, u8),
    Report(u8, Token, Way),
    /// A successor looks at what it inherited.
    Settle(u8, Token, Way),
    Answer(u8, Token),
    /// What was disowned is ended.
    End(u8, Token),
    /// A stop order is carried out.
    Stop(u8, Token),
    /// A worker whose job is over begins again as another.
    Rejoin(u8),
    SchedulerJoins(u8),
    Write(u8, Intent),
    /// What it was about to write when it stood still.
    Resume(u8),
    Deliver(usize, Box<Letter>),
    CommitClaim,
    Fault(Fault),
    /// What was at fault is as before.
    Mend(Mend),
}

impl Step {
    /// How its message fares.
    const fn way(&self) -> Way {
        match self {
            Self::Register(_, way)
            | Self::Claim(_, way)
            | Self::Start(_, _, way)
            | Self::Report(_, _, way)
            | Self::Settle(_, _, way)
            | Self::Fault(Fault::Beat(_, way)) => *way,
            Self::Tick
            | Self::Join(_)
            | Self::Greet(_)
            | Self::Launch(..)
            | Self::Begin(..)
            | Self::Exit(..)
            | Self::Answer(..)
            | Self::End(..)
            | Self::Stop(..)
            | Self::Rejoin(_)
            | Self::SchedulerJoins(_)
            | Self::Write(..)
            | Self::Resume(_)
            | Self::Deliver(..)
            | Self::CommitClaim
            | Self::Fault(_)
            | Self::Mend(_) => Way::Straight,
        }
    }
}

/// Something goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Crash(u8),
    Pause(u8),
    Part(u8),
    /// All workers are.
    PartAll,
    KillShim(u8, Token, u8),
    Beat(u8, Way),
    StallClaim(u8),
    CrashScheduler(u8),
    PauseScheduler(u8),
    Stall(u8, Intent),
    ServersAway,
    StoreAway,
    ClockStep,
    Lag,
    Failover,
    Cancel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mend {
    Continue(u8),
    Heal(u8),
    HealAll,
    ContinueScheduler(u8),
    RestartScheduler(u8),
    Back,
}

/// Everything that may happen next.
pub(crate) fn steps(world: &World, state: &State) -> Vec<Step> {
    let mut steps = Vec::new();
    for slot in 0..count(state.workers.len()) {
        worker_steps(world, state, slot, &mut steps);
    }
    for home in 0..count(state.homes.len()) {
        for shim in &state.homes[usize::from(home)].shims {
            match shim.phase {
                Phase::Launched => steps.push(Step::Begin(home, shim.token, shim.start)),
                Phase::Running if world.tasks_end => {
                    steps.push(Step::Exit(home, shim.token, shim.start));
                }
                Phase::Prepared | Phase::Running | Phase::Ended(_) => {}
            }
        }
    }
    for number in 0..count(state.schedulers.len()) {
        scheduler_steps(world, state, number, &mut steps);
    }
    let letters = state.letters.iter().enumerate();
    steps.extend(letters.map(|(index, letter)| Step::Deliver(index, Box::new(letter.clone()))));
    if state.claim.is_some() && state.outage != Outage::Store {
        steps.push(Step::CommitClaim);
    }
    faults::faults(world, state, &mut steps);
    faults::mends(state, &mut steps);
    if state.now < world.horizon {
        steps.push(Step::Tick);
    }
    steps
}

pub(crate) fn count(len: usize) -> u8 {
    u8::try_from(len).unwrap_or(u8::MAX)
}

fn worker_steps(world: &World, state: &State, slot: u8, steps: &mut Vec<Step>) {
    let worker = state.worker(slot);
    if worker.life == Life::Dead && state.faults.start > 0 && may_start(world, state, slot) {
        steps.push(Step::Join(slot));
    }
    if worker.life != Life::Alive {
        return;
    }
    for held in &worker.held {
        let runs = state.phase_of(worker.home, (held.token, held.starts)) == Some(Phase::Running);
        if held.is_disowned && !held.is_inherited && runs {
            steps.push(Step::End(slot, held.token));
        }
    }
    if worker.is_over && (worker.held.is_empty() || !worker.is_registered) {
        // Where another one has started since in its home it has nothing to come back to.
        let home = &state.homes[usize::from(worker.home)];
        if home.registrations == worker.registration {
            steps.push(Step::Rejoin(slot));
        }
        return;
    }
    if !net::reaches(state, slot) {
        return;
    }
    let mut push = |late: bool, make: &dyn Fn(Way) -> Step| {
        steps.extend(ways(state, late).into_iter().map(make));
    };
    if !worker.is_registered {
        push(world.late.register, &|way| Step::Register(slot, way));
        return;
    }
    if worker.come == 0 && !worker.is_over {
        push(false, &|_| Step::Greet(slot));
        return;
    }
    for held in &worker.held {
        held_steps(world, state, (slot, held), &mut push);
    }
    for token in &worker.questions {
        push(false, &|_| Step::Answer(slot, *token));
    }
    let room = worker.held.len() < world.capacity;
    if room && worker.acts(state.now) {
        let tokens: Vec<Token> = worker.held.iter().map(|held| held.token).collect();
        let waits = state.store.attempts.iter().any(|row| row.state == AttemptState::Queued)
            || !claim::redelivered(state, worker.job, &tokens).is_empty();
        if waits {
            push(world.late.claim, &|way| Step::Claim(slot, way));
        } else if world.late.claim && state.faults.late_request > 0 {
            steps.push(Step::Claim(slot, Way::LateRequest));
        }
    }
}

type Push<'a> = &'a mut dyn FnMut(bool, &dyn Fn(Way) -> Step);

fn held_steps(world: &World, state: &State, (slot, held): (u8, &Held), push: Push<'_>) {
    let worker = state.worker(slot);
    let token = held.token;
    if held.is_inherited {
        if worker::look(world, state, slot, held) != Found::Unknown && !worker.is_over {
            push(world.late.take_over, &|way| Step::Settle(slot, token, way));
        }
        return;
    }
    match state.phase_of(worker.home, (token, held.starts)) {
        Some(Phase::Ended(_)) => push(world.late.report, &|way| Step::Report(slot, token, way)),
        Some(Phase::Prepared) if held.is_started => {
            push(false, &|_| Step::Launch(slot, token));
        }
        Some(Phase::Prepared) | None if !held.is_started && !held.is_disowned => {
            if worker.acts(state.now) {
                push(world.late.start, &|way| Step::Start(slot, token, way));
            }
        }
        Some(Phase::Running) if worker::is_stopped(state, worker.job, token) => {
            push(false, &|_| Step::Stop(slot, token));
        }
        None | Some(Phase::Prepared | Phase::Launched | Phase::Running) => {}
    }
}

/// Each home has one process that acts; without that lock, a rival of one that stands still.
fn may_start(world: &World, state: &State, slot: u8) -> bool {
    let home = state.worker(slot).home;
    state.workers.iter().filter(|worker| worker.home == home).all(|worker| match worker.life {
        Life::Dead => true,
        Life::Paused => world.rivals,
        Life::Alive => false,
    })
}

fn ways(state: &State, late: bool) -> Vec<Way> {
    let mut ways = vec![Way::Straight];
    let left = &state.faults;
    let kinds = [
        (Way::LateRequest, left.late_request),
        (Way::LateReply, left.late_reply),
        (Way::Twice, left.twice),
    ];
    ways.extend(kinds.iter().filter(|(_, left)| late && *left > 0).map(|(way, _)| *way));
    ways
}

fn scheduler_steps(world: &World, state: &State, number: u8, steps: &mut Vec<Step>) {
    let scheduler = state.scheduler(number);
    if scheduler.life != Life::Alive || state.outage == Outage::Store {
        return;
    }
    if scheduler.intent.is_some() {
        steps.push(Step::Resume(number));
        return;
    }
    if scheduler.job.is_none() {
        steps.push(Step::SchedulerJoins(number));
        return;
    }
    let mut writes: Vec<Intent> =
        scheduler.expired.iter().map(|expired| Intent::Declare(*expired)).collect();
    if epoch::gives_up(world, state, scheduler.observed) {
        writes.push(Intent::GiveUp(scheduler.observed));
    }
    // What any of them would write the first one that may writes: the others would do the same.
    let first = (0..number).any(|other| {
        let one = state.scheduler(other);
        one.life == Life::Alive && one.intent.is_none() && state.owns_lease(other)
    });
    let plain = scheduler::due(world, state);
    if !first || !state.owns_lease(number) {
        writes.extend(plain.iter().copied());
    }
    for intent in writes.iter().filter(|intent| is_free(world, state, intent)) {
        steps.push(Step::Write(number, *intent));
    }
    if state.faults.stall > 0 {
        let declares = scheduler.expired.iter().map(|expired| Intent::Declare(*expired));
        let stalls = declares.chain(plain).map(|i| Step::Fault(Fault::Stall(number, i)));
        steps.extend(stalls);
    }
}

/// Whether no lock stands in the way.
fn is_free(world: &World, state: &State, intent: &Intent) -> bool {
    match intent {
        Intent::Declare(expired) => declare::is_free(world, state, expired),
        Intent::Settle(job) => !claim::is_locked(world, state, *job),
        Intent::Dispatch(_) | Intent::TakeBack(_) | Intent::Reconcile | Intent::GiveUp(_) => true,
    }
}

/// What a step makes of a state. A call that came to nothing leaves it as it was: that it was made, and
/// had a number, is no other state.
pub(crate) fn apply(world: &World, before: &State, step: &Step) -> State {
    let mut after = take(world, before, step);
    if let Step::Claim(slot, _) | Step::Start(slot, ..) | Step::Settle(slot, ..) = step {
        let (old, new) = (before.worker(*slot), after.worker_mut(*slot));
        let numbers = (new.calls, core::mem::replace(&mut new.polls, old.polls.clone()));
        new.calls = old.calls;
        if after != *before {
            let new = after.worker_mut(*slot);
            (new.calls, new.polls) = numbers;
        }
    }
    after
}

fn take(world: &World, before: &State, step: &Step) -> State {
    let mut after = before.clone();
    let state = &mut after;
    net::pay(state, step.way());
    match step {
        Step::Tick => tick::tick(world, state),
        Step::Join(slot) => {
            state.faults.start -= 1;
            worker::join(world, state, *slot);
        }
        Step::Rejoin(slot) => worker::join(world, state, *slot),
        Step::Greet(slot) => worker::beat(world, state, *slot),
        Step::Register(slot, way) => worker::register(world, state, *slot, *way),
        Step::Claim(slot, way) => worker::claim(world, state, *slot, *way),
        Step::Start(slot, token, way) => worker::start(world, state, *slot, (*token, *way)),
        Step::Launch(slot, token) => {
            let home = state.worker(*slot).home;
            let Some(held) = state.worker_mut(*slot).held(*token) else { return after };
            let start = (*token, held.starts);
            host::launch(world, state, home, start);
        }
        Step::Begin(home, token, start) => host::begin(state, *home, (*token, *start)),
        Step::Exit(home, token, start) => host::end(state, *home, (*token, *start), End::Exit),
        Step::Report(slot, token, way) => worker::report(world, state, *slot, (*token, *way)),
        Step::Settle(slot, token, way) => worker::settle(world, state, *slot, (*token, *way)),
        Step::Answer(slot, token) => worker::answer(world, state, *slot, *token),
        Step::End(slot, token) => end(state, *slot, (*token, End::Superseded)),
        Step::Stop(slot, token) => end(state, *slot, (*token, End::Stopped)),
        Step::SchedulerJoins(number) => scheduler::join(state, *number),
        Step::Write(number, intent) => {
            forget(state, *number, intent);
            scheduler::write(world, state, *number, *intent);
        }
        Step::Resume(number) => {
            if let Some(intent) = state.scheduler_mut(*number).intent.take() {
                scheduler::write(world, state, *number, intent);
            }
        }
        Step::Deliver(index, _) => net::deliver(world, state, *index),
        Step::CommitClaim => {
            if let Some(open) = state.claim.take() {
                claim::commit(world, state, &open);
            }
        }
        Step::Fault(fault) => faults::befall(world, state, fault),
        Step::Mend(mend) => faults::mend(world, state, *mend),
    }
    after
}

fn end(state: &mut State, slot: u8, (token, end): (Token, End)) {
    let home = state.worker(slot).home;
    let Some(held) = state.worker_mut(slot).held(token) else { return };
    let start = (token, held.starts);
    host::end(state, home, start, end);
}

/// A declaration is tried once.
fn forget(state: &mut State, number: u8, intent: &Intent) {
    if let Intent::Declare(expired) = intent {
        let is_other = |one: &Expired| one.job != expired.job;
        state.scheduler_mut(number).expired.retain(is_other);
    }
}

/// Whether a message may be on its way.
pub(crate) const fn name_of(call: &Call) -> &'static str {
    match call {
        Call::Register { .. } => "registration",
        Call::Beat(_) => "beat",
        Call::Claim { .. } => "claim",
        Call::Start { .. } => "start",
        Call::Report { .. } => "report",
        Call::TakeOver { .. } => "word about what it inherited",
    }
}
