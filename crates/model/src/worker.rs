//! Workers: what each may do next, and what it makes of an answer.

use crate::host;
use crate::net;
use crate::state::{
    BeatCall, Beaten, Call, End, Held, Job, Life, Phase, Reply, State, Way, Worker, boot,
};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::liveness::reconcile::acknowledges;
use fencepost_core::liveness::{Holder, Phase as Standing};
use fencepost_core::state::AttemptState;
use fencepost_core::time::BootInstant;

impl State {
    pub(crate) fn worker(&self, slot: u8) -> &Worker {
        &self.workers[usize::from(slot)]
    }

    pub(crate) fn worker_mut(&mut self, slot: u8) -> &mut Worker {
        &mut self.workers[usize::from(slot)]
    }
}

impl Worker {
    /// A place where no process is.
    pub(crate) fn nobody(home: u8) -> Self {
        Self {
            home,
            life: Life::Dead,
            is_parted: false,
            job: 0,
            registration: 0,
            is_registered: false,
            is_over: false,
            holder: None,
            reached: 0,
            come: 0,
            is_behind: true,
            calls: 0,
            polls: Vec::new(),
            held: Vec::new(),
            denied: Vec::new(),
            questions: Vec::new(),
            beat: Way::Straight,
        }
    }

    /// Whether its lease lets it claim and start.
    pub(crate) fn acts(&self, now: u8) -> bool {
        let standing = self.holder.as_ref().map(|holder| holder.phase(boot(now)));
        self.is_registered && !self.is_over && standing == Some(Standing::Acting)
    }

    /// The deadline of its attempts' pages.
    fn deadline(&self) -> Option<BootInstant> {
        let holder = self.holder.as_ref().filter(|holder| holder.has_deadline())?;
        let lease = holder.lease();
        let length = lease.self_fence.plus(lease.kill_grace).plus(lease.margin.over(2));
        Some(holder.t0().plus(length))
    }

    fn numbered(&mut self) -> i64 {
        self.calls += 1;
        self.calls
    }
}

/// A process starts, or one whose job is over begins again as another job.
pub(crate) fn join(world: &World, state: &mut State, slot: u8) {
    let (job, now) = (state.next_job, state.now);
    state.next_job += 1;
    let home = state.worker(slot).home;
    let Some(own) = state.homes.get_mut(usize::from(home)) else { return };
    own.registrations += 1;
    let registration = own.registrations;
    let is_parted = state.worker(slot).is_parted;
    let holder = Some(Holder::new(world.lease, boot(now), world.guards));
    let fresh =
        Worker { life: Life::Alive, is_parted, job, registration, holder, ..Worker::nobody(home) };
    *state.worker_mut(slot) = fresh;
}

/// A process ends; its shims do not.
pub(crate) fn die(state: &mut State, slot: u8) {
    let (home, job) = (state.worker(slot).home, state.worker(slot).job);
    let is_parted = state.worker(slot).is_parted;
    *state.worker_mut(slot) = Worker { is_parted, job, ..Worker::nobody(home) };
}

pub(crate) fn register(world: &World, state: &mut State, slot: u8, way: Way) {
    let worker = state.worker(slot);
    let (job, home, registration) = (worker.job, worker.home, worker.registration);
    net::call(world, state, (slot, job), Call::Register { home, registration }, way);
}

/// A beat, with everything that it holds.
pub(crate) fn beat(world: &World, state: &mut State, slot: u8) {
    let now = boot(state.now);
    let epoch = state.homes[usize::from(state.worker(slot).home)].epoch;
    let is_heard = net::reaches(state, slot);
    let worker = state.worker_mut(slot);
    let way = core::mem::replace(&mut worker.beat, Way::Straight);
    let call = worker.numbered();
    let Some(holder) = &mut worker.holder else { return };
    let beat = BeatCall {
        beat: holder.beat(now),
        call,
        inventory: worker.held.iter().map(|held| held.token).collect(),
        unanswered: worker.polls.clone(),
        unstarted: worker.held.iter().filter(|h| !h.is_started).map(|h| h.token).collect(),
        epoch,
        reconciles: worker.is_behind,
    };
    let job = worker.job;
    if is_heard {
        net::call(world, state, (slot, job), Call::Beat(beat), way);
    }
}

pub(crate) fn claim(world: &World, state: &mut State, slot: u8, way: Way) {
    let worker = state.worker_mut(slot);
    let call = worker.numbered();
    worker.polls.push(call);
    let (job, held) = (worker.job, worker.held.iter().map(|held| held.token).collect());
    net::call(world, state, (slot, job), Call::Claim { call, held }, way);
}

pub(crate) fn start(world: &World, state: &mut State, slot: u8, (token, way): (Token, Way)) {
    let worker = state.worker_mut(slot);
    let (job, home, deadline) = (worker.job, worker.home, worker.deadline());
    let call = worker.numbered();
    if state.homes[usize::from(home)].archived.contains(&token) {
        // Claimed once more, after the store forgot its end.
        let call = Call::Report { token, end: End::NeverRan };
        return net::call(world, state, (slot, job), call, way);
    }
    let Some(held) = state.worker_mut(slot).held(token) else { return };
    held.generation = Some(0);
    let held = held.clone();
    host::prepare(state, home, &held, (job, deadline));
    let start_id = (job, held.starts);
    net::call(world, state, (slot, job), Call::Start { token, start_id, call }, way);
}

pub(crate) fn report(world: &World, state: &mut State, slot: u8, (token, way): (Token, Way)) {
    let (job, home) = (state.worker(slot).job, state.worker(slot).home);
    let Some(Phase::Ended(end)) = state.newest(home, token).map(|shim| shim.phase) else { return };
    net::call(world, state, (slot, job), Call::Report { token, end }, way);
}

pub(crate) fn take_over(world: &World, state: &mut State, slot: u8, say: (Token, bool, Way)) {
    let (token, runs, way) = say;
    let worker = state.worker_mut(slot);
    let (job, call) = (worker.job, worker.numbered());
    net::call(world, state, (slot, job), Call::TakeOver { token, call, runs }, way);
}

/// What a successor can find out of an inherited attempt now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The shim lives.
    Runs,
    /// It is proved not to have run, or (without the guard) believed.
    NeverRan,
    Ended,
    /// It is not here any more.
    Gone,
    /// Not to be told yet.
    Unknown,
}

pub(crate) fn look(world: &World, state: &State, slot: u8, held: &Held) -> Found {
    let worker = state.worker(slot);
    let home = &state.homes[usize::from(worker.home)];
    let Some(shim) = state.newest(worker.home, held.token) else {
        let is_archived = home.archived.contains(&held.token);
        return match (held.is_started, is_archived) {
            (false, _) => Found::NeverRan,
            (true, true) => Found::Gone,
            (true, false) => Found::Unknown,
        };
    };
    match shim.phase {
        Phase::Prepared if state.lives(shim.by) => Found::Unknown,
        Phase::Prepared => Found::NeverRan,
        Phase::Launched if world.guards.on(Guard::AbsenceUnderLock) => Found::Unknown,
        Phase::Launched => Found::NeverRan,
        Phase::Running => Found::Runs,
        Phase::Ended(End::NeverRan) => Found::NeverRan,
        Phase::Ended(_) => Found::Ended,
    }
}

/// A successor looks at an inherited attempt, and says what it found.
pub(crate) fn settle(world: &World, state: &mut State, slot: u8, (token, way): (Token, Way)) {
    let worker = state.worker_mut(slot);
    let (home, deadline) = (worker.home, worker.deadline());
    let Some(held) = worker.held(token).cloned() else { return };
    let found = look(world, state, slot, &held);
    let newest = state.newest(home, token).map(|shim| shim.start);
    match found {
        Found::Runs => {
            let start = (token, newest.unwrap_or(0));
            let Some(shim) = state.start_of(home, start) else { return };
            shim.generation += 1;
            shim.deadline = deadline;
            let generation = Some(shim.generation);
            if held.is_disowned {
                host::end(state, home, start, End::Superseded);
            }
            let Some(own) = state.worker_mut(slot).held(token) else { return };
            (own.generation, own.starts, own.is_inherited) = (generation, start.1, false);
            own.is_started = true;
            if !held.is_disowned {
                take_over(world, state, slot, (token, true, way));
            }
        }
        Found::NeverRan if held.is_disowned => drop_held(state, slot, token),
        Found::NeverRan => take_over(world, state, slot, (token, false, way)),
        Found::Ended => {
            if let Some(own) = state.worker_mut(slot).held(token) {
                own.is_inherited = false;
                own.starts = newest.unwrap_or(0);
            }
        }
        Found::Gone => {
            let job = state.worker(slot).job;
            net::call(world, state, (slot, job), Call::Report { token, end: End::Gone }, way);
        }
        Found::Unknown => {}
    }
}

/// A worker answers what became of an attempt that its inventory did not name.
pub(crate) fn answer(world: &World, state: &mut State, slot: u8, token: Token) {
    let worker = state.worker_mut(slot);
    worker.questions.retain(|one| *one != token);
    let (job, home) = (worker.job, worker.home);
    if let Some(held) = worker.held(token) {
        if held.is_started && !held.is_disowned && !held.is_inherited {
            take_over(world, state, slot, (token, true, Way::Straight));
        }
        return;
    }
    let is_archived = state.homes[usize::from(home)].archived.contains(&token);
    let end = if is_archived { End::Gone } else { End::NeverRan };
    if end == End::NeverRan {
        state.worker_mut(slot).denied.push(token);
    }
    net::call(world, state, (slot, job), Call::Report { token, end }, Way::Straight);
}

/// What a worker makes of an answer.
pub(crate) fn hear(world: &World, state: &mut State, slot: u8, reply: Reply) {
    match reply {
        Reply::Registered(open) => registered(state, slot, &open),
        Reply::NotRegistered => state.worker_mut(slot).is_over = true,
        Reply::Beaten(beaten) => acknowledged(world, state, slot, beaten),
        Reply::Claimed { call, claims } => {
            let worker = state.worker_mut(slot);
            worker.polls.retain(|poll| *poll > call);
            for (token, ti) in claims {
                if worker.held(token).is_none() && !worker.denied.contains(&token) {
                    worker.held.push(Held::fresh(token, ti));
                }
            }
            worker.held.sort_by_key(|held| held.token);
        }
        Reply::Started { token, accepted: true } => {
            if let Some(held) = state.worker_mut(slot).held(token) {
                held.is_started = true;
            }
        }
        Reply::Started { token, accepted: false } => drop_held(state, slot, token),
        Reply::Reported { token } => put_away(state, slot, token),
        Reply::TookOver { token, accepted, runs: false } => {
            start_again(state, slot, (token, accepted));
        }
        // The watch begins whatever the answer: what runs is looked after.
        Reply::TookOver { .. } => {}
    }
}

impl Held {
    const fn fresh(token: Token, ti: u8) -> Self {
        Self {
            token,
            ti,
            is_started: false,
            is_disowned: false,
            is_inherited: false,
            starts: 1,
            generation: None,
        }
    }
}

/// Takes what was handed over into hand, and what else lies in the home as something to be ended.
fn registered(state: &mut State, slot: u8, open: &[(Token, u8, bool)]) {
    let home = usize::from(state.worker(slot).home);
    let left = state.homes[home].shims.clone();
    let worker = state.worker_mut(slot);
    if worker.is_registered {
        return;
    }
    worker.is_registered = true;
    for (token, ti, is_started) in open {
        let own = Held::fresh(*token, *ti);
        worker.held.push(Held { is_started: *is_started, is_inherited: true, ..own });
    }
    for shim in left {
        if worker.held(shim.token).is_none() {
            let own = Held::fresh(shim.token, shim.ti);
            let is_started = true;
            worker.held.push(Held { is_started, is_inherited: true, is_disowned: true, ..own });
        }
    }
    worker.held.sort_by_key(|held| held.token);
}

fn acknowledged(world: &World, state: &mut State, slot: u8, beaten: Beaten) {
    if beaten.is_over {
        fence(world, state, slot);
        let worker = state.worker_mut(slot);
        worker.is_over = true;
        // What was not looked at yet it will find again.
        worker.held.retain(|held| !held.is_inherited);
        return;
    }
    let home = usize::from(state.worker(slot).home);
    state.homes[home].epoch = state.homes[home].epoch.max(beaten.epoch);
    let worker = state.worker_mut(slot);
    if beaten.is_reconciled {
        worker.reached = beaten.epoch;
    }
    if beaten.is_reconciled || worker.come == 0 {
        worker.come = worker.come.max(beaten.epoch);
    }
    if let (Some(holder), Some(beat)) = (&mut worker.holder, beaten.beat)
        && acknowledges(worker.come, beaten.epoch, world.guards)
    {
        holder.acknowledged(beat);
    }
    worker.is_behind = worker.reached != beaten.epoch;
    for token in beaten.disowned {
        disown(state, slot, token);
    }
    let worker = state.worker_mut(slot);
    for token in beaten.questions {
        if !worker.questions.contains(&token) {
            worker.questions.push(token);
        }
    }
    worker.questions.sort_unstable();
    push(world, state, slot);
}

fn disown(state: &mut State, slot: u8, token: Token) {
    let home = state.worker(slot).home;
    let Some(held) = state.worker_mut(slot).held(token) else { return };
    held.is_disowned = true;
    let held = held.clone();
    match state.phase_of(home, (token, held.starts)) {
        Some(Phase::Running) if !held.is_inherited => {
            host::end(state, home, (token, held.starts), End::Superseded);
        }
        None | Some(Phase::Prepared) if !held.is_inherited => drop_held(state, slot, token),
        None | Some(Phase::Prepared | Phase::Launched | Phase::Running | Phase::Ended(_)) => {}
    }
}

/// Pushes the deadlines of all that is its own.
fn push(world: &World, state: &mut State, slot: u8) {
    let worker = state.worker(slot);
    let (home, deadline, held) = (worker.home, worker.deadline(), worker.held.clone());
    let now = boot(state.now);
    for own in held.iter().filter(|own| !own.is_disowned) {
        if host::may_touch(world, state, home, own)
            && let Some(shim) = state.start_of(home, (own.token, own.starts))
            && shim.deadline.is_none_or(|before| before > now)
        {
            shim.deadline = deadline;
        }
    }
}

/// Its lease does not let it go on: what runs is ended.
pub(crate) fn fence(world: &World, state: &mut State, slot: u8) {
    let worker = state.worker(slot);
    let (home, held) = (worker.home, worker.held.clone());
    for own in held {
        if host::may_touch(world, state, home, &own) {
            host::end(state, home, (own.token, own.starts), End::Fenced);
        }
    }
}

/// Proved not to have run: it may be started again under the same token.
fn start_again(state: &mut State, slot: u8, (token, accepted): (Token, bool)) {
    let home = state.worker(slot).home;
    let newest = state.newest(home, token).map(|shim| (shim.start, shim.phase));
    let Some(held) = state.worker_mut(slot).held(token).filter(|held| held.is_inherited) else {
        return;
    };
    if !accepted {
        drop_held(state, slot, token);
        return;
    }
    (held.is_inherited, held.is_started) = (false, false);
    if let Some((start, phase)) = newest {
        held.starts = start + 1;
        // Without the guard of the lock the earlier start may still come.
        if phase != Phase::Launched {
            state.remove(home, (token, start));
        }
    }
}

/// Gives up what was not started.
fn drop_held(state: &mut State, slot: u8, token: Token) {
    let worker = state.worker_mut(slot);
    let home = worker.home;
    let Some(held) = worker.held(token).cloned() else { return };
    worker.held.retain(|held| held.token != token);
    let is_idle = |phase| matches!(phase, Phase::Prepared | Phase::Ended(_));
    if state.phase_of(home, (token, held.starts)).is_some_and(is_idle) {
        state.remove(home, (token, held.starts));
    }
}

/// Its end is told: it is put away.
fn put_away(state: &mut State, slot: u8, token: Token) {
    let worker = state.worker_mut(slot);
    let home = usize::from(worker.home);
    worker.held.retain(|held| held.token != token);
    let own = &mut state.homes[home];
    let has_run = own.shims.iter().any(|shim| {
        shim.token == token && matches!(shim.phase, Phase::Ended(end) if end != End::NeverRan)
    });
    own.shims.retain(|shim| shim.token != token || !matches!(shim.phase, Phase::Ended(_)));
    if has_run && !own.archived.contains(&token) {
        own.archived.push(token);
        own.archived.sort_unstable();
    }
}

/// A stop order of the store for what a worker runs.
pub(crate) fn is_stopped(state: &State, job: Job, token: Token) -> bool {
    let attempt = state.store.attempt(token);
    attempt.is_some_and(|row| row.job == Some(job) && row.state == AttemptState::Stopping)
}
