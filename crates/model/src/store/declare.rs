//! A declaration: a job is lost.

use super::claim;
use crate::state::{Job, Silence, State};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::lifecycle::{JobEvent, job_next};
use fencepost_core::liveness::Expired;
use fencepost_core::state::JobKind;

/// The job of an expiry, if it is one of the world's.
pub(crate) fn job_of(expired: &Expired) -> Job {
    Job::try_from(expired.job.as_u128()).unwrap_or(Job::MAX)
}

/// Whether the job's row is free to be locked.
pub(crate) fn is_free(world: &World, state: &State, expired: &Expired) -> bool {
    !claim::is_locked(world, state, job_of(expired))
}

/// Declares an expired job lost, unless it renewed, ended or was declared meanwhile.
pub(crate) fn declare(world: &World, state: &mut State, expired: &Expired) {
    let job = job_of(expired);
    let now = state.store_now();
    let ttl = i16::from(world.lease_ticks());
    let Some(row) = state.store.job(job) else { return };
    let compares = world.guards.on(Guard::DeclareCompareAndSet);
    if compares && row.renew_seq != expired.renew_seq {
        return;
    }
    let agrees = now >= row.renewed_at + ttl
        || (row.renewed_at > now && expired.window >= expired.ttl.times(2));
    if world.guards.on(Guard::StoreClock) && !agrees {
        return;
    }
    let Ok(to) = job_next(row.state, JobEvent::Declare) else { return };
    witness(world, state, job);
    if let Some(row) = state.store.job_mut(job) {
        (row.state, row.alone) = (to, expired.alone);
        row.pages = true;
    }
}

/// Who renewed less than a TTL ago is not declared lost (I25); time in which nobody could be heard is
/// nobody's silence, and many that fall silent together wait one TTL more (I26).
fn witness(world: &World, state: &mut State, job: Job) {
    let Silence { since, audible, .. } = state.witness.silence(job);
    let ttl = world.lease_ticks();
    if since < ttl {
        let what = || format!("job {job} is declared lost after {since} s of silence");
        state.witness.breaks("I25", what);
    }
    if audible < ttl {
        let what =
            || format!("job {job} is declared lost, and {audible} s of its silence were its own");
        state.witness.breaks("I26", what);
    }
    let workers = || {
        let jobs = state.store.jobs.iter();
        jobs.filter(|row| row.kind == JobKind::Worker && row.is_live()).map(|row| row.job)
    };
    let silent = workers().filter(|job| state.witness.silence(*job).since >= ttl).count();
    if workers().any(|one| one == job) && silent >= 3 && since < 2 * ttl {
        let what = || format!("job {job} is one of {silent} that fell silent at once");
        state.witness.breaks("I26", what);
    }
}
