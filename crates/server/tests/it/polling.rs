use crate::fixture::{Fixture, SALES};
use serde_json::json;
use std::sync::Arc;

#[tokio::test]
async fn a_long_poll_of_events_answers_with_the_first_one() {
    let fixture = Arc::new(Fixture::new().await);
    fixture.load(&[("sales.yaml", SALES)]).await;
    let last = fixture.get("/events?limit=1000").await.each("seq").pop().unwrap();
    let follower = tokio::spawn({
        let fixture = Arc::clone(&fixture);
        async move { fixture.get(&format!("/events?after={last}&wait_ms=30000")).await }
    });
    tokio::task::yield_now().await;
    assert!(!follower.is_finished());
    fixture.post("/dags/sales/runs", json!({"run_id": "r"})).await.expect(202);
    let found = follower.await.unwrap();
    assert_eq!(found.each("kind"), ["run_created"]);
    assert_eq!(found.each("run_id"), ["r"]);
}

#[tokio::test]
async fn a_long_poll_with_nothing_ends_empty() {
    let fixture = Fixture::new().await;
    let none = fixture.get("/events?after=1000000&wait_ms=20").await;
    assert_eq!((none.items().len(), &none.json["next_cursor"]), (0, &json!(null)));
}

#[tokio::test]
async fn a_server_that_ends_lets_its_followers_go() {
    let fixture = Arc::new(Fixture::new().await);
    let follower = tokio::spawn({
        let fixture = Arc::clone(&fixture);
        async move { fixture.get("/events?after=1000000&wait_ms=30000").await }
    });
    tokio::task::yield_now().await;
    fixture.stop.send(true).unwrap();
    let limit = std::time::Duration::from_secs(20);
    let found = tokio::time::timeout(limit, follower).await.unwrap().unwrap();
    assert_eq!(found.items().len(), 0);
}

#[tokio::test]
async fn a_worker_that_waits_hears_of_a_cancel_at_once() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    fixture.post("/dags/sales/runs", json!({"run_id": "r"})).await.expect(202);
    fixture.turn().await;
    let worker = fixture.worker().await;
    let token = worker.start_all().await.remove(0).token;
    // Hints that are left over from before are used up.
    worker.poll(1).await;
    let waiting = tokio::spawn({
        let worker = worker.clone();
        async move {
            loop {
                let polled = worker.poll(60_000).await;
                if !polled.stops.is_empty() {
                    return polled;
                }
            }
        }
    });
    tokio::task::yield_now().await;
    fixture.post("/dags/sales/runs/r:cancel", json!({})).await.expect(200);
    let limit = std::time::Duration::from_secs(30);
    let polled = tokio::time::timeout(limit, waiting).await.unwrap().unwrap();
    let orders: Vec<&str> = polled.stops.iter().map(|stop| stop.token.as_str()).collect();
    assert_eq!((orders, polled.stops[0].reason.as_str()), (vec![token.as_str()], "cancel"));
}
