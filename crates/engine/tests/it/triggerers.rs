//! Two triggerers on one store: what is to be watched is shared, and taken over when one is gone.

use crate::world::{Seen, World, lease};
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_core::wait::Look;
use fencepost_engine::liveness::enroll;
use fencepost_engine::operations::register::{self, Identity};
use fencepost_engine::triggerer::Watcher;
use fencepost_engine::{Cx, Pass};
use fencepost_store::query::event::Logged;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const MANY: &str = "
dag_id: d
tasks:
  w: {wait: {file: '/in/{{ n }}', poke_interval: 1m}, expand: {n: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}}
";

async fn triggerer(world: &World, name: &str) -> Cx {
    let who =
        Identity { kind: JobKind::Triggerer, ..world.workers[0].identity(world.cx.env.job_id()) };
    enroll(&world.another(true), &Identity { name: name.into(), ..who }, lease()).await.unwrap()
}

/// A pass, with the looks that it began.
async fn watch(cx: &Cx, seen: &Seen) {
    let mut watcher = Watcher::new(Arc::new(seen.clone()), 1_000);
    watcher.pass(cx).await.unwrap();
    while watcher.is_looking() {
        tokio::task::yield_now().await;
        watcher.pass(cx).await.unwrap();
    }
}

async fn shares(world: &World) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for trigger in world.triggers().await {
        *out.entry(trigger.job_id).or_default() += 1;
    }
    out
}

/// AC-53, I10: each is one's at a time, and none is lost with its owner.
#[tokio::test]
async fn two_triggerers_share_what_is_to_be_watched_and_take_over_from_each_other() {
    let mut world = World::of(&[MANY]).await;
    let (one, two) = (triggerer(&world, "one").await, triggerer(&world, "two").await);
    let id = |cx: &Cx| cx.own.as_ref().unwrap().job_id;
    world.trigger("d", "r").await;
    world.plan().await;
    let seen = Seen::default();
    watch(&one, &seen).await;
    assert_eq!(shares(&world).await[&id(&one).to_string()], 5);
    watch(&two, &seen).await;
    let expected = BTreeMap::from([(id(&one).to_string(), 5), (id(&two).to_string(), 5)]);
    assert_eq!(shares(&world).await, expected);
    // Everything has come, and the first is gone before it looked again.
    for index in 0..10 {
        seen.0.lock().unwrap().insert(format!("/in/{index}"), Look::Met(json!({})));
    }
    world.pass_time(Span::from_mins(2));
    watch(&two, &seen).await;
    assert_eq!(shares(&world).await, BTreeMap::from([(id(&one).to_string(), 5)]));
    watch(&two, &seen).await;
    assert_eq!(shares(&world).await.len(), 1, "what is another's is left to it");
    register::leave(&one, id(&one)).await.unwrap();
    watch(&two, &seen).await;
    world.settle().await;
    let ends =
        |e: &Logged| e.from.as_deref() == Some("deferred") && e.to.as_deref() == Some("success");
    assert_eq!(world.events().await.iter().filter(|e| ends(e)).count(), 10);
    assert_eq!(world.triggers().await, []);
    world.finish().await;
}

/// Whoever still looks for a row that was taken over changes nothing.
#[tokio::test]
async fn a_late_look_of_a_former_owner_ends_nothing() {
    let mut world = World::of(&[MANY]).await;
    let one = triggerer(&world, "one").await;
    world.trigger("d", "r").await;
    world.plan().await;
    // The world's own triggerer has looked once.
    world.pass_time(Span::from_mins(2));
    let seen = Seen::default();
    for index in 0..10 {
        seen.0.lock().unwrap().insert(format!("/in/{index}"), Look::Met(json!({})));
    }
    let mut late = Watcher::new(Arc::new(seen.clone()), 1_000);
    late.pass(&one).await.unwrap();
    assert!(late.is_looking());
    let two = triggerer(&world, "two").await;
    register::leave(&one, one.own.as_ref().unwrap().job_id).await.unwrap();
    watch(&two, &Seen::default()).await;
    tokio::task::yield_now().await;
    // Its lease is over: the store refuses all that it writes.
    assert!(late.pass(&one).await.is_err());
    assert_eq!(world.triggers().await.len(), 10);
    world.cancel("d", "r").await;
    world.settle().await;
    assert_eq!(world.triggers().await, []);
}
