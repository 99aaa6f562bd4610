use crate::fixture::{Fixture, SALES};
use fencepost_api::execution::Ended;
use fencepost_core::id::Token;
use serde_json::{Value, json};

async fn running(fixture: &Fixture) -> String {
    fixture.load(&[("sales.yaml", SALES)]).await;
    fixture.post("/dags/sales/runs", json!({"run_id": "r1"})).await.expect(202);
    fixture.turn().await;
    fixture.worker().await.start_all().await.remove(0).token
}

#[tokio::test]
async fn an_attempt_is_found_by_its_id_its_token_and_as_people_write_it() {
    let fixture = Fixture::new().await;
    let token = running(&fixture).await;
    let first = fixture.get(&format!("/attempts/{token}")).await.expect(200).json;
    let id = first["attempt_id"].as_str().unwrap();
    let short = token.parse::<Token>().unwrap().to_string();
    for name in [id, &short] {
        assert_eq!(fixture.get(&format!("/attempts/{name}")).await.expect(200).json, first);
    }
    assert_eq!((&first["state"], &first["host"]), (&json!("running"), &json!("node-a")));
    assert_eq!((&first["outcome"], &first["lease_expires_at"]), (&Value::Null, &Value::Null));
    for name in
        ["1-99999", "0", "-1", "9223372036854775808", "01926f3e-0000-7000-8000-000000000001"]
    {
        assert_eq!(
            fixture.get(&format!("/attempts/{name}")).await.expect(404).code(),
            "no-such-attempt"
        );
    }
}

#[tokio::test]
async fn what_a_person_confirms_as_dead_is_replaced_and_says_who() {
    let fixture = Fixture::new().await;
    let token = running(&fixture).await;
    let confirm = format!("/attempts/{token}:confirm-dead");
    let done =
        fixture.post(&confirm, json!({"reason": "host was scrapped"})).await.expect(200).json;
    assert_eq!((&done["state"], &done["outcome"]), (&json!("ended"), &json!("lost")));
    assert_eq!((&done["counted_as"], &done["may_still_run"]), (&json!("infra"), &json!(false)));
    assert_eq!(done["evidence"]["kind"], "person");
    assert_eq!(done["message"], "confirmed dead by owner: host was scrapped");
    assert_eq!(fixture.post(&confirm, json!({})).await.expect(409).code(), "already-terminal");
    let events = fixture.get(&format!("/attempts/{token}/events")).await;
    assert!(
        events.each("kind").contains(&"confirmed_dead".to_owned()),
        "{:?}",
        events.each("kind")
    );
    assert!(events.each("actor").contains(&"owner".to_owned()));

    // The late report of the worker is refused, and counted.
    let worker = fixture.worker().await;
    assert!(!worker.end(&token, Ended::Exit { code: 0 }, &[]).await);
    let after = fixture.get(&format!("/attempts/{token}")).await.expect(200).json;
    assert_eq!(after["refused_writes"], 1);
    fixture.turn().await;
    let attempts = fixture.get("/dags/sales/runs/r1/tasks/extract/attempts").await;
    assert_eq!(attempts.each("why"), ["first", "replaces"]);
    assert_eq!(attempts.each("replaces"), ["null", "1"]);
    let doctor = fixture.get("/doctor").await.json;
    assert_eq!(doctor["violations"], json!([]));
}

#[tokio::test]
async fn what_nobody_has_cannot_be_confirmed_as_dead_and_a_claim_costs_nothing() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    fixture.post("/dags/sales/runs", json!({"run_id": "r1"})).await.expect(202);
    fixture.turn().await;
    let queued = fixture.get("/attempts").await;
    let token = &queued.each("token")[0];
    let refused = fixture.post(&format!("/attempts/{token}:confirm-dead"), json!({})).await;
    assert_eq!((refused.status, refused.code()), (422, "validation-failed"));
    fixture.worker().await.claim_all().await;
    let done =
        fixture.post(&format!("/attempts/{token}:confirm-dead"), json!({})).await.expect(200);
    assert_eq!(done.json["outcome"], "never_ran");
    assert_eq!(done.json["counted_as"], "none");
}

#[tokio::test]
async fn kill_stops_what_runs() {
    let fixture = Fixture::new().await;
    let token = running(&fixture).await;
    let done = fixture.post(&format!("/attempts/{token}:kill"), json!({"reason": "stuck"})).await;
    let done = done.expect(200).json;
    assert_eq!((&done["state"], &done["reason"]), (&json!("stopping"), &json!("kill")));
    let worker = fixture.worker().await;
    assert!(worker.end(&token, Ended::Stopped { code: None, signal: Some(9) }, &[]).await);
    let ended = fixture.get(&format!("/attempts/{token}")).await.json;
    assert_eq!((&ended["outcome"], &ended["signal"]), (&json!("cancelled"), &json!(9)));
    assert_eq!(
        fixture.post(&format!("/attempts/{token}:kill"), json!({})).await.expect(409).code(),
        "already-terminal"
    );
    let all = "/attempts?state=ended,running&dag_id=sales&worker=w-1";
    assert_eq!(fixture.get(all).await.each("token"), [token]);
    assert_eq!(fixture.get("/attempts?state=ended&worker=w-2").await.items().len(), 0);
    assert_eq!(fixture.get("/attempts?state=ended&dag_id=other").await.items().len(), 0);
}
