use crate::fixture::Fixture;
use fencepost_server::auth::ensure_owner_token;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

async fn owner(fixture: &Fixture) -> String {
    let file = fixture.home.path().join("token");
    ensure_owner_token(&fixture.cx, &file).await.unwrap();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

#[tokio::test]
async fn the_owners_file_is_kept_while_it_is_good_and_mended_when_it_is_not() {
    let fixture = Fixture::new().await;
    let file = fixture.home.path().join("token");
    let first = fixture.token.clone();
    assert_eq!(owner(&fixture).await, first);

    std::fs::remove_file(&file).unwrap();
    let second = owner(&fixture).await;
    assert_ne!(second, first);
    fixture.with(&second, "GET", "/tokens").await.expect(200);
    // The lost one is worthless.
    fixture.with(&first, "GET", "/tokens").await.expect(401);

    std::fs::write(&file, "fp_nonsense").unwrap();
    let third = owner(&fixture).await;
    assert_ne!(third, "fp_nonsense");

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let fourth = owner(&fixture).await;
    assert_ne!(fourth, third, "others could have read it");
    fixture.with(&third, "GET", "/tokens").await.expect(401);
    fixture.with(&fourth, "GET", "/tokens").await.expect(200);

    // A viewer's token in the file is no owner's.
    let made = fixture.with(&fourth, "GET", "/tokens").await.expect(200);
    assert_eq!(made.items().len(), 4);
    let left: Vec<String> = std::fs::read_dir(fixture.home.path())
        .unwrap()
        .map(|f| format!("{:?}", f.unwrap().file_name()))
        .collect();
    assert!(!left.iter().any(|name| name.contains(".new")), "{left:?}");
}

#[tokio::test]
async fn tokens_are_listed_without_their_secrets_and_with_their_use() {
    let fixture = Fixture::new().await;
    let body = json!({"role": "operator", "name": "ci", "expires_in_secs": 3600});
    let made = fixture.post("/tokens", body).await.expect(201).json;
    assert_eq!((&made["role"], &made["name"]), (&json!("operator"), &json!("ci")));
    assert!(made["expires_at"].as_str().unwrap().starts_with("2026-09-22T06:00:0"), "{made:#}");
    let list = fixture.get("/tokens").await;
    assert!(!list.json.to_string().contains(made["token"].as_str().unwrap()));
    assert_eq!(list.each("name"), ["owner", "ci"]);
    assert_eq!(list.items()[1]["last_used_at"], Value::Null);
    fixture.with(made["token"].as_str().unwrap(), "GET", "/dags").await.expect(200);
    assert!(fixture.get("/tokens").await.items()[1]["last_used_at"].is_string());
    let created = fixture.get("/events?kind=token_created").await;
    assert_eq!(created.each("actor"), ["owner"]);
    for bad in [
        json!({"role": "king"}),
        json!({}),
        json!({"role": "viewer", "expires_in_secs": 0}),
        json!({"role": "viewer", "expires_in_secs": -5}),
        json!({"role": "viewer", "name": "a\nb"}),
        json!({"role": "viewer", "name": "x".repeat(300)}),
    ] {
        fixture.post("/tokens", bad).await.expect(422);
    }
    fixture
        .post("/tokens", json!({"role": "viewer", "expires_in_secs": u64::MAX}))
        .await
        .expect(201);
}

#[tokio::test]
async fn the_last_admin_cannot_lock_everybody_out() {
    let fixture = Fixture::new().await;
    let list = fixture.get("/tokens").await;
    let id = &list.each("id")[0];
    let refused = fixture.delete(&format!("/tokens/{id}")).await.expect(409);
    assert_eq!(refused.code(), "last-admin-token");
    fixture.post("/tokens", json!({"role": "operator"})).await.expect(201);
    fixture.delete(&format!("/tokens/{id}")).await.expect(409);
    let admin = fixture.post("/tokens", json!({"role": "admin"})).await.expect(201).json;
    fixture.delete(&format!("/tokens/{id}")).await.expect(204);
    fixture.get("/tokens").await.expect(401);
    let token = admin["token"].as_str().unwrap();
    fixture.with(token, "DELETE", &format!("/tokens/{id}")).await.expect(204);
    let unknown = fixture.with(token, "DELETE", "/tokens/none").await.expect(404);
    assert_eq!(unknown.code(), "no-such-token");
}
