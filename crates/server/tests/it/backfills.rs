//! Backfills over the API.

use crate::fixture::Fixture;
use serde_json::json;

const DAILY: &str = "
schedule: '@daily'
start_date: 2020-01-01
catchup: next
params: {n: 1}
tasks: {a: {run: echo}}
";

#[tokio::test]
async fn a_backfill_is_previewed_made_watched_and_cancelled() {
    let fixture = Fixture::new().await;
    fixture.load(&[("daily.yaml", DAILY)]).await;
    let body = json!({
        "dag_id": "daily", "from_date": "2020-02-01", "to_date": "2020-02-07",
        "max_active_runs": 2, "params": {"n": 3},
    });
    let preview = fixture.post("/backfills:preview", body.clone()).await.expect(200).json;
    let text = "7 slots: 0 exist, 7 missing: create → 7 runs";
    assert_eq!((&preview["text"], &preview["runs"]), (&json!(text), &json!(7)));
    let dry = fixture.post("/backfills?dry_run=true", body.clone()).await.expect(200).json;
    assert_eq!(dry, preview);
    assert_eq!(fixture.get("/backfills").await.each("id"), Vec::<String>::new());

    let made = fixture.post("/backfills", body.clone()).await.expect(201).json;
    assert_eq!((&made["state"], &made["progress"]["slots"]), (&json!("running"), &json!(7)));
    let again = fixture.post("/backfills", body.clone()).await.expect(409);
    assert_eq!(again.code(), "backfill-under-way");
    fixture.turn().await;
    let shown = fixture.get("/backfills/1").await.expect(200).json;
    assert_eq!(shown["progress"]["created"], 7, "{shown:#}");
    assert_eq!(
        (&shown["progress"]["running"], &shown["progress"]["queued"]),
        (&json!(2), &json!(5))
    );
    let runs = fixture.get("/dags/daily/runs?run_type=backfill").await.expect(200);
    assert_eq!(runs.each("run_id").len(), 7);

    let paused = fixture.post("/backfills/1:pause", json!({"reason": "month end"})).await;
    assert_eq!(paused.expect(200).json["paused"], true);
    assert_eq!(
        fixture.post("/backfills/1:resume", json!({})).await.expect(200).json["paused"],
        false
    );
    let cancelled = fixture.post("/backfills/1:cancel", json!({})).await.expect(200).json;
    assert_eq!(cancelled["state"], "cancelling");
    for _ in 0..4 {
        fixture.turn().await;
    }
    let over = fixture.get("/backfills/1").await.expect(200).json;
    assert_eq!((&over["state"], &over["progress"]["cancelled"]), (&json!("cancelled"), &json!(7)));
    assert_eq!(fixture.get("/backfills?open=true").await.each("id"), Vec::<String>::new());
    assert_eq!(fixture.get("/backfills?dag_id=daily").await.each("id"), ["1"]);
    let late = fixture.post("/backfills/1:pause", json!({})).await.expect(409);
    assert_eq!(late.code(), "already-terminal");
    assert_eq!(fixture.get("/backfills/77").await.expect(404).code(), "no-such-backfill");
}

#[tokio::test]
async fn a_request_that_makes_no_sense_is_refused_at_its_place() {
    let fixture = Fixture::new().await;
    fixture.load(&[("daily.yaml", DAILY)]).await;
    let good = json!({"dag_id": "daily", "from_date": "2020-02-01", "to_date": "2020-02-07"});
    for (field, value) in [
        ("from_date", json!("")),
        ("to_date", json!("soon")),
        ("reprocess_behavior", json!("all")),
        ("max_active_runs", json!(0)),
        ("params", json!({"m": 1})),
        ("conf", json!([1])),
    ] {
        let mut body = good.clone();
        body[field] = value;
        let refused = fixture.post("/backfills", body).await.expect(422);
        assert_eq!(refused.code(), "validation-failed", "{field}");
    }
    let mut body = good;
    body["dag_id"] = json!("nothing");
    assert_eq!(fixture.post("/backfills", body).await.expect(404).code(), "no-such-dag");
}
