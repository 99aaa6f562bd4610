//! Reconciliation: a worker's whole inventory against a store that may have lost its last commits.
//!
//! What the store does not know, or gave to somebody else, is disowned: the worker ends it. What it shows
//! as waiting though the worker runs it was claimed in a commit that is lost: the worker is asked, and its
//! answer records the claim again. A worker has come to the epoch once nothing is left to end or to ask.

use super::inventory::{self, InHand, Taken};
use crate::guard::{Guard, Guards};
use crate::id::Token;
use crate::state::AttemptState;
use crate::time::{Span, Timestamp};
use std::collections::BTreeSet;

/// Where the store has an attempt that a worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this worker's hands.
    Own(AttemptState),
    /// Waiting for a worker.
    Queued,
    /// Nowhere, ended, or in another one's hands.
    Elsewhere,
}

/// An attempt that a worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    pub token: Token,
    /// Its start was accepted once.
    pub is_started: bool,
    pub place: Place,
}

/// What follows from a whole inventory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconciliation {
    pub disowned: Vec<Token>,
    pub questions: Vec<Token>,
}

impl Reconciliation {
    /// Nothing is left to end or to ask.
    pub const fn is_done(&self) -> bool {
        self.disowned.is_empty() && self.questions.is_empty()
    }
}

/// Whether an answer given in an epoch counts as an acknowledgement of a beat, for a worker that has come
/// to the epoch `come`: the one in which it reconciled last, or that of its first beat (0: it has not been
/// answered yet).
///
/// For one lease after an epoch began everybody is waited for, and then no longer. So a worker that
/// beats and does not come to the epoch (its loop stands still, its answers are lost) must have ended
/// what it runs by then: its lease counts from its last beat before.
pub const fn acknowledges(come: u32, epoch: u32, guards: Guards) -> bool {
    come == 0 || epoch <= come || !guards.on(Guard::EpochReconciliation)
}

/// Whether a lease has passed since an epoch began: nobody is waited for any longer.
///
/// As with an expiry, it must have been `observed` on the observer's own clock, and the store's must
/// agree; one that was set back before the epoch began cannot, and twice the lease does then.
pub fn is_over(
    observed: Span,
    lease: Span,
    since: Timestamp,
    now: Timestamp,
    guards: Guards,
) -> bool {
    let agrees = now >= since.plus(lease) || (since > now && observed >= lease.times(2));
    observed >= lease && (agrees || !guards.on(Guard::StoreClock))
}

/// Compares what a worker holds with what the store shows in its hands.
pub fn reconcile(
    taken: &Taken<'_>,
    named: &[Named],
    in_hand: &[InHand],
    guards: Guards,
) -> Reconciliation {
    let names: BTreeSet<Token> = named.iter().map(|one| one.token).collect();
    let mut found = Reconciliation {
        questions: inventory::questions(taken, &names, in_hand, guards),
        ..Reconciliation::default()
    };
    for one in named {
        match one.place {
            Place::Elsewhere => found.disowned.push(one.token),
            Place::Queued | Place::Own(AttemptState::Claimed) if one.is_started => {
                found.questions.push(one.token);
            }
            // What waits and was not started is refused when its start is asked for.
            Place::Queued | Place::Own(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(counter: u64, is_started: bool, place: Place) -> Named {
        Named { token: Token::new(1, counter).unwrap(), is_started, place }
    }

    #[test]
    fn who_does_not_come_to_an_epoch_keeps_the_lease_that_it_had() {
        let all = Guards::all();
        assert!(acknowledges(1, 1, all) && acknowledges(0, 2, all) && acknowledges(2, 1, all));
        assert!(!acknowledges(1, 2, all));
    }

    #[test]
    fn an_epoch_is_waited_in_for_a_lease_that_was_observed_and_by_the_stores_clock() {
        let (lease, since) = (Span::from_secs(30), Timestamp::from_micros(50_000_000));
        let over = |observed: i64, now: i64, guards| {
            let now = Timestamp::from_micros(now * 1_000_000);
            is_over(Span::from_secs(observed), lease, since, now, guards)
        };
        let all = Guards::all();
        assert!(!over(29, 500, all), "its clock was set forward");
        assert!(!over(30, 79, all) && over(30, 80, all));
        assert!(!over(59, 20, all) && over(60, 20, all), "its clock was set back");
        #[cfg(feature = "guard-switches")]
        assert!(over(30, 79, all.without(Guard::StoreClock)));
    }

    #[test]
    fn each_place_has_its_consequence() {
        use AttemptState::{Claimed, Running, Stopping};
        let all = [
            named(1, true, Place::Own(Running)),
            named(2, true, Place::Own(Stopping)),
            named(3, false, Place::Own(Claimed)),
            named(4, false, Place::Queued),
            named(5, true, Place::Own(Claimed)),
            named(6, true, Place::Queued),
            named(7, true, Place::Elsewhere),
            named(8, false, Place::Elsewhere),
        ];
        let token = |counter| Token::new(1, counter).unwrap();
        let absent = InHand { token: token(9), call: 2, is_owed: false };
        let taken = Taken { call: 5, unanswered: &[] };
        let found = reconcile(&taken, &all, &[absent], Guards::all());
        assert_eq!(found.disowned, [token(7), token(8)]);
        assert_eq!(found.questions, [token(9), token(5), token(6)]);
        assert!(!found.is_done());
        let (peaceful, _) = all.split_at(4);
        assert!(reconcile(&taken, peaceful, &[], Guards::all()).is_done());
    }
}
