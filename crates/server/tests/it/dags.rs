use crate::fixture::{Fixture, SALES};
use fencepost_core::time::Span;
use serde_json::json;

const HOURLY: &str = "
schedule: '@hourly'
catchup: true
start_date: 2026-09-22
is_paused_upon_creation: true
tags: [other]
tasks: {a: {run: echo}}
";

#[tokio::test]
async fn lists_have_filters_and_details_what_the_file_said() {
    let fixture = Fixture::new().await;
    let manual = "tasks: {a: {run: echo}}";
    fixture.load(&[("sales.yaml", SALES), ("hourly.yaml", HOURLY), ("manual.yaml", manual)]).await;
    assert_eq!(fixture.get("/dags").await.each("dag_id"), ["hourly", "manual", "sales"]);
    assert_eq!(fixture.get("/dags?tag=sales").await.each("dag_id"), ["sales"]);
    assert_eq!(fixture.get("/dags?is_paused=true").await.each("dag_id"), ["hourly"]);
    let first = fixture.get("/dags?limit=2").await;
    let cursor = first.json["next_cursor"].as_str().unwrap();
    let rest = fixture.get(&format!("/dags?limit=2&cursor={cursor}")).await;
    assert_eq!(
        (rest.each("dag_id"), &rest.json["next_cursor"]),
        (vec!["sales".to_owned()], &json!(null))
    );

    let sales = fixture.get("/dags/sales").await.expect(200).json;
    assert_eq!(
        (&sales["timezone"], &sales["schedule"]),
        (&json!("Europe/Berlin"), &json!("0 5 * * *"))
    );
    assert_eq!((&sales["catchup"], &sales["timetable"]), (&json!("newest"), &json!("trigger")));
    assert_eq!(sales["tasks"][0]["depends_on"], json!(["load"]));
    assert_eq!(sales["tasks"][0]["is_mapped"], true);
    assert_eq!(sales["params"][0]["schema"]["type"], "string");
    let manual = fixture.get("/dags/manual").await.expect(200).json;
    assert_eq!((&manual["schedule"], &manual["next_due_at"]), (&json!(null), &json!(null)));

    fixture.load(&[("hourly.yaml", HOURLY)]).await;
    assert_eq!(fixture.get("/dags").await.each("dag_id"), ["hourly"]);
    let all = fixture.get("/dags?inactive=true").await;
    assert_eq!(all.each("is_active"), ["true", "false", "false"]);
    let gone = fixture.post("/dags/sales/runs", json!({})).await.expect(409);
    assert_eq!(gone.code(), "inactive-dag");
}

#[tokio::test]
async fn versions_are_listed_newest_first_and_shown_as_they_were() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    fixture.post("/dags/sales/runs", json!({})).await.expect(202);
    let changed = SALES.replace("Load orders", "Load all orders");
    fixture.load(&[("sales.yaml", &changed)]).await;
    fixture.load(&[("sales.yaml", &changed)]).await;
    let list = fixture.get("/dags/sales/versions").await;
    assert_eq!(list.each("version"), ["2", "1"]);
    assert_eq!(list.each("is_current"), ["true", "false"]);
    assert_eq!(list.each("runs"), ["0", "1"]);
    let latest = fixture.get("/dags/sales/versions/latest").await.expect(200).json;
    assert_eq!(latest["source"], changed.as_str());
    let old = fixture.get("/dags/sales/versions/1").await.expect(200).json;
    assert_eq!(old["source"], SALES);
    for version in ["3", "0", "x", "-1"] {
        let none = fixture.get(&format!("/dags/sales/versions/{version}")).await.expect(404);
        assert_eq!(none.code(), "no-such-version");
    }
    let run = fixture.get("/runs").await;
    assert_eq!(run.each("version"), ["1"]);
}

#[tokio::test]
async fn files_that_cannot_be_read_are_listed_with_their_mistakes() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    let broken = SALES.replace("depends_on: [load]", "depnds_on: [load]");
    fixture.load(&[("sales.yaml", &broken), ("other.yaml", "tasks: 5")]).await;
    let errors = fixture.get("/import-errors").await;
    assert_eq!(errors.each("file"), ["other.yaml", "sales.yaml"]);
    assert_eq!(errors.each("dag_id"), ["null", "sales"]);
    let found = &errors.items()[1]["diagnostics"][0];
    assert_eq!((&found["code"], &found["severity"]), (&json!("unknown-key"), &json!("error")));
    assert!(found["line"].as_u64().unwrap() > 10, "{found:#}");
    let sales = fixture.get("/dags/sales").await.expect(200).json;
    assert_eq!((&sales["has_import_error"], &sales["version"]), (&json!(true), &json!(1)));
}

#[tokio::test]
async fn unpausing_says_first_what_starts_at_once() {
    let fixture = Fixture::new().await;
    fixture.load(&[("hourly.yaml", HOURLY)]).await;
    let unpause = json!({"is_paused": false});
    let effect =
        fixture.send("PATCH", "/dags/hourly?dry_run=true", unpause.clone()).await.expect(200).json;
    // It is 05:00: the slots of 00:00 to 05:00 are due.
    assert_eq!(
        (&effect["due_runs"], &effect["unchanged"]),
        (&json!(6), &json!(false)),
        "{effect:#}"
    );
    assert_eq!(effect["first_logical_date"], "2026-09-22T00:00:00.000Z");
    assert_eq!(effect["last_logical_date"], "2026-09-22T05:00:00.000Z");
    assert_eq!(fixture.get("/dags/hourly").await.json["is_paused"], true);
    fixture.send("PATCH", "/dags/hourly", unpause.clone()).await.expect(200);
    fixture.turn().await;
    let runs = fixture.get("/dags/hourly/runs?run_type=scheduled").await;
    assert_eq!(runs.items().len(), 6);
    assert_eq!(runs.each("logical_date")[0], "2026-09-22T05:00:00.000Z");
    let dag = fixture.get("/dags/hourly").await.json;
    assert_eq!((&dag["active_runs"], dag["last_runs"].as_array().unwrap().len()), (&json!(6), 6));
    let again = fixture.send("PATCH", "/dags/hourly", unpause).await.expect(200).json;
    assert_eq!((&again["unchanged"], &again["due_runs"]), (&json!(true), &json!(0)));
    fixture.send("PATCH", "/dags/hourly", json!({"is_paused": true})).await.expect(200);
    assert_eq!(fixture.get("/dags?is_paused=true").await.each("dag_id"), ["hourly"]);
}

#[tokio::test]
async fn coming_slots_are_told_per_dag_and_for_all() {
    let fixture = Fixture::new().await;
    let manual = "tasks: {a: {run: echo}}";
    fixture.load(&[("sales.yaml", SALES), ("hourly.yaml", HOURLY), ("manual.yaml", manual)]).await;
    fixture.pass_time(Span::from_mins(1));
    let next = fixture.get("/dags/hourly/next?n=2").await;
    assert_eq!(next.each("due_at"), ["2026-09-22T06:00:00.000Z", "2026-09-22T07:00:00.000Z"]);
    assert_eq!(fixture.get("/dags/manual/next").await.items().len(), 0);
    assert_eq!(fixture.get("/dags/hourly/next").await.items().len(), 5);
    let all = fixture.get("/schedule").await;
    assert_eq!(all.each("dag_id"), ["hourly", "sales"]);
    // 05:00 in Berlin is 03:00 UTC, so the next one is tomorrow's.
    assert_eq!(all.items()[1]["next"]["due_at"], "2026-09-23T03:00:00.000Z");
    let first = fixture.get("/schedule?limit=1").await;
    let cursor = first.json["next_cursor"].as_str().unwrap();
    let rest = fixture.get(&format!("/schedule?limit=1&cursor={cursor}")).await;
    assert_eq!(rest.each("dag_id"), ["sales"]);
}
