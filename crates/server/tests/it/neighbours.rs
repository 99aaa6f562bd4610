//! Clear and mark in the runs before and after: the same tasks, each run by its own version.

use crate::fixture::{Fixture, text};
use serde_json::{Value, json};

const DAILY: &str = "dag_id: daily\ntasks:\n  a: {noop: true}\n  b: {noop: true, depends_on: [a]}\n  c: {noop: true, depends_on: [b]}\n";
const OLD: &str = "dag_id: daily\ntasks:\n  b: {noop: true}\n";

/// Four days, of which the first ran without `a` and `c`, and a run that is of no day.
async fn days() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.load(&[("daily.yaml", OLD)]).await;
    for day in 1..=4 {
        let date = format!("2026-01-0{day}T00:00:00Z");
        let body = json!({"run_id": format!("d{day}"), "logical_date": date});
        fixture.post("/dags/daily/runs", body).await.expect(202);
        fixture.turn().await;
        fixture.load(&[("daily.yaml", DAILY)]).await;
    }
    let body = json!({"run_id": "no_day", "logical_date": "none"});
    fixture.post("/dags/daily/runs", body).await.expect(202);
    fixture.turn().await;
    for run in ["d1", "d2", "d3", "d4", "no_day"] {
        let found = fixture.get(&format!("/dags/daily/runs/{run}")).await.json;
        assert_eq!(found["state"], "success", "{found:#}");
    }
    fixture
}

/// `d2/b`, of what would change or has changed.
fn shown(plan: &Value) -> Vec<String> {
    let changes = plan["changes"].as_array().unwrap();
    changes.iter().map(|c| format!("{}/{}", text(&c["run_id"]), text(&c["task_id"]))).collect()
}

async fn clear(fixture: &Fixture, query: &str, body: Value) -> Vec<String> {
    let path = format!("/dags/daily/runs/d2:clear{query}");
    shown(&fixture.post(&path, body).await.expect(200).json)
}

#[tokio::test]
async fn clear_reaches_into_the_past_and_the_future() {
    let fixture = days().await;
    let dry = "?dry_run=true";
    let past = json!({"tasks": ["b"], "past": true});
    assert_eq!(clear(&fixture, dry, past).await, ["d2/b", "d1/b"]);
    let future = json!({"tasks": ["b"], "future": true, "downstream": true});
    let expected = ["d2/b", "d2/c", "d3/b", "d3/c", "d4/b", "d4/c"];
    assert_eq!(clear(&fixture, dry, future.clone()).await, expected);
    // What the oldest version does not have is not there.
    let both = json!({"tasks": ["c"], "past": true, "future": true});
    assert_eq!(clear(&fixture, dry, both).await, ["d2/c", "d3/c", "d4/c"]);
    assert_eq!(clear(&fixture, "", future.clone()).await, expected);
    for (run, state) in [("d1", "success"), ("d2", "queued"), ("d3", "queued"), ("d4", "queued")] {
        let found = fixture.get(&format!("/dags/daily/runs/{run}")).await.json;
        assert_eq!(found["state"], state, "{found:#}");
    }
    fixture.turn().await;
    // Made again it changes what there is to change, and no more.
    assert_eq!(clear(&fixture, "", future).await, expected);
    fixture.turn().await;
    let found = fixture.get("/dags/daily/runs/d4").await.json;
    assert_eq!(found["state"], "success", "{found:#}");
}

#[tokio::test]
async fn mark_reaches_there_too() {
    let fixture = days().await;
    let mark = "/dags/daily/runs/d3/tasks/b:mark";
    let body = json!({"state": "failed", "past": true, "upstream": true, "reason": "bad source"});
    let done = fixture.post(mark, body).await.expect(200).json;
    assert_eq!(shown(&done), ["d3/b", "d3/a", "d2/b", "d2/a", "d1/b"]);
    for (run, state) in [("d1", "failed"), ("d2", "failed"), ("d3", "failed"), ("d4", "success")] {
        let task = fixture.get(&format!("/dags/daily/runs/{run}/tasks/b")).await.json;
        assert_eq!(task["state"], state, "{task:#}");
    }
}

#[tokio::test]
async fn a_run_of_no_date_has_no_past() {
    let fixture = days().await;
    for (key, pointer) in [("past", "/past"), ("future", "/future")] {
        let body = json!({"tasks": ["b"], key: true});
        let wrong = fixture.post("/dags/daily/runs/no_day:clear", body).await.expect(422).json;
        assert_eq!(wrong["errors"][0]["pointer"], pointer, "{wrong:#}");
    }
    let plain = json!({"tasks": ["b"]});
    let done = fixture.post("/dags/daily/runs/no_day:clear", plain).await.expect(200).json;
    assert_eq!(shown(&done), ["no_day/b"]);
}
