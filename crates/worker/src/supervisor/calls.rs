//! The numbers of a job's calls, and the tokens that it has refused for ever.
//!
//! A call that brings attempts into this worker's hands has a number, and so has each inventory; the
//! store keeps the number with what it gave out. So an inventory that is on its way while a claim is
//! made says nothing about that claim. A poll counts as unanswered until a later one was answered: what
//! it may have claimed is delivered again by that one.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Unanswered polls beyond which an inventory says nothing: the server is away.
const UNANSWERED: usize = 64;
/// Refused tokens that are remembered. The store refuses their start too, once it has the answer.
const DENIED: usize = 4_096;

/// What a worker keeps of its calls.
#[derive(Default)]
pub(super) struct Calls(Mutex<State>);

#[derive(Default)]
struct State {
    last: i64,
    polls: BTreeSet<i64>,
    denied: VecDeque<String>,
}

/// The number of an inventory that is about to be taken.
pub(super) struct Numbered {
    pub(super) call: i64,
    /// `None`: too much is under way for it to say anything of what it does not name.
    pub(super) unanswered: Option<Vec<i64>>,
}

impl Calls {
    fn state(&self) -> MutexGuard<'_, State> {
        // Numbers and tokens are only added and removed whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a call about attempts that are in hand already.
    pub(super) fn next(&self) -> i64 {
        let mut state = self.state();
        state.last += 1;
        state.last
    }

    /// The number of a poll.
    pub(super) fn poll(&self) -> i64 {
        let mut state = self.state();
        state.last += 1;
        let call = state.last;
        state.polls.insert(call);
        call
    }

    /// A poll was answered, and what it brought is in hand.
    pub(super) fn polled(&self, call: i64) {
        let mut state = self.state();
        state.polls = state.polls.split_off(&(call + 1));
    }

    /// To be asked before the inventory is taken.
    pub(super) fn inventory(&self) -> Numbered {
        let mut state = self.state();
        state.last += 1;
        let unanswered =
            (state.polls.len() <= UNANSWERED).then(|| state.polls.iter().copied().collect());
        Numbered { call: state.last, unanswered }
    }

    /// The server was told that it never ran: it never will.
    pub(super) fn deny(&self, token: &str) {
        let mut state = self.state();
        if state.denied.len() >= DENIED {
            state.denied.pop_front();
        }
        state.denied.push_back(token.to_owned());
    }

    /// Whether an assignment comes too late.
    pub(super) fn is_denied(&self, token: &str) -> bool {
        self.state().denied.iter().any(|denied| denied == token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_is_unanswered_until_a_later_one_was_answered() {
        let calls = Calls::default();
        let (first, second) = (calls.poll(), calls.poll());
        let taken = calls.inventory();
        assert!(taken.call > second);
        assert_eq!(taken.unanswered, Some(vec![first, second]));
        let third = calls.poll();
        calls.polled(second);
        assert_eq!(calls.inventory().unanswered, Some(vec![third]));
    }

    #[test]
    fn with_too_much_under_way_an_inventory_says_nothing() {
        let calls = Calls::default();
        for _ in 0..=UNANSWERED {
            calls.poll();
        }
        assert_eq!(calls.inventory().unanswered, None);
    }

    #[test]
    fn the_newest_refusals_are_kept() {
        let calls = Calls::default();
        for token in 0..=DENIED {
            calls.deny(&token.to_string());
        }
        assert!(!calls.is_denied("0") && calls.is_denied("1"));
    }
}
