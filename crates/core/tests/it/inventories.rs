//! Inventories of a worker whose calls overtake each other: no order of deliveries makes an attempt
//! that it holds, or may still learn of, a question; and one that it has lost becomes one.

use fencepost_core::guard::Guards;
use fencepost_core::id::Token;
use fencepost_core::liveness::inventory::{Digest, InHand, Taken, questions};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[expect(clippy::unwrap_used, reason = "a helper of tests fails the test")]
fn token(n: usize) -> Token {
    Token::new(1, n as u64).unwrap()
}

/// A call that claims one attempt: sent at its place in the order of calls, its reply in hand before
/// the inventory is taken, after it, or never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Before,
    After,
    /// The caller knows that none comes any more.
    Never,
}

fn replies() -> impl Strategy<Value = Vec<Reply>> {
    let reply = prop_oneof![Just(Reply::Before), Just(Reply::After), Just(Reply::Never)];
    proptest::collection::vec(reply, 0..40)
}

proptest! {
    /// Of the calls before the inventory exactly those are asked about whose reply never comes; of
    /// the later ones none is.
    #[test]
    fn only_what_is_lost_is_asked_about(replies in replies(), taken_at in 0_usize..40) {
        let calls = || replies.iter().enumerate().map(|(n, reply)| (n, *reply));
        let earlier = |n: usize| n < taken_at;
        let number = |n: usize| i64::try_from(n + 1).unwrap();
        let mut named = BTreeSet::new();
        let (mut unanswered, mut lost) = (Vec::new(), Vec::new());
        for (n, reply) in calls().filter(|(n, _)| earlier(*n)) {
            match reply {
                Reply::Before => drop(named.insert(token(n))),
                Reply::After => unanswered.push(number(n)),
                Reply::Never => lost.push(token(n)),
            }
        }
        // The numbers of calls and of the inventory rise in one row.
        let after = |n: usize| if earlier(n) { number(n) } else { number(n) + 1 };
        let in_hand: Vec<InHand> = calls()
            .map(|(n, _)| InHand { token: token(n), call: after(n), is_owed: false })
            .collect();
        let taken = Taken { call: number(taken_at), unanswered: &unanswered };
        prop_assert_eq!(questions(&taken, &named, &in_hand, Guards::all()), lost);
    }

    /// In any order the digest is the same; of other sets, or for another job, it is another one.
    #[test]
    fn a_digest_tells_sets_apart(
        ours in proptest::collection::btree_set(0_usize..600, 0..300),
        theirs in proptest::collection::btree_set(0_usize..600, 0..300),
        key in any::<u128>(),
    ) {
        let of = |set: &BTreeSet<usize>| Digest::of(key, set.iter().map(|n| token(*n)));
        let backwards = Digest::of(key, ours.iter().rev().map(|n| token(*n)));
        prop_assert_eq!(of(&ours), backwards);
        prop_assert_eq!(of(&ours) == of(&theirs), ours == theirs);
        let other = Digest::of(!key, ours.iter().map(|n| token(*n)));
        prop_assert_eq!(of(&ours) == other, ours.is_empty());
    }
}
