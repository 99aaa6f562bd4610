//! A worker introduces itself; its predecessors in the same home end in its favour.

use super::epoch;
use crate::state::{Job, JobRow, Reply, State};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::lifecycle::{JobEvent, job_next};
use fencepost_core::state::{AttemptState, JobKind, JobState};

pub(crate) fn worker(world: &World, state: &mut State, who: (Job, u8), registration: i64) -> Reply {
    let (job, home) = who;
    if world.guards.on(Guard::RegisterOrder) {
        let Some(last) = state.store.registrations.get_mut(usize::from(home)) else {
            return Reply::NotRegistered;
        };
        let is_again = *last == registration && state.store.jobs.iter().any(|row| row.job == job);
        if *last >= registration && !is_again {
            return Reply::NotRegistered;
        }
        *last = registration;
    }
    let epoch = state.store.reconciled;
    insert(state, who, (JobKind::Worker, epoch));
    if state.store.job(job).is_none_or(|row| !row.is_live()) {
        return Reply::NotRegistered;
    }
    for predecessor in predecessors(state, home, job) {
        let Some(row) = state.store.job_mut(predecessor) else { continue };
        let Ok(to) = job_next(row.state, JobEvent::Stop) else { continue };
        (row.state, row.succeeded_by) = (to, Some(job));
        note(state, predecessor, job);
        for attempt in &mut state.store.attempts {
            if attempt.job == Some(predecessor) && attempt.state != AttemptState::Ended {
                (attempt.job, attempt.call) = (Some(job), 0);
            }
        }
    }
    let open = state.store.open_of(job);
    Reply::Registered(
        open.map(|row| (row.token, row.ti, row.state != AttemptState::Claimed)).collect(),
    )
}

/// A home belongs to who started in it last (I10).
fn note(state: &mut State, predecessor: Job, job: Job) {
    if predecessor > job {
        let what = || format!("job {job}, long gone, takes the home from job {predecessor}");
        state.witness.breaks("I10", what);
    }
}

/// A scheduler begins.
pub(crate) fn scheduler(state: &mut State, job: Job) -> u32 {
    if !epoch::is_same_server(state) {
        epoch::renew(state);
    }
    let epoch = state.store.epoch;
    insert(state, (job, u8::MAX), (JobKind::Scheduler, epoch));
    epoch
}

fn insert(state: &mut State, (job, home): (Job, u8), (kind, epoch): (JobKind, u32)) {
    if state.store.job(job).is_some() {
        return;
    }
    let row = JobRow {
        job,
        kind,
        home,
        state: JobState::Running,
        renew_seq: 0,
        renewed_at: state.store_now(),
        epoch,
        succeeded_by: None,
        pages: false,
        alone: false,
    };
    state.store.jobs.push(row);
    state.store.jobs.sort_by_key(|row| row.job);
    state.witness.hears(job);
}

fn predecessors(state: &State, home: u8, job: Job) -> Vec<Job> {
    let is_one = |row: &&JobRow| {
        row.kind == JobKind::Worker && row.home == home && row.job != job && row.is_live()
    };
    state.store.jobs.iter().filter(is_one).map(|row| row.job).collect()
}
