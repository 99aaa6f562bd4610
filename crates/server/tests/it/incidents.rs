//! Incidents over the API: a worker is confirmed dead, and what it ran is lost with it.

use crate::fixture::Fixture;
use serde_json::json;

const LONG: &str = "dag_id: long\ntasks:\n  t: {run: x, infra_retries: 3}\n";

#[tokio::test]
async fn a_death_has_its_attempts_with_what_replaced_them_and_is_closed_by_a_person() {
    let fixture = Fixture::new().await;
    fixture.load(&[("long.yaml", LONG)]).await;
    let worker = fixture.worker().await;
    fixture.post("/dags/long/runs", json!({})).await.expect(202);
    fixture.turn().await;
    let token = worker.start_all().await[0].token.clone();
    assert_eq!(fixture.get("/incidents").await.each("id"), Vec::<String>::new());
    let id = fixture.get("/workers").await.each("id").remove(0);
    let dead = json!({"name": id, "reason": "burnt"});
    fixture.post("/workers:confirm-dead", dead).await.expect(200);
    fixture.turn().await;

    let list = fixture.get("/incidents?open=true").await.expect(200);
    let one = &list.json["items"][0];
    assert_eq!((&one["id"], &one["kind"]), (&json!("inc-1"), &json!("confirmed")));
    assert_eq!((&one["attempt_count"], &one["may_still_run"]), (&json!(1), &json!(0)));
    assert_eq!((&one["state"], &one["job_kind"]), (&json!("open"), &json!("worker")));
    let shown = fixture.get("/incidents/inc-1").await.expect(200).json;
    let lost = &shown["attempts"][0];
    assert_eq!((&lost["token"], &lost["outcome"]), (&json!(token), &json!("lost")), "{shown:#}");
    assert_eq!(lost["evidence"]["kind"], "person");
    let replacement: i64 = lost["replaced_by"].as_str().unwrap().parse().unwrap();
    assert!(replacement > token.parse::<i64>().unwrap(), "{lost}");
    let workers = fixture.get("/workers?all=true").await.json;
    assert_eq!(workers["items"][0]["note"], "inc-1: 1 attempts lost", "{workers:#}");

    fixture.post("/incidents/inc-1:close", json!({})).await.expect(422);
    fixture.post("/incidents/inc-77:close", json!({"reason": "x"})).await.expect(404);
    let closed = fixture.post("/incidents/1:close", json!({"reason": "seen"})).await.expect(200);
    assert_eq!(
        (&closed.json["state"], &closed.json["close_reason"]),
        (&json!("closed"), &json!("seen"))
    );
    fixture.post("/incidents/inc-1:close", json!({"reason": "seen"})).await.expect(409);
    assert_eq!(fixture.get("/incidents?open=true").await.each("id"), Vec::<String>::new());
    assert_eq!(fixture.get("/incidents").await.each("id"), ["inc-1"]);
}

#[tokio::test]
async fn late_writes_are_listed_with_their_attempt() {
    let fixture = Fixture::new().await;
    fixture.load(&[("long.yaml", LONG)]).await;
    let worker = fixture.worker().await;
    fixture.post("/dags/long/runs", json!({})).await.expect(202);
    fixture.turn().await;
    let token = worker.start_all().await[0].token.clone();
    let path = format!("/attempts/{token}/refused-writes");
    assert_eq!(fixture.get(&path).await.expect(200).json["items"], json!([]));
    let dead = json!({"reason": "burnt"});
    fixture.post(&format!("/attempts/{token}:confirm-dead"), dead).await.expect(200);
    let late = fencepost_api::execution::Ended::Exit { code: 0 };
    assert!(!worker.end(&token, late, &[]).await, "a late result changes nothing");
    let refused = fixture.get(&path).await.expect(200).json;
    assert_eq!(refused["items"][0]["kind"], "write_refused", "{refused:#}");
    assert_eq!(refused["items"].as_array().unwrap().len(), 1);
}
