//! `http` tasks: what is read, what is refused, what a status means.

use fencepost_core::http_task::{Answered, Body, HttpTask, check};
use fencepost_core::time::Span;
use serde_json::{Value, json};

fn wrong(written: &Value) -> String {
    HttpTask::read(written).err().map(|error| error.to_string()).unwrap_or_default()
}

#[test]
fn a_url_alone_is_a_get_and_a_body_makes_a_post() {
    let get = HttpTask::read(&json!("https://a/b")).unwrap();
    assert_eq!((get.method.as_str(), get.timeout), ("GET", Span::from_secs(60)));
    let post = HttpTask::read(&json!({ "url": "http://a", "json": { "n": 1 } })).unwrap();
    assert_eq!((post.method.as_str(), post.body), ("POST", Some(Body::Json(json!({ "n": 1 })))));
    let put = json!({ "url": "http://a", "body": "x", "method": "put", "timeout": "5s" });
    let put = HttpTask::read(&put).unwrap();
    assert_eq!((put.method.as_str(), put.timeout), ("PUT", Span::from_secs(5)));
}

#[test]
fn what_is_wrong_is_named() {
    let with = |key: &str, value: Value| json!({ "url": "http://a", key: value });
    for (written, says) in [
        (json!(5), "it is a URL, or a mapping"),
        (json!({}), "it is a URL, or a mapping"),
        (json!("ftp://a"), "`url` must be a URL"),
        (json!("http://a b"), "`url` must be a URL"),
        (with("metod", json!("GET")), "unknown key `metod`"),
        (with("method", json!("FETCH")), "`method` must be one of GET"),
        (json!({ "url": "http://a", "method": "GET", "body": "x" }), "`method` has no body"),
        (json!({ "url": "http://a", "json": 1, "body": "x" }), "two bodies"),
        (with("headers", json!({ "A": "x\r\nB: y" })), "`headers` must be"),
        (with("headers", json!({ "A: b": "x" })), "`headers` must be"),
        (with("status", json!([])), "`status` must be"),
        (with("status", json!(99)), "`status` must be"),
        (with("timeout", json!("soon")), "`timeout` must be"),
        (with("outputs", json!({ "a b": "/x" })), "`outputs` must be"),
        (with("outputs", json!({ "a": "x" })), "`outputs` must be"),
    ] {
        assert!(wrong(&written).contains(says), "{written}: {}", wrong(&written));
    }
    // Before it is rendered a template may become anything.
    assert_eq!(check(&json!({ "url": "{{ params.url }}", "timeout": "{{ params.t }}" })), Ok(()));
    assert!(check(&json!({ "url": "{{ params.url }}", "timeout": "soon" })).is_err());
}

#[test]
fn what_may_pass_by_itself_is_temporary() {
    let task = HttpTask::read(&json!("http://a")).unwrap();
    for (status, expected) in [
        (200, Answered::Accepted),
        (204, Answered::Accepted),
        (302, Answered::Refused),
        (404, Answered::Refused),
        (408, Answered::Temporary),
        (429, Answered::Temporary),
        (500, Answered::Temporary),
        (503, Answered::Temporary),
    ] {
        assert_eq!(task.answered(status), expected, "{status}");
    }
    let named = HttpTask::read(&json!({ "url": "http://a", "status": [404, 503] })).unwrap();
    assert_eq!(named.answered(503), Answered::Accepted);
    assert_eq!(named.answered(200), Answered::Refused);
}
