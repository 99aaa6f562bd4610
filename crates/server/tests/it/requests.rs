use crate::fixture::{Fixture, SALES};
use axum::body::Body;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Method, path, headers, body; status, code, and what the text says.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, u16, &'a str, &'a str);

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn what_cannot_be_read_is_named_with_its_place() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    let bearer = format!("Bearer {}", fixture.token);
    let auth = ("authorization", bearer.as_str());
    let runs = "/api/v1/dags/sales/runs";
    let large = "x".repeat(1 << 20) + "yy";
    let deep = "[".repeat(100_000);
    let cases: &[Case<'_>] = &[
        ("GET", "/api/v1/nothing", &[auth], "", 404, "no-such-route", "/api/v1/nothing"),
        ("GET", "/", &[auth], "", 404, "no-such-route", ""),
        ("GET", "/api/v1", &[auth], "", 404, "no-such-route", ""),
        ("GET", "/api/v1/dags/", &[auth], "", 404, "no-such-route", ""),
        ("GET", "/api/v1/dags/%zz", &[auth], "", 404, "no-such-route", ""),
        ("GET", "/api/v1/dags/%ff", &[auth], "", 404, "no-such-route", ""),
        ("DELETE", "/api/v1/dags", &[auth], "", 405, "method-not-allowed", "GET"),
        ("BREW", "/api/v1/dags", &[auth], "", 405, "method-not-allowed", "GET"),
        ("GET", "/api/v1/dags/a%00b", &[auth], "", 400, "bad-request", "NUL"),
        ("GET", "/api/v1/dags?tag=a%00b", &[auth], "", 400, "bad-request", "NUL"),
        ("GET", "/api/v1/dags?limit=many", &[auth], "", 400, "bad-request", "limit"),
        ("GET", "/api/v1/dags?cursor=zz", &[auth], "", 400, "bad-request", "cursor"),
        ("GET", "/api/v1/dags/nope", &[auth], "", 404, "no-such-dag", "nope"),
        ("GET", "/api/v1/runs?state=sad", &[auth], "", 422, "validation-failed", "?state"),
        ("GET", "/api/v1/runs?from=never", &[auth], "", 422, "validation-failed", "?from"),
        ("GET", "/api/v1/attempts/x", &[auth], "", 404, "no-such-attempt", "x"),
        ("GET", "/api/v1/events?kind=%27--", &[auth], "", 422, "validation-failed", "?kind"),
        ("POST", runs, &[auth, JSON], "{\"conf\": [", 400, "bad-request", "line 1 column 10"),
        ("POST", runs, &[auth, JSON], "\u{1}\u{2}", 400, "bad-request", "line 1 column 1"),
        ("POST", runs, &[auth, JSON], &deep, 400, "bad-request", "recursion"),
        ("POST", runs, &[auth, JSON], "{\"run_id\": 5}", 422, "validation-failed", "/run_id"),
        ("POST", runs, &[auth, JSON], "{\"conf\": 5}", 422, "validation-failed", "/conf"),
        ("POST", runs, &[auth, JSON], "[]", 422, "validation-failed", ""),
        ("POST", runs, &[auth, JSON], &large, 413, "too-large", ""),
        ("POST", runs, &[auth], "{}", 415, "unsupported-media-type", "Content-Type"),
        (
            "POST",
            runs,
            &[auth, ("content-type", "text/plain")],
            "{}",
            415,
            "unsupported-media-type",
            "",
        ),
        ("POST", runs, &[auth, JSON, ("idempotency-key", "a b")], "{}", 400, "bad-request", "Key"),
    ];
    for (method, path, headers, body, status, code, says) in cases {
        let reply = fixture.call(method, path, headers, Body::from((*body).to_owned())).await;
        let at = format!("{method} {path} {}: {:#}", &body[..body.len().min(40)], reply.json);
        assert_eq!((reply.status, reply.code()), (*status, *code), "{at}");
        let text = reply.json["detail"].as_str().unwrap();
        assert!(text.contains(says) || says.is_empty(), "{at}");
        assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{at}");
        assert_eq!(reply.json["instance"], path.split('?').next().unwrap(), "{at}");
    }
}

#[tokio::test]
async fn a_nul_in_a_body_is_refused_at_its_place() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    for (body, pointer) in [
        (json!({"note": "a\u{0}b"}), "/note"),
        (json!({"conf": {"list": [1, "\u{0}"]}}), "/conf/list/1"),
        (json!({"conf": {"a/b\u{0}": 1}}), "/conf/a~1b␀"),
    ] {
        let reply = fixture.post("/dags/sales/runs", body).await.expect(422);
        assert_eq!(reply.json["errors"][0]["pointer"], pointer, "{:#}", reply.json);
    }
    assert_eq!(fixture.get("/dags/sales/runs").await.items().len(), 0);
}

#[tokio::test]
async fn all_mistakes_in_params_are_reported_at_once() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    let body = json!({"params": {"day": 5, "dya": "x", "rows": 3}});
    let reply = fixture.post("/dags/sales/runs", body).await.expect(422);
    let pointers: Vec<&Value> =
        reply.json["errors"].as_array().unwrap().iter().map(|e| &e["pointer"]).collect();
    assert_eq!(pointers, ["/params/day", "/params/dya"]);
    assert!(reply.json["errors"][1]["suggestion"].as_str().unwrap().contains("day"));
    let body = json!({"logical_date": "tomorrow"});
    fixture.post("/dags/sales/runs", body).await.expect(422);
    for run_id in ["../x", "", "a b", "@latest", &"x".repeat(251)] {
        let reply = fixture.post("/dags/sales/runs", json!({"run_id": run_id})).await;
        assert_eq!((reply.status, reply.code()), (422, "validation-failed"), "{run_id}");
    }
}

#[tokio::test]
async fn every_answer_is_for_its_caller_alone() {
    let fixture = Fixture::new().await;
    for path in ["/dags", "/dags/nope", "/nope", "/health/live"] {
        let reply = fixture.get(path).await;
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(reply.header("cache-control"), Some("no-store"), "{path}");
    }
    let reply = fixture.with(&fixture.token, "DELETE", "/dags").await;
    assert_eq!(reply.header("allow"), Some("GET"));
    let head = fixture.with(&fixture.token, "HEAD", "/dags").await;
    assert_eq!(head.status, 200);
}

#[tokio::test]
async fn a_store_that_does_not_answer_is_said_to_be_unavailable() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    fixture.points.fail("trigger:begin", 1);
    let reply = fixture.post("/dags/sales/runs", json!({})).await;
    assert_eq!((reply.status, reply.code()), (503, "unavailable"));
    assert_eq!(reply.header("retry-after"), Some("1"));
    fixture.points.fail("authenticate:begin", 1);
    fixture.get("/dags").await.expect(503);
    fixture.get("/dags").await.expect(200);
    fixture.post("/dags/sales/runs", json!({})).await.expect(202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn what_was_begun_is_done_though_its_caller_hangs_up() {
    let fixture = Arc::new(Fixture::new().await);
    fixture.load(&[("sales.yaml", SALES)]).await;
    let (reached, open) = fixture.points.close("trigger:run_insert");
    let caller = tokio::spawn({
        let fixture = Arc::clone(&fixture);
        async move { fixture.post("/dags/sales/runs", json!({"run_id": "r"})).await }
    });
    let wait = move || reached.recv_timeout(Duration::from_secs(30));
    tokio::task::spawn_blocking(wait).await.unwrap().unwrap();
    caller.abort();
    open.send(()).unwrap();
    assert!(caller.await.unwrap_err().is_cancelled());
    let found = async {
        while fixture.get("/dags/sales/runs/r").await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), found).await.unwrap();
}
