use crate::fixture::{Fixture, Reply, SALES};
use fencepost_core::time::Span;
use serde_json::{Value, json};

async fn post(fixture: &Fixture, path: &str, key: &str, body: Value) -> Reply {
    fixture.send_with("POST", path, body, &[("idempotency-key", key)]).await
}

async fn sales() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    fixture
}

#[tokio::test]
async fn the_same_key_and_request_give_the_same_answer_and_one_run() {
    let fixture = sales().await;
    let first = post(&fixture, "/dags/sales/runs", "k1", json!({})).await.expect(202);
    fixture.turn().await;
    let again = post(&fixture, "/dags/sales/runs", "k1", json!({})).await.expect(202);
    assert_eq!(again.json, first.json);
    assert_eq!(again.header("location"), first.header("location"));
    assert!(first.header("location").is_some());
    assert_eq!(fixture.get("/runs").await.items().len(), 1);
    let other = post(&fixture, "/dags/sales/runs", "k1", json!({"note": "x"})).await.expect(422);
    assert_eq!(other.code(), "idempotency-key-reused");
    post(&fixture, "/dags/sales/runs", "k2", json!({})).await.expect(202);
    assert_eq!(fixture.get("/runs").await.items().len(), 2);
    fixture.pass_time(Span::from_hours(25));
    post(&fixture, "/dags/sales/runs", "k1", json!({"note": "x"})).await.expect(202);
    assert_eq!(fixture.get("/runs").await.items().len(), 3);
}

#[tokio::test]
async fn a_key_belongs_to_the_token_that_sent_it() {
    let fixture = sales().await;
    let made = fixture.post("/tokens", json!({"role": "operator"})).await.expect(201).json;
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    post(&fixture, "/dags/sales/runs", "k", json!({})).await.expect(202);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
        ("idempotency-key", "k"),
    ];
    let path = "/api/v1/dags/sales/runs";
    fixture.call("POST", path, &headers, "{}").await.expect(202);
    assert_eq!(fixture.get("/runs").await.items().len(), 2);
}

#[tokio::test]
async fn a_trigger_whose_answer_was_not_kept_finds_its_own_run() {
    let fixture = sales().await;
    // The reservation is kept, the answer is not: as if the process had died between.
    let first = fail_second_keep(&fixture, "/dags/sales/runs", json!({})).await.expect(202);
    let again = post(&fixture, "/dags/sales/runs", "k", json!({})).await.expect(202);
    assert_eq!(again.json["run_id"], first.json["run_id"]);
    assert_eq!(fixture.get("/runs").await.items().len(), 1);
    let third = post(&fixture, "/dags/sales/runs", "k", json!({})).await.expect(202);
    assert_eq!(third.json, again.json);
}

#[tokio::test]
async fn a_clear_of_which_nobody_knows_is_not_repeated() {
    let fixture = sales().await;
    fixture.post("/dags/sales/runs", json!({"run_id": "r"})).await.expect(202);
    fixture.turn().await;
    fail_second_keep(&fixture, "/dags/sales/runs/r:clear", json!({})).await.expect(200);
    let again = post(&fixture, "/dags/sales/runs/r:clear", "k", json!({})).await.expect(409);
    assert_eq!(again.code(), "conflict");
    assert!(again.json["suggestion"].as_str().unwrap().contains("fresh key"));
}

/// A request whose second write of its key fails.
async fn fail_second_keep(fixture: &Fixture, path: &str, body: Value) -> Reply {
    let effect = if path.ends_with(":clear") { "clear" } else { "trigger" };
    fixture.points.after(&format!("{effect}:after_commit"), "keep_answer:begin");
    post(fixture, path, "k", body).await
}

#[tokio::test]
async fn a_request_that_changed_nothing_is_looked_at_anew() {
    let fixture = sales().await;
    fixture.points.fail("trigger:begin", 1);
    post(&fixture, "/dags/sales/runs", "k", json!({"run_id": "r"})).await.expect(503);
    post(&fixture, "/dags/sales/runs", "k", json!({"run_id": "r"})).await.expect(202);
    let missing = "/dags/none/runs";
    post(&fixture, missing, "m", json!({})).await.expect(404);
    post(&fixture, missing, "m", json!({"note": "x"})).await.expect(404);
    post(&fixture, "/dags/sales/runs", "m", json!({"note": "x"})).await.expect(202);
}

#[tokio::test]
async fn previews_are_not_kept_and_tokens_are_told_once() {
    let fixture = sales().await;
    fixture.post("/dags/sales/runs", json!({"run_id": "r"})).await.expect(202);
    fixture.turn().await;
    let clear = "/dags/sales/runs/r:clear";
    post(&fixture, &format!("{clear}?dry_run=true"), "k", json!({})).await.expect(200);
    let done = post(&fixture, clear, "k", json!({})).await.expect(200);
    assert_eq!(done.json["dry_run"], false);
    let made = post(&fixture, "/tokens", "t", json!({"role": "viewer"})).await.expect(201);
    let again = post(&fixture, "/tokens", "t", json!({"role": "viewer"})).await.expect(409);
    assert!(!again.json.to_string().contains(made.json["token"].as_str().unwrap()));
    assert_eq!(fixture.get("/tokens").await.items().len(), 2);
}

#[tokio::test]
async fn two_at_once_make_one_run() {
    let fixture = sales().await;
    let one = post(&fixture, "/dags/sales/runs", "k", json!({}));
    let two = post(&fixture, "/dags/sales/runs", "k", json!({}));
    let (one, two) = tokio::join!(one, two);
    for reply in [one, two] {
        assert!(matches!(reply.status, 202 | 409), "{:#}", reply.json);
    }
    assert_eq!(fixture.get("/runs").await.items().len(), 1);
}
