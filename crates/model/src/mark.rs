//! Coverage marks: which branches a search has been through. A world that reaches none of those that it
//! is there for shows nothing.

use crate::state::{End, Intent, Phase, State};
use crate::step::Step;
use fencepost_core::state::{AttemptState, JobState, Outcome};

/// Every mark.
pub const ALL: &[&str] = &[
    "cancelled",
    "claim_kept",
    "claim_recorded_again",
    "declare_lost_the_race",
    "declared",
    "disowned",
    "epoch_raised",
    "handed_over",
    "late_report_refused",
    "lost",
    "never_ran",
    "opened",
    "reattached",
    "reconciled",
    "replaced",
    "scheduler_fenced",
    "shim_fenced",
    "start_refused",
    "start_taken_back",
];

/// The marks of a step.
pub(crate) fn of(before: &State, step: &Step, after: &State) -> Vec<&'static str> {
    let mut marks = Vec::new();
    // What a failover takes back was not done.
    if before.server == after.server && before.store != after.store {
        of_store(before, after, &mut marks);
    }
    if before.homes != after.homes {
        of_homes(before, after, &mut marks);
    }
    match step {
        Step::Write(number, intent) => {
            let was_dropped = after.scheduler(*number).job.is_none();
            let is_declaration = matches!(intent, Intent::Declare(_));
            if was_dropped {
                marks.push("scheduler_fenced");
            } else if is_declaration && before.store == after.store {
                marks.push("declare_lost_the_race");
            }
        }
        Step::Resume(number) if after.scheduler(*number).job.is_none() => {
            marks.push("scheduler_fenced");
        }
        Step::Resume(_) if before.store == after.store => marks.push("declare_lost_the_race"),
        Step::Report(..) if before.store == after.store => marks.push("late_report_refused"),
        Step::Start(slot, token, _) => {
            let holds = |state: &State| state.worker(*slot).held.iter().any(|h| h.token == *token);
            if !holds(after) {
                marks.push("start_refused");
            }
        }
        Step::End(..) => marks.push("disowned"),
        Step::Tick
        | Step::Join(_)
        | Step::Register(..)
        | Step::Greet(_)
        | Step::Claim(..)
        | Step::Launch(..)
        | Step::Begin(..)
        | Step::Exit(..)
        | Step::Settle(..)
        | Step::Answer(..)
        | Step::Stop(..)
        | Step::Rejoin(_)
        | Step::SchedulerJoins(_)
        | Step::Resume(_)
        | Step::Report(..)
        | Step::Deliver(..)
        | Step::CommitClaim
        | Step::Fault(_)
        | Step::Mend(_) => {}
    }
    marks
}

fn of_store(before: &State, after: &State, marks: &mut Vec<&'static str>) {
    for row in &after.store.jobs {
        let was = before.store.job(row.job).map(|row| row.state);
        if row.state == JobState::Lost && was.is_some_and(|was| was != JobState::Lost) {
            marks.push("declared");
        }
    }
    for row in &after.store.attempts {
        let Some(was) = before.store.attempt(row.token) else {
            let is_first = after.store.attempts.iter().filter(|a| a.ti == row.ti).count() == 1;
            marks.extend((!is_first).then_some("replaced"));
            continue;
        };
        if was.job.is_some() && was.job != row.job && row.job.is_some() {
            marks.push("handed_over");
        }
        if was.start_id.is_some() && row.start_id.is_none() {
            marks.push("start_taken_back");
        }
        if was.state == AttemptState::Queued && row.state == AttemptState::Running {
            marks.push("claim_recorded_again");
        }
        if was.state == AttemptState::Claimed && row.state == was.state && was.call != row.call {
            marks.push("claim_kept");
        }
        if row.state == AttemptState::LostOpen && was.state != row.state {
            marks.push("opened");
        }
        if was.outcome.is_none() {
            match row.outcome {
                Some(Outcome::Lost) => marks.push("lost"),
                Some(Outcome::NeverRan) => marks.push("never_ran"),
                Some(Outcome::Cancelled) => marks.push("cancelled"),
                None
                | Some(
                    Outcome::Success
                    | Outcome::Failed
                    | Outcome::Skipped
                    | Outcome::Deferred
                    | Outcome::Fenced
                    | Outcome::Cleared
                    | Outcome::Released,
                ) => {}
            }
        }
    }
    if after.store.epoch > before.store.epoch {
        marks.push("epoch_raised");
    }
    if after.store.reconciled > before.store.reconciled {
        marks.push("reconciled");
    }
}

fn of_homes(before: &State, after: &State, marks: &mut Vec<&'static str>) {
    for (old, new) in before.homes.iter().zip(&after.homes) {
        for shim in &new.shims {
            let is_it =
                |one: &&crate::state::Shim| one.token == shim.token && one.start == shim.start;
            let Some(was) = old.shims.iter().find(is_it) else { continue };
            if shim.generation > was.generation {
                marks.push("reattached");
            }
            if was.phase == Phase::Running && shim.phase == Phase::Ended(End::Fenced) {
                marks.push("shim_fenced");
            }
            if was.phase == Phase::Running && shim.phase == Phase::Ended(End::Superseded) {
                marks.push("disowned");
            }
        }
    }
}
