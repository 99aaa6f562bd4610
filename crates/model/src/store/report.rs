//! The end of attempts, as their worker reports it or as the end of its lease settles it.

use super::{change_ti, epoch, is_current};
use crate::state::{AttemptRow, End, Job, State, TiRow};
use crate::world::World;
use fencepost_core::guard::Guard;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{AttemptEvent, TiEvent, TiRecord, attempt_next, step};
use fencepost_core::state::{AttemptState, CountedAs, JobState, Outcome, StopReason};
use fencepost_core::verdict::{Budgets, Death, Ending, Stop, Verdict, judge};

/// Whether a report is accepted; `None`: to be sent again.
pub(crate) fn report(
    world: &World,
    state: &mut State,
    job: Job,
    (token, end): (Token, End),
) -> Option<bool> {
    let Some(attempt) = state.store.attempt(token) else { return Some(false) };
    let may_be_forgotten = match attempt.state {
        AttemptState::Queued => true,
        AttemptState::Claimed => attempt.job == Some(job),
        AttemptState::Running
        | AttemptState::Stopping
        | AttemptState::LostOpen
        | AttemptState::Ended => false,
    };
    if end != End::NeverRan && may_be_forgotten && !epoch::is_open(world, state) {
        return None;
    }
    if end == End::NeverRan && !state.witness.has_harm && is_current(state, token) {
        // Nothing died and nothing was cut off: what was given is in hand, or on its way there.
        state.witness.breaks("I24", || format!("the claim of {token} is given up, which was slow"));
    }
    Some(take(world, state, job, (token, &ending(end), Some((job, end)))))
}

const fn ending(end: End) -> Ending {
    match end {
        End::Exit => Ending::Exit(0),
        End::Fenced | End::Superseded | End::Gone | End::Died => Ending::Gone(Death::Orderly),
        End::Stopped => Ending::Stopped,
        End::NeverRan => Ending::NeverRan,
    }
}

/// Works off what a job left that is over.
pub(crate) fn settle(world: &World, state: &mut State, job: Job) {
    let Some(row) = state.store.job(job) else { return };
    let death = if row.alone { Death::Single } else { Death::Orderly };
    let left = state.store.open_of(job).filter(|row| row.state != AttemptState::LostOpen);
    let open: Vec<(Token, AttemptState)> = left.map(|row| (row.token, row.state)).collect();
    for (token, attempt) in open {
        let ending = match attempt {
            AttemptState::Queued | AttemptState::Claimed => Ending::NeverRan,
            AttemptState::Running
            | AttemptState::Stopping
            | AttemptState::LostOpen
            | AttemptState::Ended => Ending::Expired(death),
        };
        take(world, state, job, (token, &ending, None));
    }
    if let Some(row) = state.store.job_mut(job).filter(|row| row.state == JobState::Lost) {
        row.pages = false;
    }
}

type Said<'a> = (Token, &'a Ending, Option<(Job, End)>);

/// Takes a word about an attempt's end: whether it was accepted.
fn take(world: &World, state: &mut State, job: Job, said: Said<'_>) -> bool {
    let (token, ending, digest) = said;
    let Some(attempt) = state.store.attempt(token).cloned() else { return false };
    let Some(ti) = state.store.tis.get(usize::from(attempt.ti)).cloned() else { return false };
    if attempt.state == AttemptState::Ended && digest.is_some() && attempt.digest == digest {
        return true;
    }
    let checks = world.guards.on(Guard::FinishToken);
    let is_late = attempt.state == AttemptState::Ended;
    let is_superseded = ti.token != Some(token);
    if (is_late || is_superseded) && checks {
        return false;
    }
    let is_foreign = attempt.job != Some(job) && !is_late && !is_kin(state, &attempt, job);
    let is_early = matches!(attempt.state, AttemptState::Queued | AttemptState::Claimed)
        && *ending != Ending::NeverRan;
    if is_foreign || is_early {
        return false;
    }
    let verdict = verdict(world, &attempt, &ti, ending);
    apply(state, &attempt, &ti, (&verdict, digest, ending))
}

/// An open lost attempt whose owner was an earlier job in the reporter's home: it may say that it is gone.
fn is_kin(state: &State, attempt: &AttemptRow, job: Job) -> bool {
    let home = |job: Job| state.store.job(job).map(|row| row.home);
    let owner = attempt.job.filter(|_| attempt.state == AttemptState::LostOpen);
    owner.is_some_and(|owner| home(owner) == home(job))
}

fn verdict(world: &World, attempt: &AttemptRow, ti: &TiRow, ending: &Ending) -> Verdict {
    if attempt.state == AttemptState::Claimed {
        let event =
            if ti.requeues >= world.requeue_limit { TiEvent::GiveUp } else { TiEvent::Requeue };
        return Verdict {
            outcome: Outcome::NeverRan,
            event,
            reason: String::new(),
            counted_as: CountedAs::None,
            delay: None,
            stays_open: false,
        };
    }
    let budgets = Budgets {
        try_number: 1,
        max_tries: 1,
        infra_losses: u32::from(ti.infra_losses),
        single_deaths: u32::from(ti.single_deaths),
        requeues: u32::from(ti.requeues),
        requeue_limit: u32::from(world.requeue_limit),
    };
    let stop = attempt.stop.then_some(Stop { reason: StopReason::Cancel, mark: None });
    judge(ending, None, &world.task, &budgets, stop, 0)
}

type Judged<'a> = (&'a Verdict, Option<(Job, End)>, &'a Ending);

/// Writes a verdict down if the tables allow it.
fn apply(state: &mut State, attempt: &AttemptRow, ti: &TiRow, judged: Judged<'_>) -> bool {
    let (verdict, digest, ending) = judged;
    let token = attempt.token;
    let is_late = attempt.state == AttemptState::Ended;
    let event =
        if verdict.stays_open { AttemptEvent::Open } else { AttemptEvent::End(verdict.outcome) };
    let ended = attempt_next(attempt.state, event);
    if ended.is_err() && !is_late {
        return false;
    }
    let record = TiRecord { state: ti.state, token: ti.token };
    let Ok(to) = step(&record, verdict.event, Some(token).filter(|_| !is_late)) else {
        return false;
    };
    if !is_current(state, token) {
        let what = || format!("a report of {token}, which is over, makes t{} {to}", attempt.ti);
        state.witness.breaks("I3", what);
    }
    if let Some(row) = state.store.attempt_mut(token).filter(|_| !is_late) {
        // Slots follow the processes, which ended by their own deadline.
        row.holds = false;
        if verdict.stays_open {
            row.state = AttemptState::LostOpen;
        } else {
            (row.state, row.outcome) = (AttemptState::Ended, Some(verdict.outcome));
            row.digest = digest;
            row.infra = verdict.counted_as == CountedAs::Infra;
        }
    }
    if let Some(row) = state.store.tis.get_mut(usize::from(attempt.ti)) {
        let never_ran = verdict.outcome == Outcome::NeverRan;
        row.requeues = if never_ran { row.requeues + 1 } else { 0 };
        row.infra_losses += u8::from(verdict.counted_as == CountedAs::Infra);
        let is_alone =
            matches!(ending, Ending::Gone(Death::Single) | Ending::Expired(Death::Single));
        row.single_deaths += u8::from(is_alone);
    }
    change_ti(state, attempt.ti, to);
    true
}
