//! Assets over the API.

use crate::fixture::Fixture;
use serde_json::json;

const PRODUCER: &str = "tasks: {a: {run: echo, outlets: ['s3://sales/orders', b]}}\n";
const CONSUMER: &str = "schedule: {assets: ['s3://sales/orders', b]}\ntasks: {a: {run: echo}}\n";
const ORDERS: &str = "/assets/s3:%2F%2Fsales%2Forders";

#[tokio::test]
async fn assets_are_listed_shown_and_emitted_by_those_who_may() {
    let fixture = Fixture::new().await;
    fixture.load(&[("p.yaml", PRODUCER), ("c.yaml", CONSUMER)]).await;
    let list = fixture.get("/assets?limit=1").await.expect(200);
    assert_eq!(list.each("name"), ["b"]);
    let next = list.json["next_cursor"].as_str().unwrap();
    let rest = fixture.get(&format!("/assets?cursor={next}")).await.expect(200);
    assert_eq!(rest.each("name"), ["s3://sales/orders"]);
    assert_eq!(
        (&rest.json["items"][0]["producers"], &rest.json["items"][0]["consumers"]),
        (&json!(1), &json!(1))
    );

    let emitted =
        fixture.post(&format!("{ORDERS}/events"), json!({ "extra": { "rows": 3 } })).await;
    let made = emitted.expect(201).json;
    assert_eq!((&made["asset"], &made["source"]), (&json!("s3://sales/orders"), &json!(null)));
    assert_eq!(made["queued_for"], json!([{ "dag_id": "c", "run_id": null }]));
    let shown = fixture.get(ORDERS).await.expect(200).json;
    assert_eq!(shown["consumers"], json!([{ "dag_id": "c", "queued": 1 }]));
    assert_eq!(shown["producers"], json!([{ "dag_id": "p", "task_id": "a" }]));
    fixture.post("/assets/b/events", json!({})).await.expect(201);
    fixture.turn().await;
    let runs = fixture.get("/dags/c/runs?run_type=asset_triggered").await.expect(200);
    assert_eq!(runs.each("run_id").len(), 1);
    let events = fixture.get("/assets/events?asset=s3://sales/orders").await.expect(200);
    let run = &runs.json["items"][0]["run_id"];
    assert_eq!(&events.json["items"][0]["queued_for"][0]["run_id"], run);
    assert_eq!(
        fixture.get("/assets/events").await.expect(200).each("asset"),
        ["b", "s3://sales/orders"]
    );

    assert_eq!(fixture.get("/assets/ordres").await.expect(404).code(), "no-such-asset");
    let unknown = fixture.post("/assets/ordres/events", json!({})).await;
    assert_eq!(unknown.expect(404).code(), "no-such-asset");
    let wrong = fixture.post("/assets/b/events", json!({ "extra": 5 })).await;
    assert_eq!(wrong.expect(422).code(), "validation-failed");
}
