//! Ghosts (I24): an instance that is not over has something that moves it on, and what is over
//! has left nothing behind (I32).

use super::{AuditAttempt, AuditTi, Index, Violation, open, violation};
use crate::state::{RunState, TiState};

pub(super) fn check(
    index: &Index<'_>,
    ti: &AuditTi,
    own: &[&AuditAttempt],
    found: &mut Vec<Violation>,
) {
    if let Some(what) = ghost(index, ti, own) {
        found.push(violation("I24", &ti.name, what.into()));
    }
    for attempt in own.iter().filter(|attempt| attempt.abandoned) {
        let what = format!("attempt {} is {} by a job that is over", attempt.token, attempt.state);
        found.push(violation("I24", &ti.name, what));
    }
    if ti.has_timer && !matches!(ti.state, TiState::UpForRetry | TiState::Deferred) {
        let what = format!("is {} and has a timer", ti.state);
        found.push(violation("I32", &ti.name, what));
    }
    if ti.forward_due && !ti.state.is_finished() {
        let what = format!("is {} and its end is to be counted", ti.state);
        found.push(violation("I7", &ti.name, what));
    }
}

/// What an instance waits for in vain.
fn ghost(index: &Index<'_>, ti: &AuditTi, own: &[&AuditAttempt]) -> Option<&'static str> {
    if ti.state.is_finished() {
        return None;
    }
    match index.run_state(ti.run) {
        None => return Some("belongs to no run"),
        Some(RunState::Success | RunState::Failed | RunState::Cancelled | RunState::Missed) => {
            return Some("is not over, and its run is");
        }
        Some(RunState::Queued | RunState::Running) => {}
    }
    match ti.state {
        TiState::UpForRetry if !ti.has_timer => Some("waits for a retry without a timer"),
        TiState::Deferred if !ti.has_timer => Some("is deferred without a trigger"),
        TiState::Queued if open(own).next().is_none() => Some("is queued without an attempt"),
        TiState::Running | TiState::Restarting if open(own).next().is_none() => {
            Some("runs without an attempt")
        }
        TiState::None => undecided(index, ti),
        TiState::Scheduled
        | TiState::Queued
        | TiState::Running
        | TiState::Deferred
        | TiState::UpForRetry
        | TiState::Restarting
        | TiState::Held
        | TiState::Success
        | TiState::Failed
        | TiState::Skipped
        | TiState::UpstreamFailed
        | TiState::Removed => None,
    }
}

/// An instance that waits for its upstreams is decided by the end that completes them. Once all
/// are counted, only a mark on the head of its task brings anybody to look again. (A run that is
/// queued again marks its heads too.)
fn undecided(index: &Index<'_>, ti: &AuditTi) -> Option<&'static str> {
    let head = index.instances(ti.run, ti.task).first()?;
    if head.recheck || head.upstream.done() < head.upstream.total {
        return None;
    }
    Some("all its upstreams are counted, and nothing will decide it")
}
