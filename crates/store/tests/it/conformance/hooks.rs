//! Hook points: each is passed, by the statement's name, and a verdict does what it says.

use super::conformance;
use crate::place::{Passed, Place, ticking};
use crate::rows::{mark, marks};
use fencepost_core::hook::{HookVerdict, Hooks};
use fencepost_store::{Store, StoreError, StoreErrorKind};

conformance!(
    every_point_is_passed_in_order,
    i19_a_failure_at_any_point_leaves_nothing,
    i19_a_lost_reply_is_a_commit_all_the_same,
    the_failure_of_one_session_is_not_its_groups,
);

async fn write(store: &Store, op: &'static str) -> Result<(), StoreError> {
    let tx = store.begin(op).await?;
    mark(&tx, op).await?;
    tx.commit().await
}

async fn every_point_is_passed_in_order(place: &impl Place) {
    let passed = Passed::default();
    let seen = passed.clone();
    let hook = Hooks::new(move |point| {
        seen.note(point);
        HookVerdict::Go
    });
    let store = place.open_with(ticking(), hook);
    assert_eq!(passed.take(), [] as [&str; 0], "opening passes no point of an operation");
    write(&store, "op").await.unwrap();
    let points = ["op:begin", "op:outbox_insert", "op:before_commit", "op:after_commit"];
    assert_eq!(passed.take(), points);
    assert_eq!(marks(&store).await, ["op"]);
    assert_eq!(passed.take(), ["marks:begin", "marks:outbox_due"], "a read is not committed");
    let tx = store.begin("empty").await.unwrap();
    fencepost_store::query::outbox::done(&tx, &[]).await.unwrap();
    assert_eq!(passed.take(), ["empty:begin"], "a statement without values is not run");
}

fn verdict_at(place: &impl Place, at: &'static str, verdict: HookVerdict) -> Store {
    let hook = Hooks::new(move |point| if point == at { verdict } else { HookVerdict::Go });
    place.open_with(ticking(), hook)
}

async fn i19_a_failure_at_any_point_leaves_nothing(place: &impl Place) {
    for at in ["op:begin", "op:outbox_insert", "op:before_commit"] {
        let store = verdict_at(place, at, HookVerdict::Fail);
        let error = write(&store, "op").await.unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unavailable, "{at}");
        assert_eq!(marks(&store).await, [] as [&str; 0], "{at}");
    }
    let store = verdict_at(place, "other:begin", HookVerdict::Fail);
    write(&store, "op").await.unwrap();
}

async fn i19_a_lost_reply_is_a_commit_all_the_same(place: &impl Place) {
    let cases = [
        ("a:before_commit", "a", HookVerdict::CommittedButUnknown),
        ("b:after_commit", "b", HookVerdict::CommittedButUnknown),
        ("c:after_commit", "c", HookVerdict::Fail),
    ];
    for (at, op, verdict) in cases {
        let store = verdict_at(place, at, verdict);
        let error = write(&store, op).await.unwrap_err();
        assert!(error.message.contains("the reply was lost"), "{at}: {error}");
        assert!(marks(&place.open()).await.contains(&op.to_owned()), "{at}");
    }
}

async fn the_failure_of_one_session_is_not_its_groups(place: &impl Place) {
    let store = verdict_at(place, "bad:before_commit", HookVerdict::Fail);
    let first = store.begin("first").await.unwrap();
    let (bad, good, first) =
        tokio::join!(write(&store, "bad"), write(&store, "good"), first.commit());
    assert!(bad.is_err());
    good.unwrap();
    first.unwrap();
    assert_eq!(marks(&store).await, ["good"]);
}
