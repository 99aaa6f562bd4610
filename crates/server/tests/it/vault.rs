//! Variables, connections and secrets over REST: sealed in the store, masked but to who may see them.

use crate::fixture::Fixture;
use fencepost_store::query::vault::{self, Entry};
use serde_json::{Value, json};

async fn token(fixture: &Fixture, role: &str) -> String {
    let made = fixture.post("/tokens", json!({ "role": role })).await.expect(201).json;
    made["token"].as_str().unwrap().to_owned()
}

async fn row(fixture: &Fixture, kind: &str, name: &str) -> Entry {
    let tx = fixture.cx.store.read("look").await.unwrap();
    vault::get(&tx, kind, name).await.unwrap().unwrap()
}

#[tokio::test]
async fn what_is_set_is_sealed_and_masked_until_an_admin_asks_which_is_recorded() {
    let fixture = Fixture::new().await;
    let text = "hunter22-of-the-warehouse";
    for path in ["/variables/dsn", "/secrets/dsn"] {
        let body = json!({ "value": text, "description": "of the warehouse" });
        let put = fixture.send("PUT", path, body).await.expect(200).json;
        assert_eq!((&put["value"], &put["masked"]), (&json!("***"), &json!(true)), "{path}");
        assert_eq!(put["description"], "of the warehouse");
        let shown = fixture.get(path).await.expect(200).json;
        assert!(!shown.to_string().contains(text), "{shown:#}");
        let told = fixture.get(&format!("{path}?reveal=true")).await.expect(200).json;
        assert_eq!(told["value"], text, "{path}");
    }
    for kind in ["variable", "secret"] {
        assert!(!row(&fixture, kind, "dsn").await.sealed.contains(text));
    }
    assert_eq!(fixture.get("/secrets").await.items()[0]["value"], Value::Null, "names only");
    assert_eq!(fixture.get("/variables").await.items()[0]["value"], "***");
    let seen = fixture.get("/events?kind=secret_revealed").await;
    assert_eq!(seen.each("actor"), ["owner", "owner"]);
    let all = fixture.get("/events").await.json.to_string();
    assert!(!all.contains(text), "an event tells it");
}

#[tokio::test]
async fn only_roles_that_may_set_and_reveal() {
    let fixture = Fixture::new().await;
    let (viewer, operator) = (token(&fixture, "viewer").await, token(&fixture, "operator").await);
    fixture.send("PUT", "/secrets/a", json!({"value": "one-two-three"})).await.expect(200);
    fixture.with(&viewer, "GET", "/secrets").await.expect(200);
    fixture.with(&viewer, "GET", "/secrets/a").await.expect(200);
    for role in [&viewer, &operator] {
        for path in ["/secrets/a?reveal=true", "/secrets?reveal=true"] {
            fixture.with(role, "GET", path).await.expect(403);
        }
        fixture.with(role, "POST", "/secrets:rotate").await.expect(403);
    }
    fixture.with(&viewer, "DELETE", "/secrets/a").await.expect(403);
    fixture.with(&operator, "DELETE", "/secrets/a").await.expect(204);
    let gone = fixture.get("/secrets/a").await.expect(404);
    assert_eq!(gone.code(), "no-such-secret");
}

#[tokio::test]
async fn connections_are_read_from_uris_and_fields_and_shown_without_what_is_secret() {
    let fixture = Fixture::new().await;
    let uri = "postgres://ann:hunter22@127.0.0.1:1/sales?token=abcdefgh";
    let put =
        fixture.send("PUT", "/connections/db", json!({ "value": uri })).await.expect(200).json;
    assert_eq!(put["value"]["host"], "127.0.0.1");
    assert_eq!(put["value"]["password"], "***");
    assert!(!put.to_string().contains("hunter22") && !put.to_string().contains("abcdefgh"));
    let told = fixture.get("/connections/db?reveal=true").await.expect(200).json;
    assert_eq!(told["value"]["password"], "hunter22");
    // What a reveal shows can be put again.
    let again = json!({ "value": told["value"] });
    fixture.send("PUT", "/connections/copy", again).await.expect(200);
    let tested = fixture.post("/connections/db:test", json!({})).await.expect(200).json;
    assert_eq!(tested["ok"], false, "nothing listens on port 1: {tested:#}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    fixture.send("PUT", "/connections/web", json!({ "value": uri })).await.expect(200);
    let tested = fixture.post("/connections/web:test", json!({})).await.expect(200).json;
    assert_eq!(tested["ok"], true, "{tested:#}");
    for bad in
        [json!({"value": "no type"}), json!({"value": 3}), json!({}), json!({"value": {"prot": 1}})]
    {
        fixture.send("PUT", "/connections/bad", bad).await.expect(422);
    }
    fixture.send("PUT", "/connections/b%20d", json!({"value": "a://h"})).await.expect(422);
    let long = json!({ "value": "x".repeat(70_000) });
    fixture.send("PUT", "/variables/long", long).await.expect(422);
}

#[tokio::test]
async fn a_row_that_was_moved_or_sealed_elsewhere_says_so_and_hides_no_other() {
    let fixture = Fixture::new().await;
    fixture.send("PUT", "/variables/a", json!({"value": "first"})).await.expect(200);
    fixture.send("PUT", "/variables/b", json!({"value": "second"})).await.expect(200);
    let moved = Entry { name: "b".into(), ..row(&fixture, "variable", "a").await };
    let tx = fixture.cx.store.begin("move").await.unwrap();
    vault::set(&tx, &moved).await.unwrap();
    tx.commit().await.unwrap();
    let told = fixture.get("/variables/b?reveal=true").await.expect(409);
    assert_eq!(told.code(), "vault-closed");
    let list = fixture.get("/variables?reveal=true").await;
    assert_eq!(list.items()[0]["value"], "first");
    assert!(list.items()[1]["trouble"].as_str().unwrap().contains("altered"));
    let rotated = fixture.post("/secrets:rotate", json!({})).await.expect(200).json;
    assert_eq!(rotated["resealed"], 0, "the only key seals already");
}
