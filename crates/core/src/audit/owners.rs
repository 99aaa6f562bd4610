//! Who owns what: one open attempt per instance, tokens that rise, states and outputs that belong
//! to the newest attempt.

use super::{AuditAttempt, AuditTi, Index, Snapshot, Violation, open, violation};
use crate::id::Token;
use crate::state::{AttemptState, Outcome, TiState};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn check(ti: &AuditTi, own: &[&AuditAttempt], found: &mut Vec<Violation>) {
    single_owner(ti, own, found);
    state_agrees(ti, own, found);
}

fn single_owner(ti: &AuditTi, own: &[&AuditAttempt], found: &mut Vec<Violation>) {
    let count = open(own).count();
    if count > 1 {
        found.push(violation("I1", &ti.name, format!("{count} attempts are open at once")));
    }
    for attempt in own {
        let claimed = !matches!(attempt.state, AttemptState::Queued | AttemptState::Ended);
        if claimed && !attempt.owned {
            let what = format!("attempt {} is {} without an owner", attempt.token, attempt.state);
            found.push(violation("I1", &ti.name, what));
        }
        if (attempt.state == AttemptState::Ended) != attempt.outcome.is_some() {
            let what = format!("attempt {}: state and outcome disagree", attempt.token);
            found.push(violation("I4", &ti.name, what));
        }
    }
}

/// The states of an instance and of its newest attempt must belong together.
fn state_agrees(ti: &AuditTi, own: &[&AuditAttempt], found: &mut Vec<Violation>) {
    let newest = own.last();
    if newest.map(|attempt| attempt.token) != ti.token {
        let what = format!(
            "its token {} is not its newest attempt's",
            ti.token.map_or_else(|| "-".into(), |token| token.to_string())
        );
        found.push(violation("I3", &ti.name, what));
    }
    let state = newest.map(|attempt| attempt.state);
    use AttemptState::{Claimed, LostOpen, Queued, Running, Stopping};
    let agrees = match ti.state {
        TiState::Queued => matches!(state, Some(Queued | Claimed)),
        TiState::Running => matches!(state, Some(Running | Stopping)),
        TiState::Restarting => matches!(state, Some(Stopping)),
        TiState::Held => !matches!(state, Some(Queued | Claimed | Running)),
        TiState::None
        | TiState::Scheduled
        | TiState::Deferred
        | TiState::UpForRetry
        | TiState::Success
        | TiState::Failed
        | TiState::Skipped
        | TiState::UpstreamFailed
        | TiState::Removed => {
            // A cancel is final at once while an attempt stays open under "may still be running".
            let may_still_run = ti.state.is_finished() && state == Some(LostOpen);
            matches!(state, None | Some(AttemptState::Ended)) || may_still_run
        }
    };
    if !agrees {
        let shown = state.map_or("no attempt", AttemptState::as_str);
        found.push(violation("I4", &ti.name, format!("is {} with {shown}", ti.state)));
    }
}

pub(super) fn tokens_rise(snapshot: &Snapshot, found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    let mut last: BTreeMap<(i64, u32, i32), (u32, Token)> = BTreeMap::new();
    let mut sorted: Vec<&AuditAttempt> = snapshot.attempts.iter().collect();
    sorted.sort_by_key(|attempt| (attempt.run, attempt.task, attempt.map_index, attempt.number));
    for attempt in sorted {
        let subject = format!("attempt {}", attempt.token);
        if !seen.insert(attempt.token) {
            found.push(violation("I2", &subject, "its token exists twice".into()));
        }
        if snapshot.highest_minted.is_some_and(|highest| attempt.token > highest) {
            found.push(violation("I2", &subject, "is above the store's counter".into()));
        }
        let key = (attempt.run, attempt.task, attempt.map_index);
        if let Some((number, token)) = last.insert(key, (attempt.number, attempt.token))
            && (token >= attempt.token || number == attempt.number)
        {
            found.push(violation("I2", &subject, format!("does not rise above {token}")));
        }
    }
}

/// Outputs are those of the current attempt, and of one that ended well: what a late or failed
/// attempt wrote is never seen downstream.
pub(super) fn outputs(index: &Index<'_>, snapshot: &Snapshot, found: &mut Vec<Violation>) {
    for output in &snapshot.outputs {
        let instances = index.instances(output.run, output.task);
        let ti = instances.iter().find(|ti| ti.map_index == output.map_index);
        let Some(ti) = ti else {
            let subject = format!("attempt {}", output.token);
            found.push(violation("I32", &subject, "left outputs of no task instance".into()));
            continue;
        };
        let ended_well = index.attempts_of(ti).iter().any(|attempt| {
            attempt.token == output.token
                && matches!(attempt.outcome, Some(Outcome::Success | Outcome::Skipped))
        });
        if ti.token != Some(output.token) || !ended_well {
            let what = format!("has outputs of attempt {}, which did not end well", output.token);
            found.push(violation("I3", &ti.name, what));
        }
    }
}
