use crate::fixture::Fixture;
use fencepost_core::callback::Occasion;
use fencepost_core::time::Span;
use fencepost_store::query::callback::{Callback, due, insert};
use serde_json::{Value, json};

/// Puts a callback there that nobody tries any more.
async fn dead(fixture: &Fixture, id: &str, spec: Value) {
    let ended = fixture.now();
    let of = Callback {
        id: id.into(),
        dag_id: "sales".into(),
        run_id: "manual__1".into(),
        run_pk: 1,
        task_id: Some("load".into()),
        map_index: -1,
        token: None,
        occasion: Occasion::Failure,
        kind: "webhook".into(),
        target: "hooks.example".into(),
        spec,
        told: json!({ "dag_id": "sales", "occasion": "failure" }),
        state: "dead".into(),
        tries: 0,
        created_at: ended.minus(Span::from_hours(25)),
        since_at: ended.minus(Span::from_hours(25)),
        due_at: ended,
        ended_at: Some(ended),
        last_error: Some("it answered 503".into()),
    };
    let tx = fixture.cx.store.begin("dead").await.unwrap();
    insert(&tx, &[of]).await.unwrap();
    tx.commit().await.unwrap();
}

fn remarks(doctor: &Value) -> Vec<&str> {
    doctor["remarks"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn a_dead_callback_is_shown_by_doctor_and_gets_another_round() {
    let fixture = Fixture::new().await;
    let doctor = fixture.get("/doctor").await.expect(200).json;
    assert!(remarks(&doctor).is_empty(), "{doctor:#}");
    let spec = json!({ "webhook": { "url": "https://hooks.example/x" } });
    dead(&fixture, "cb-1", spec.clone()).await;
    dead(&fixture, "cb-2", spec).await;
    let doctor = fixture.get("/doctor").await.expect(200).json;
    assert_eq!(doctor["violations"], json!([]), "it is a warning");
    let told = remarks(&doctor);
    assert!(told[0].contains("2 callbacks are dead"), "{told:?}");
    assert!(told[0].contains("fencepost callbacks list --state dead"), "{told:?}");

    fixture.pass_time(Span::from_mins(1));
    let reason = json!({ "reason": "the receiver is back" });
    let after = fixture.post("/callbacks/cb-1:retry", reason.clone()).await.expect(200).json;
    assert_eq!((&after["id"], &after["state"]), (&json!("cb-1"), &json!("due")), "{after:#}");
    assert!(after["due_at"].is_string() && after["ended_at"].is_null(), "{after:#}");
    assert_eq!(fixture.get("/callbacks?state=dead").await.each("id"), ["cb-2"]);
    assert_eq!(fixture.get("/callbacks?state=due").await.each("id"), ["cb-1"]);
    let tx = fixture.cx.store.read("look").await.unwrap();
    let taken = due(&tx, "hooks.example", 10).await.unwrap();
    assert_eq!(taken.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["cb-1"]);
    drop(tx);
    let doctor = fixture.get("/doctor").await.expect(200).json;
    assert!(remarks(&doctor)[0].contains("1 callback is dead"), "{doctor:#}");

    // It is due already; there is no such one; and of what could not be rendered nothing can be sent.
    let again = fixture.post("/callbacks/cb-1:retry", reason.clone()).await;
    assert_eq!((again.status, again.code()), (409, "already-terminal"), "{:#}", again.json);
    fixture.post("/callbacks/cb-9:retry", reason.clone()).await.expect(404);
    dead(&fixture, "cb-3", json!({ "unrendered": "no such variable" })).await;
    let refused = fixture.post("/callbacks/cb-3:retry", reason).await;
    assert!((400..500).contains(&refused.status), "{:#}", refused.json);
    assert!(refused.text.contains("could not be rendered"), "{}", refused.text);
}
