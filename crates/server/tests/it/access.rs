use crate::fixture::{Fixture, SALES};
use axum::body::Body;
use fencepost_api::rest::routes::{self, Method, Permission, Role};
use fencepost_core::time::Span;
use serde_json::json;

/// An address of a route whose names name nothing.
fn address(route: &routes::Route) -> String {
    let names = route.path.matches('{').count();
    route.url(&["nothing"; 4][..names])
}

async fn token_of(fixture: &Fixture, role: Role) -> String {
    let body = json!({ "role": role.as_str(), "name": role.as_str() });
    let made = fixture.post("/tokens", body).await.expect(201);
    made.json["token"].as_str().unwrap().to_owned()
}

async fn try_route(fixture: &Fixture, route: &routes::Route, token: Option<&str>) -> (u16, String) {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let body = if route.method == Method::Get { Body::empty() } else { Body::from("{}") };
    let reply = fixture.call(route.method.as_str(), &address(route), &headers, body).await;
    (reply.status, reply.code().to_owned())
}

#[tokio::test]
async fn no_route_answers_without_a_token_but_the_public_ones() {
    let fixture = Fixture::new().await;
    for route in routes::ALL {
        for token in [None, Some("fp_unknown"), Some("")] {
            let (status, code) = try_route(&fixture, route, token).await;
            if route.permission == Permission::Public {
                assert!(matches!(status, 200 | 503), "{}: {status}", route.name);
            } else {
                assert_eq!((status, code.as_str()), (401, "unauthenticated"), "{}", route.name);
            }
        }
    }
}

#[tokio::test]
async fn every_route_has_a_handler_and_asks_for_its_permission() {
    let fixture = Fixture::new().await;
    for role in Role::ALL {
        let token = token_of(&fixture, role).await;
        for route in routes::ALL {
            let (status, code) = try_route(&fixture, route, Some(&token)).await;
            let at = format!("{} as {}: {status} {code}", route.name, role.as_str());
            if role.allows(route.permission) {
                assert!(!matches!(status, 401 | 403 | 405 | 500), "{at}");
                assert_ne!(code, "no-such-route", "{at}");
            } else {
                assert_eq!((status, code.as_str()), (403, "forbidden"), "{at}");
            }
        }
    }
}

#[tokio::test]
async fn an_expired_or_revoked_token_lets_nobody_in() {
    let fixture = Fixture::new().await;
    fixture.load(&[("sales.yaml", SALES)]).await;
    let body = json!({"role": "viewer", "expires_in_secs": 60});
    let made = fixture.post("/tokens", body).await.expect(201).json;
    let token = made["token"].as_str().unwrap();
    fixture.with(token, "GET", "/dags/sales").await.expect(200);
    fixture.pass_time(Span::from_secs(61));
    let late = fixture.with(token, "GET", "/dags/sales").await.expect(401);
    assert!(late.json["detail"].as_str().unwrap().contains("expired"), "{:#}", late.json);
    assert_eq!(late.header("www-authenticate"), Some("Bearer"));

    let made = fixture.post("/tokens", json!({"role": "viewer"})).await.expect(201).json;
    let (token, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
    fixture.with(token, "GET", "/dags/sales").await.expect(200);
    fixture.delete(&format!("/tokens/{id}")).await.expect(204);
    let late = fixture.with(token, "GET", "/dags/sales").await.expect(401);
    assert!(late.json["detail"].as_str().unwrap().contains("revoked"), "{:#}", late.json);
}
