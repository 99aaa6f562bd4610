use crate::fixture::{Fixture, SALES};
use fencepost_api::rest::routes;
use fencepost_core::time::Span;
use serde_json::{Value, json};

fn status<'a>(health: &'a Value, role: &str) -> &'a str {
    let list = health["components"].as_array().unwrap();
    let found = list.iter().find(|component| component["role"] == role);
    found.and_then(|component| component["status"].as_str()).unwrap_or("missing")
}

#[tokio::test]
async fn ready_means_that_everything_makes_progress() {
    let fixture = Fixture::new().await;
    fixture.with("", "GET", "/health/live").await.expect(200);
    let early = fixture.get("/health/ready").await.expect(503);
    assert_eq!(early.header("retry-after"), Some("1"));
    assert_eq!(
        (status(&early.json, "store"), status(&early.json, "scheduler")),
        ("ok", "degraded")
    );

    fixture.worker().await;
    fixture.health.lock().unwrap().last_turn_at = Some(fixture.now());
    let well = fixture.get("/health/ready").await.expect(200).json;
    assert_eq!((&well["status"], &well["version"]), (&json!("ok"), &json!("1.2.3")), "{well:#}");

    fixture.pass_time(Span::from_mins(5));
    let stalled = fixture.get("/health/ready").await.expect(503).json;
    assert_eq!((&stalled["status"], status(&stalled, "reaper")), (&json!("down"), "down"));

    fixture.health.lock().unwrap().last_turn_at = Some(fixture.now());
    fixture.health.lock().unwrap().failing.insert("dispatcher", "no space in /secret".into());
    let failing = fixture.get("/health/ready").await.expect(503).json;
    assert_eq!((status(&failing, "dispatcher"), status(&failing, "reaper")), ("degraded", "ok"));
    assert!(failing.to_string().contains("/secret"));
    let open = fixture.with("none", "GET", "/health/ready").await.expect(503).json;
    assert!(!open.to_string().contains("/secret"), "details are for those who are let in");
    let doctor = fixture.get("/doctor").await.expect(200).json;
    assert!(doctor["remarks"][0].as_str().unwrap().contains("dispatcher"), "{doctor:#}");

    fixture.health.lock().unwrap().failing.clear();
    *fixture.trouble.lock().unwrap() = Some("the disk is full".into());
    let full = fixture.get("/health/ready").await.expect(503).json;
    assert_eq!(status(&full, "worker"), "degraded");
    *fixture.trouble.lock().unwrap() = None;
    fixture.points.fail("health:begin", 1);
    let down = fixture.get("/health/ready").await.expect(503).json;
    assert_eq!((&down["status"], status(&down, "store")), (&json!("down"), "down"));
}

#[tokio::test]
async fn version_and_configuration_are_told() {
    let fixture = Fixture::new().await;
    let version = fixture.get("/version").await.expect(200).json;
    assert_eq!(version["installation_id"], "test-installation");
    assert_eq!((&version["epoch"], &version["api"]), (&json!(1), &json!("v1")));
    let config = fixture.get("/config").await;
    assert_eq!(config.each("key"), ["server.listen", "worker.slots"]);
    let first = fixture.get("/config?limit=1").await;
    let cursor = first.json["next_cursor"].as_str().unwrap();
    let rest = fixture.get(&format!("/config?limit=1&cursor={cursor}")).await;
    assert_eq!(rest.each("key"), ["worker.slots"]);
}

#[tokio::test]
async fn the_description_has_every_route_with_its_method_and_security() {
    let fixture = Fixture::new().await;
    let document = fixture.with("", "GET", "/openapi.json").await.expect(200).json;
    assert_eq!(document["openapi"], "3.1.0");
    let mut described = 0;
    for route in routes::ALL {
        let method = route.method.as_str().to_lowercase();
        let operation = &document["paths"][format!("/api/v1{}", route.path)][&method];
        assert_eq!(operation["operationId"], route.name);
        let public = route.permission == routes::Permission::Public;
        assert_eq!(operation["security"] == json!([]), public, "{}", route.name);
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path = parameters.iter().filter(|p| p["in"] == "path").count();
        assert_eq!(in_path, route.path.matches('{').count(), "{}", route.name);
        described += 1;
    }
    let paths = document["paths"].as_object().unwrap();
    let count: usize = paths.values().map(|path| path.as_object().unwrap().len()).sum();
    assert_eq!(count, described);
    assert!(
        document["paths"]["/api/v1/dags/{dag_id}/runs"]["post"]["responses"]["202"].is_object()
    );
}

#[tokio::test]
async fn pools_are_made_changed_used_and_deleted() {
    let fixture = Fixture::new().await;
    let new = fixture.send("PUT", "/pools/warehouse", json!({"description": "x"})).await;
    assert_eq!((new.status, new.code()), (422, "validation-failed"));
    let body = json!({"slots": 1, "description": "connections"});
    fixture.send("PUT", "/pools/warehouse", body).await.expect(200);
    let changed = fixture.send("PUT", "/pools/warehouse", json!({"slots": 2})).await.expect(200);
    assert_eq!(
        (&changed.json["slots"], &changed.json["description"]),
        (&json!(2), &json!("connections"))
    );
    let described = fixture.send("PUT", "/pools/warehouse", json!({"description": ""})).await;
    assert_eq!(described.expect(200).json["slots"], 2);
    fixture.send("PUT", "/pools/..", json!({"slots": 1})).await.expect(422);
    fixture.send("PUT", "/pools/x", json!({"slots": -1})).await.expect(422);

    let dag = "tasks:\n  a: {run: echo, pool: warehouse, pool_slots: 2}\n  b: {run: echo, pool: warehouse}\n";
    fixture.load(&[("p.yaml", dag)]).await;
    fixture.post("/dags/p/runs", json!({"run_id": "r"})).await.expect(202);
    fixture.turn().await;
    let used = fixture.get("/pools/warehouse").await.expect(200).json;
    assert_eq!((&used["used_slots"], &used["waiting"]), (&json!(2), &json!(1)), "{used:#}");
    assert_eq!(fixture.delete("/pools/warehouse").await.expect(409).code(), "pool-in-use");
    assert_eq!(fixture.delete("/pools/default_pool").await.expect(409).code(), "pool-in-use");
    assert_eq!(fixture.delete("/pools/none").await.expect(404).code(), "no-such-pool");
    fixture.post("/dags/p/runs/r:cancel", json!({})).await.expect(200);
    fixture.delete("/pools/warehouse").await.expect(204);
    assert_eq!(fixture.get("/pools").await.each("name"), ["default_pool"]);
}

#[tokio::test]
async fn names_with_odd_characters_are_only_names() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    let quote = "%27%3B%20DROP%20TABLE%20run%3B--";
    for path in [
        format!("/dags/{quote}"),
        format!("/dags/sales/runs/{quote}"),
        format!("/pools/{quote}"),
        format!("/attempts/{quote}"),
        format!("/dags?tag={quote}"),
        format!("/runs?run_id_prefix={quote}"),
        format!("/dags/sales/runs/{}", "%F0%9F%92%A5".repeat(200)),
    ] {
        let reply = fixture.get(&path).await;
        assert!(matches!(reply.status, 200 | 404), "{path}: {:#}", reply.json);
    }
    fixture.post("/dags/sales/runs", json!({})).await.expect(202);
}
