//! The attempt's table. An end names its outcome; which outcome may end which state is here too.

use super::{Rejected, Row, look_up};
use crate::state::AttemptState::{self, Claimed, Ended, LostOpen, Queued, Running, Stopping};
use crate::state::Outcome;

/// What can happen to an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptEvent {
    /// A worker takes it.
    Claim,
    /// The store accepted that its processes start.
    Start,
    /// A stop was asked for while it runs.
    Stop,
    /// Lost, and `on_lost` or `replace` keeps it open.
    Open,
    End(Outcome),
}

impl AttemptEvent {
    /// Every event: each end with each outcome.
    pub fn all() -> Vec<Self> {
        let others = [Self::Claim, Self::Start, Self::Stop, Self::Open];
        others.into_iter().chain(Outcome::ALL.iter().map(|outcome| Self::End(*outcome))).collect()
    }
}

pub(super) const TABLE: &[Row<AttemptState, AttemptEvent>] = &[
    (AttemptEvent::Claim, &[Queued], Claimed),
    (AttemptEvent::Start, &[Claimed], Running),
    (AttemptEvent::Stop, &[Running], Stopping),
    (AttemptEvent::Open, &[Running, Stopping], LostOpen),
    (AttemptEvent::End(Outcome::Success), &[Running, LostOpen], Ended),
    (AttemptEvent::End(Outcome::Failed), &[Running, LostOpen], Ended),
    (AttemptEvent::End(Outcome::Skipped), &[Running, LostOpen], Ended),
    // A `wait:` task is deferred by the transaction that queues it.
    (AttemptEvent::End(Outcome::Deferred), &[Queued, Running], Ended),
    (AttemptEvent::End(Outcome::Lost), &[Running, LostOpen], Ended),
    (AttemptEvent::End(Outcome::Fenced), &[Running, Stopping, LostOpen], Ended),
    (AttemptEvent::End(Outcome::Cancelled), &[Queued, Claimed, Stopping, LostOpen], Ended),
    (AttemptEvent::End(Outcome::Cleared), &[Queued, Claimed, Stopping, LostOpen], Ended),
    (AttemptEvent::End(Outcome::NeverRan), &[Queued, Claimed, Running, Stopping], Ended),
    (AttemptEvent::End(Outcome::Released), &[Claimed, Running], Ended),
];

/// Where an event leads.
pub fn attempt_next(state: AttemptState, event: AttemptEvent) -> Result<AttemptState, Rejected> {
    look_up(TABLE, state, event)
}
