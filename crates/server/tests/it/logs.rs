use crate::fixture::{Fixture, Reply, SALES};
use fencepost_core::time::Span;
use serde_json::json;
use std::sync::Arc;

async fn running(fixture: &Fixture) -> String {
    fixture.load(&[("sales.yaml", SALES)]).await;
    fixture.post("/dags/sales/runs", json!({"run_id": "r1"})).await.expect(202);
    fixture.turn().await;
    fixture.worker().await.start_all().await.remove(0).token
}

fn write(fixture: &Fixture, token: &str, lines: std::ops::Range<u32>) {
    for n in lines {
        fixture.pass_time(Span::from_secs(1));
        fixture.logs.write(token, fixture.now(), &format!("line {n}"));
    }
}

fn texts(reply: &Reply) -> Vec<String> {
    let lines = reply.json["lines"].as_array().unwrap();
    lines.iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

fn names(lines: impl IntoIterator<Item = u32>) -> Vec<String> {
    lines.into_iter().map(|n| format!("line {n}")).collect()
}

#[tokio::test]
async fn pages_of_any_size_give_every_line_once() {
    let fixture = Fixture::new().await;
    let token = running(&fixture).await;
    write(&fixture, &token, 0..10);
    for limit in [1, 2, 3, 4, 7, 100] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        for _ in 0..50 {
            let path = format!("/attempts/{token}/log?limit={limit}{cursor}");
            let page = fixture.get(&path).await.expect(200);
            seen.extend(texts(&page));
            let next = page.json["next_cursor"].as_str().unwrap();
            cursor = format!("&cursor={next}");
            if page.json["more"] == false {
                break;
            }
        }
        assert_eq!(seen, names(0..10), "{limit}");
        // What comes later is found from there on.
        let path = format!("/attempts/{token}/log?limit={limit}{cursor}");
        assert_eq!(texts(&fixture.get(&path).await), Vec::<String>::new(), "{limit}");
    }
}

#[tokio::test]
async fn filters_narrow_what_is_shown() {
    let fixture = Fixture::new().await;
    let token = running(&fixture).await;
    write(&fixture, &token, 0..20);
    let log = format!("/attempts/{token}/log");
    assert_eq!(texts(&fixture.get(&format!("{log}?tail=3")).await), names(17..20));
    let grep = fixture.get(&format!("{log}?grep=%5B05%5D$")).await;
    assert_eq!(texts(&grep), names([0, 5, 10, 15]));
    let both = fixture.get(&format!("{log}?grep=%5B05%5D$&tail=2")).await;
    assert_eq!(texts(&both), names([10, 15]));
    let since = fixture.now().minus(Span::from_millis(2_500)).to_string();
    let late = fixture.get(&format!("{log}?since={since}")).await;
    assert_eq!(texts(&late), names(17..20));
    for bad in ["grep=%28", "since=x", "cursor=x", "cursor=1:x", "cursor=1:2.x"] {
        let reply = fixture.get(&format!("{log}?{bad}")).await;
        assert!(matches!(reply.status, 400 | 422), "{bad}: {:#}", reply.json);
    }
    let long = "(a{1000}){1000}{1000}";
    fixture.get(&format!("{log}?grep={}", long.replace(['{', '}'], "%7B"))).await.expect(422);
}

#[tokio::test]
async fn a_log_ends_with_its_attempt_and_what_comes_later_is_late() {
    let fixture = Fixture::new().await;
    let token = running(&fixture).await;
    write(&fixture, &token, 0..2);
    let log = format!("/attempts/{token}/log");
    assert_eq!(fixture.get(&log).await.json["ended"], false);
    assert_eq!(texts(&fixture.get(&format!("{log}?late=true")).await), Vec::<String>::new());
    fixture.worker().await.succeed(&token).await;
    assert_eq!(fixture.get(&log).await.json["ended"], true);
    let first = fixture.get(&format!("{log}?limit=1")).await;
    assert_eq!((&first.json["ended"], &first.json["more"]), (&json!(false), &json!(true)));
    write(&fixture, &token, 2..4);
    assert_eq!(texts(&fixture.get(&format!("{log}?late=true")).await), names(2..4));
}

#[tokio::test]
async fn a_long_poll_waits_for_lines_and_for_the_end() {
    let fixture = Arc::new(Fixture::new().await);
    let token = running(&fixture).await;
    let path = format!("/attempts/{token}/log?wait_ms=30000");
    let follower = tokio::spawn({
        let (fixture, path) = (Arc::clone(&fixture), path.clone());
        async move { fixture.get(&path).await }
    });
    tokio::task::yield_now().await;
    write(&fixture, &token, 0..1);
    let page = follower.await.unwrap();
    assert_eq!(texts(&page), names(0..1));
    let cursor = page.json["next_cursor"].as_str().unwrap();
    let follower = tokio::spawn({
        let (fixture, path) = (Arc::clone(&fixture), format!("{path}&cursor={cursor}"));
        async move { fixture.get(&path).await }
    });
    fixture.worker().await.succeed(&token).await;
    let page = follower.await.unwrap();
    assert_eq!((texts(&page), &page.json["ended"]), (Vec::new(), &json!(true)));
}

/// A worker that is gone says nothing of the end: the log does all the same (I21), once.
#[tokio::test]
async fn a_log_whose_worker_is_gone_ends_with_the_reason() {
    let fixture = Fixture::new().await;
    let token = running(&fixture).await;
    write(&fixture, &token, 0..2);
    let first = fixture.get(&format!("/attempts/{token}/log")).await;
    let cursor = first.json["next_cursor"].as_str().unwrap();
    fixture.post(&format!("/attempts/{token}:confirm-dead"), json!({})).await.expect(200);
    let whole = fixture.get(&format!("/attempts/{token}/log")).await;
    let lines = texts(&whole);
    assert_eq!(lines[..2], names(0..2));
    assert!(lines[2].starts_with("lost: ") && lines[2].contains("known by person"), "{lines:?}");
    assert_eq!(whole.json["lines"][2]["stream"], "fencepost");
    let rest = fixture.get(&format!("/attempts/{token}/log?cursor={cursor}")).await;
    assert_eq!((texts(&rest), &rest.json["ended"]), (vec![lines[2].clone()], &json!(true)));
    let narrowed = fixture.get(&format!("/attempts/{token}/log?grep=line")).await;
    assert_eq!(texts(&narrowed), names(0..2));
    let late = fixture.get(&format!("/attempts/{token}/log?late=true")).await;
    assert_eq!(texts(&late), Vec::<String>::new());
}
