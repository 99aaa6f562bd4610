//! Schedulers: what one would write, and whether it may.

use crate::state::{Intent, Job, JobRow, Life, Outage, Scheduler, State, boot, job_id, store_time};
use crate::store::{declare, dispatch, epoch, register, report};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::{JobId, Token};
use fencepost_core::liveness::{Observer, Reading, Scan};
use fencepost_core::state::{AttemptState, JobKind, JobState};
use fencepost_core::time::{BootInstant, Span};

/// The server's own lease.
const SERVER: u128 = 255;

impl State {
    pub(crate) fn scheduler(&self, number: u8) -> &Scheduler {
        &self.schedulers[usize::from(number)]
    }

    pub(crate) fn scheduler_mut(&mut self, number: u8) -> &mut Scheduler {
        &mut self.schedulers[usize::from(number)]
    }

    /// Whether a scheduler's lease is not over, and of this epoch.
    pub(crate) fn owns_lease(&self, number: u8) -> bool {
        let scheduler = self.scheduler(number);
        let row = scheduler.job.and_then(|job| self.store.job(job));
        row.is_some_and(|row| {
            row.state == JobState::Running
                && row.epoch == scheduler.epoch
                && scheduler.epoch == self.store.epoch
        })
    }
}

/// What there is to write for any scheduler, as far as it can be read now.
pub(crate) fn due(world: &World, state: &State) -> Vec<Intent> {
    let mut due = Vec::new();
    let left = state.store.jobs.iter().filter(|row| row.pages);
    due.extend(left.map(|row| Intent::Settle(row.job)));
    let tis = u8::try_from(state.store.tis.len()).unwrap_or(u8::MAX);
    // Of those that nothing has happened to yet one is as good as another.
    let is_twin = |ti: u8| {
        let (before, rest) = state.store.tis.split_at(usize::from(ti));
        rest.first().is_some_and(|row| row.token.is_none() && before.contains(row))
    };
    let may = |ti: &u8| dispatch::is_due(world, state, *ti) && !is_twin(*ti);
    due.extend((0..tis).filter(may).map(Intent::Dispatch));
    due.extend(unstarted(world, state).into_iter().map(Intent::TakeBack));
    if epoch::is_due(world, state) {
        due.push(Intent::Reconcile);
    }
    due
}

/// Claims that were not started in time.
fn unstarted(world: &World, state: &State) -> Vec<Token> {
    let Some(timeout) = world.start_timeout else { return Vec::new() };
    let is_late = |row: &&crate::state::AttemptRow| {
        row.state == AttemptState::Claimed
            && row.claimed_at + i16::from(timeout) <= state.store_now()
    };
    state.store.attempts.iter().filter(is_late).map(|row| row.token).collect()
}

/// Writes in the name of a scheduler, in a transaction that begins with the assertion of its lease.
pub(crate) fn write(world: &World, state: &mut State, number: u8, intent: Intent) {
    let owns = state.owns_lease(number);
    if !owns && world.guards.on(Guard::OwnLease) {
        drop_beliefs(world, state, number);
        return;
    }
    let before = (!owns).then(|| state.store.clone());
    match intent {
        Intent::Dispatch(ti) => dispatch::dispatch(world, state, ti),
        Intent::Declare(expired) => declare::declare(world, state, &expired),
        Intent::Settle(job) => report::settle(world, state, job),
        Intent::TakeBack(token) => {
            if unstarted(world, state).contains(&token) {
                epoch::take_back(state, token, true, world.requeue_limit);
            }
        }
        Intent::Reconcile => epoch::reconcile(world, state),
        Intent::GiveUp(observed) => epoch::give_up(world, state, observed),
    }
    if before.is_some_and(|before| before != state.store) {
        state.witness.breaks("I9", || format!("scheduler {number} writes, whose lease is over"));
    }
}

/// One that finds its lease over drops what it believed.
pub(crate) fn drop_beliefs(world: &World, state: &mut State, number: u8) {
    let observer = Observer::new(world.observer());
    let scheduler = state.scheduler_mut(number);
    (scheduler.job, scheduler.intent, scheduler.observer) = (None, None, observer);
    scheduler.expired.clear();
    scheduler.observed = Span::ZERO;
}

pub(crate) fn join(state: &mut State, number: u8) {
    let job = state.next_job;
    state.next_job += 1;
    let epoch = register::scheduler(state, job);
    let scheduler = state.scheduler_mut(number);
    (scheduler.job, scheduler.epoch, scheduler.seq) = (Some(job), epoch, 0);
}

/// A second passes for a scheduler: it renews its lease and reads those of all others.
pub(crate) fn turn(world: &World, state: &mut State, number: u8) {
    let scheduler = state.scheduler(number);
    if scheduler.life != Life::Alive {
        return;
    }
    let Some(job) = scheduler.job else { return };
    if state.outage == Outage::Store {
        state.scheduler_mut(number).observer.failed();
        return;
    }
    if world.guards.on(Guard::OwnLease) && !state.owns_lease(number) {
        drop_beliefs(world, state, number);
        return;
    }
    renew(state, number, job);
    scan(world, state, number);
}

fn renew(state: &mut State, number: u8, job: Job) {
    let now = state.store_now();
    let scheduler = state.scheduler_mut(number);
    scheduler.seq += 1;
    let seq = scheduler.seq;
    if let Some(row) = state.store.job_mut(job).filter(|row| row.is_live()) {
        (row.renew_seq, row.renewed_at) = (seq, now);
        state.witness.hears(job);
    }
}

fn scan(world: &World, state: &mut State, number: u8) {
    let own = state.scheduler(number).job;
    let ttl = world.lease.lease_ttl;
    let reading = |row: &JobRow| Reading {
        job: job_id(row.job),
        kind: row.kind,
        ttl,
        renew_seq: row.renew_seq,
        renewed_at: store_time(row.renewed_at),
        detached: false,
    };
    let others = state.store.jobs.iter().filter(|row| row.is_live() && Some(row.job) != own);
    let mut readings: Vec<Reading> = others.map(reading).collect();
    readings.push(Reading {
        job: JobId::from_u128(SERVER),
        kind: JobKind::Server,
        ttl: ttl.times(1_000),
        renew_seq: state.server_seq,
        renewed_at: store_time(state.store_now()),
        detached: false,
    });
    let at = clock(world, state);
    let (store_now, epoch) = (store_time(state.store_now()), state.store.epoch);
    let scan = Scan { started: at, ended: at, store_now, epoch, readings: &readings };
    let scheduler = state.scheduler_mut(number);
    let sight = scheduler.observer.scan(&scan);
    (scheduler.expired, scheduler.observed) = (sight.expired, sight.epoch);
}

/// A scheduler's own clock.
fn clock(world: &World, state: &State) -> BootInstant {
    if world.fast_clock { boot(state.now * 2) } else { boot(state.now) }
}
