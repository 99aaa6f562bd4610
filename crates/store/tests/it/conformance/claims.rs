//! Claims: each attempt to one worker, the highest priority first.

use super::conformance;
use crate::place::Place;
use crate::rows::{claimer, key, new_attempt, queue, settle};
use fencepost_core::state::AttemptState;
use fencepost_store::query::{attempt, installation};
use std::collections::BTreeSet;

conformance!(
    i1_concurrent_claims_never_hand_one_attempt_to_two,
    the_highest_priority_of_the_queue_is_claimed_first,
    a_claim_that_is_not_committed_claims_nothing,
);

const ATTEMPTS: usize = 300;
const WORKERS: u128 = 8;

async fn i1_concurrent_claims_never_hand_one_attempt_to_two(place: &impl Place) {
    let store = place.open();
    let other = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("queue").await.unwrap();
    let queued: BTreeSet<_> = queue(&tx, run_pk, 0, ATTEMPTS).await.into_iter().collect();
    tx.commit().await.unwrap();
    let mut workers = tokio::task::JoinSet::new();
    for n in 0..WORKERS {
        // Half of them through a store of their own, as other processes would.
        let store = if n % 2 == 0 { store.clone() } else { other.clone() };
        workers.spawn(async move {
            let mut mine = Vec::new();
            loop {
                let tx = store.begin("claim").await.unwrap();
                let got = attempt::claim(&tx, claimer(1 + n % 2), "default", 7).await.unwrap();
                tx.commit().await.unwrap();
                if got.is_empty() {
                    return mine;
                }
                mine.extend(got);
            }
        });
    }
    let claimed: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
    let distinct: BTreeSet<_> = claimed.iter().copied().collect();
    assert_eq!(claimed.len(), ATTEMPTS, "one attempt was handed to two");
    assert_eq!(distinct, queued);
    let tx = store.read("look").await.unwrap();
    for found in attempt::get(&tx, &claimed).await.unwrap() {
        assert_eq!(found.state, AttemptState::Claimed);
        assert!(found.job_id.is_some() && found.claimed_at.is_some());
    }
}

async fn the_highest_priority_of_the_queue_is_claimed_first(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("queue").await.unwrap();
    let tokens = installation::mint(&tx, 5).await.unwrap();
    let mut made: Vec<_> =
        (0..).zip(&tokens).map(|(task, token)| new_attempt(key(run_pk, task), *token)).collect();
    for (attempt, priority) in made.iter_mut().zip([1, 9, 9, -5, 100]) {
        attempt.priority = priority;
    }
    made[4].queue = "gpu".into();
    attempt::insert(&tx, &made).await.unwrap();
    let mut got = attempt::claim(&tx, claimer(1), "default", 3).await.unwrap();
    got.sort();
    assert_eq!(got, [tokens[0], tokens[1], tokens[2]]);
    assert!(attempt::any_queued(&tx, "default").await.unwrap());
    assert_eq!(attempt::claim(&tx, claimer(1), "default", 9).await.unwrap(), [tokens[3]]);
    assert!(!attempt::any_queued(&tx, "default").await.unwrap());
    assert_eq!(attempt::claim(&tx, claimer(1), "default", 9).await.unwrap(), []);
    assert_eq!(attempt::claim(&tx, claimer(1), "gpu", 0).await.unwrap(), []);
    assert_eq!(attempt::claim(&tx, claimer(1), "gpu", 1).await.unwrap(), [tokens[4]]);
}

async fn a_claim_that_is_not_committed_claims_nothing(place: &impl Place) {
    let store = place.open();
    let run_pk = settle(&store).await;
    let tx = store.begin("queue").await.unwrap();
    let tokens = queue(&tx, run_pk, 0, 1).await;
    tx.commit().await.unwrap();
    for _ in 0..2 {
        let tx = store.begin("claim").await.unwrap();
        assert_eq!(attempt::claim(&tx, claimer(1), "default", 9).await.unwrap(), tokens);
    }
}
