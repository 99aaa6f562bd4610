//! Who is refused, with which words; and what a refusal changes: nothing.

use super::installation::{Installation, join_token, join_token_for, registration, wait_for};
use crate::standalone::world::ledger_task;
use fencepost_api::execution::wire::{Call, VERSION_HEADER};
use fencepost_api::execution::{
    Answer, Beat, ExecutionApi, LogAnswer, LogPiece, LogPlace, Poll, RefusedReason, Register, Start,
};
use fencepost_api::problem::Problem;
use fencepost_core::time::Span;
use fencepost_store::query::api_token;
use fencepost_worker::http::HttpExecution;
use serde_json::{Value, json};

/// A registered worker that does what a test says.
async fn played(own: &Installation) -> (HttpExecution, String) {
    let api = own.client(&own.join_token);
    let job_id = own.cx.env.job_id().to_string();
    api.register(registration(&job_id)).await.unwrap();
    (api, job_id)
}

fn poll(job_id: &str) -> Poll {
    Poll {
        job_id: job_id.into(),
        call: 0,
        held: Vec::new(),
        free_slots: 8,
        queues: vec!["default".into()],
        wait_ms: 20_000,
        known_stops: Vec::new(),
    }
}

fn beat(job_id: &str) -> Beat {
    Beat { job_id: job_id.into(), seq: 1, ..Beat::default() }
}

async fn claimed(own: &Installation, api: &HttpExecution, job_id: &str) -> String {
    own.load("one.yaml", "dag_id: one\ntasks:\n  t: {run: 'true'}\n").await;
    own.trigger("one").await;
    let polled = api.poll(poll(job_id)).await.unwrap();
    polled.assignments[0].token.clone()
}

/// One request as it stands, and its answer.
async fn raw(
    own: &Installation,
    call: Call,
    token: &str,
    version: &str,
    body: &str,
) -> (u16, Value) {
    let (url, token, version) = (own.url() + &call.path(), token.to_owned(), version.to_owned());
    let body = body.to_owned();
    let asking = tokio::task::spawn_blocking(move || {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer = agent
            .post(&url)
            .header("authorization", &format!("Bearer {token}"))
            .header(VERSION_HEADER, &version)
            .header("content-type", "application/json")
            .send(&body)
            .unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null))
    });
    asking.await.unwrap()
}

/// What a server answers to the head of a request alone, which says how long its body would be.
async fn announced(own: &Installation, length: usize) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(own.address).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n{VERSION_HEADER}: 2\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n",
        Call::Register.path(),
        own.join_token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // The other side may close before everything is read here.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_join_token_ends_what_joined_with_it() {
    let own = Installation::new().await;
    let (_, token) = join_token_for(&own.cx, "worker", Some(Span::from_secs(3))).await;
    let (api, job_id) = (own.client(&token), own.cx.env.job_id().to_string());
    api.register(registration(&job_id)).await.unwrap();
    let refused = wait_refused(&api, &job_id).await;
    assert_eq!((refused.status, refused.detail.contains("expired")), (401, true), "{refused:?}");
    let again = own.client(&token).hello().await.unwrap_err();
    assert_eq!((again.status, again.detail.contains("expired")), (401, true), "{again:?}");
    // Another token is good all the while.
    own.client(&own.join_token).hello().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_join_token_ends_what_joined_with_it() {
    let own = Installation::new().await;
    let (api, job_id) = played(&own).await;
    api.beat(beat(&job_id)).await.unwrap();
    let tx = own.cx.store.begin("revoke").await.unwrap();
    assert!(api_token::revoke(&tx, &own.join_id).await.unwrap());
    tx.commit().await.unwrap();
    let refused = wait_refused(&api, &job_id).await;
    assert_eq!(refused.status, 401);
    assert!(refused.detail.contains("revoked"), "{}", refused.detail);
    assert!(refused.suggestion.unwrap().contains("FENCEPOST_WORKER_TOKEN"));
    assert_eq!(api.trouble().unwrap().status, 401, "shown to the operator");
    let again = own.client(&own.join_token).hello().await.unwrap_err();
    assert_eq!((again.status, again.detail.contains("revoked")), (401, true), "{}", again.detail);
}

/// A revocation, or an expiry, counts within moments.
async fn wait_refused(api: &HttpExecution, job_id: &str) -> Problem {
    let beating = async || api.beat(beat(job_id)).await.is_err();
    wait_for("the token to be over", beating).await;
    api.beat(beat(job_id)).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_token_of_role_worker_joins() {
    let own = Installation::new().await;
    for role in ["viewer", "admin"] {
        let (_, token) = join_token(&own.cx, role).await;
        let refused = own.client(&token).hello().await.unwrap_err();
        assert_eq!(refused.status, 403, "{role}");
        assert!(refused.suggestion.unwrap().contains("--role worker"));
    }
    assert_eq!(own.client("fp_nonsense").hello().await.unwrap_err().status, 401);
    let hello = own.client(&own.join_token).hello().await.unwrap();
    assert_eq!(hello.installation_id, "test-installation");
}

/// A job speaks for itself alone, and about its own attempts alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_is_good_for_its_own_job_and_attempts() {
    let own = Installation::new().await;
    let (a, a_job) = played(&own).await;
    let (b, b_job) = played(&own).await;
    let token = claimed(&own, &a, &a_job).await;
    let refused = b.beat(beat(&a_job)).await.unwrap_err();
    assert_eq!(refused.status, 403, "{}", refused.detail);
    let start =
        Start { token: token.clone(), start_id: "s".into(), boot_id: "boot".into(), call: 0 };
    let answers = b.start(&b_job, vec![start.clone()]).await.unwrap();
    assert!(matches!(
        answers[..],
        [Answer::Refused { reason: RefusedReason::RunningElsewhere, .. }]
    ));
    let piece = LogPiece { token: token.clone(), at: LogPlace::default(), content: "YQ==".into() };
    let answers = b.logs(&b_job, vec![piece]).await.unwrap();
    assert!(matches!(answers[..], [LogAnswer::Refused { .. }]));
    let beaten = b.beat(Beat { inventory: vec![token.clone()], ..beat(&b_job) }).await.unwrap();
    assert_eq!(beaten.disowned, std::slice::from_ref(&token));
    assert_eq!(a.start(&a_job, vec![start.clone()]).await.unwrap(), [Answer::Accepted]);
    // Said again, and after a lost answer: the same.
    assert_eq!(a.start(&a_job, vec![start]).await.unwrap(), [Answer::Accepted]);
    // The join token is for joining, not for calls.
    let body = json!({"job_id": a_job}).to_string();
    assert_eq!(raw(&own, Call::Leave, &own.join_token, "2", &body).await.0, 401);
}

/// An attempt that nobody knows gets a typed answer, and never the one for an unknown address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_attempt_gets_a_typed_answer() {
    let own = Installation::new().await;
    let (api, job_id) = played(&own).await;
    let start = Start {
        token: "549755813889".into(),
        start_id: "s".into(),
        boot_id: "boot".into(),
        call: 0,
    };
    let answers = api.start(&job_id, vec![start]).await.unwrap();
    assert!(matches!(answers[..], [Answer::Refused { reason: RefusedReason::NotRunning, .. }]));
    // A token that was never drawn here: the store may have been put back. In a new epoch it is nobody's.
    let holds = || Beat { inventory: vec!["549755813889".into()], ..beat(&job_id) };
    assert_eq!(api.beat(holds()).await.unwrap().disowned, [""; 0]);
    let beaten = api.beat(holds()).await.unwrap();
    assert_eq!((beaten.epoch, &*beaten.disowned), (2, &["549755813889".to_owned()][..]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_broken_or_too_large_are_named_and_change_nothing() {
    let own = Installation::new().await;
    let registration =
        serde_json::to_value(registration(&own.cx.env.job_id().to_string())).unwrap();
    let whole = registration.to_string();
    let join = own.join_token.clone();
    let register = async |body: &str| raw(&own, Call::Register, &join, "2", body).await;
    for cut in [0, 1, 20, whole.len() - 1] {
        let (status, problem) = register(&whole[..cut]).await;
        assert_eq!((status, &problem["code"]), (400, &json!("bad-request")), "{cut}: {problem}");
    }
    let (status, problem) = register("[1]").await;
    assert_eq!((status, &problem["status"]), (422, &json!(422)));
    let mut wrong = registration.clone();
    wrong["queues"] = json!(["a", 5]);
    let (status, problem) = register(&wrong.to_string()).await;
    assert_eq!((status, &problem["errors"][0]["pointer"]), (422, &json!("/queues/1")));
    let answer = announced(&own, 17 << 20).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("too-large"), "{answer}");
    let tx = own.cx.store.read("test").await.unwrap();
    assert_eq!(fencepost_store::query::job::live(&tx).await.unwrap(), []);
    drop(tx);
    let mut newer = registration;
    newer["of_a_later_version"] = json!({"x": 1});
    newer["name"] = json!("nul \u{0} in it");
    assert_eq!(register(&newer.to_string()).await.0, 200);
}

/// N and N - 1 are served; of others the refusal says which side is behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_version_is_told_which_side_to_upgrade() {
    let own = Installation::new().await;
    for (version, status, words) in [
        ("2", 200, ""),
        ("1", 200, ""),
        ("0", 400, "upgrade the worker"),
        ("3", 400, "upgrade the server"),
        ("x", 400, ""),
    ] {
        let (got, answer) = raw(&own, Call::Hello, &own.join_token, version, "{}").await;
        assert_eq!(got, status, "{version}: {answer}");
        assert!(answer["suggestion"].as_str().unwrap_or_default().contains(words), "{answer}");
    }
}

/// What a worker of version 1 sent, as it stood: served to the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_version_1_are_served() {
    let own = Installation::new().await;
    let job = own.cx.env.job_id().to_string();
    let fixtures = include_str!("version_1.jsonl").replace("@JOB@", &job);
    own.load("one.yaml", "dag_id: one\ntasks:\n  t: {run: 'true'}\n").await;
    let run = own.trigger("one").await;
    let (mut credential, mut attempt) = (own.join_token.clone(), String::new());
    for line in fixtures.lines() {
        let fixture: Value = serde_json::from_str(&line.replace("@TOKEN@", &attempt)).unwrap();
        let name = fixture["call"].as_str().unwrap();
        let call = *Call::ALL.iter().find(|call| call.name() == name).unwrap();
        let body = fixture["body"].to_string();
        let (status, answer) = raw(&own, call, &credential, "1", &body).await;
        assert_eq!(status, 200, "{name}: {answer}");
        if let Some(wanted) = fixture.get("answer") {
            assert!(has(&answer, wanted), "{name}: {answer}");
        }
        if call == Call::Register {
            answer["credential"].as_str().unwrap().clone_into(&mut credential);
        }
        if call == Call::Poll {
            answer["assignments"][0]["token"].as_str().unwrap().clone_into(&mut attempt);
        }
    }
    own.wait_run("one", &run, "success").await;
}

/// Whether an answer says what is wanted; it may say more.
fn has(answer: &Value, wanted: &Value) -> bool {
    match (answer, wanted) {
        (Value::Object(answer), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| answer.get(key).is_some_and(|own| has(own, value)))
        }
        (answer, wanted) => answer == wanted,
    }
}

/// Old requests come again, in any order, while newer ones are there: nothing changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replayed_and_reordered_calls_change_nothing() {
    let own = Installation::new().await;
    let (api, job_id) = played(&own).await;
    let token = claimed(&own, &api, &job_id).await;
    let seen = async || {
        let id = job_id.parse().unwrap();
        let tx = own.cx.store.read("test").await.unwrap();
        fencepost_store::query::job::get(&tx, id).await.unwrap().unwrap().renew_seq
    };
    api.beat(Beat { seq: 9, ..beat(&job_id) }).await.unwrap();
    api.beat(Beat { seq: 3, ..beat(&job_id) }).await.unwrap();
    assert_eq!(seen().await, 9);
    api.leave(&job_id).await.unwrap();
    api.beat(Beat { seq: 10, ..beat(&job_id) }).await.unwrap();
    assert_eq!(seen().await, 9, "an ended job is not revived");
    let start = Start { token, start_id: "late".into(), boot_id: "boot".into(), call: 0 };
    let answers = api.start(&job_id, vec![start]).await.unwrap();
    assert!(matches!(answers[..], [Answer::Refused { reason: RefusedReason::Fenced, .. }]));
    let again = api.register(registration(&job_id)).await.unwrap_err();
    assert_eq!(again.status, 409, "{}", again.detail);
}

/// What a process asked before it died arrives after its successor in the home has registered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_registration_does_not_take_the_home_back() {
    let own = Installation::new().await;
    let api = own.client(&own.join_token);
    let numbered = |number| Register {
        home_id: "home".into(),
        registration: number,
        ..registration(&own.cx.env.job_id().to_string())
    };
    let successor = numbered(2);
    api.register(successor.clone()).await.unwrap();
    let late = own.client(&own.join_token).register(numbered(1)).await.unwrap_err();
    assert_eq!((late.code.as_str(), late.registration), ("stale-home", Some(2)), "{late:?}");
    // The successor goes on, and may ask again after a lost answer.
    assert!(!api.beat(beat(&successor.job_id)).await.unwrap().is_over);
    api.register(successor).await.unwrap();
}

/// The credential of an attempt is good while it is current, and for itself alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_credential_of_an_attempt_dies_with_it() {
    let own = Installation::new().await;
    let task = ledger_task(&own.path("ledger"), "0");
    own.load("one.yaml", &format!("dag_id: one\ntasks:\n  t:\n{task}")).await;
    own.trigger("one").await;
    let (api, job_id) = played(&own).await;
    let polled = api.poll(poll(&job_id)).await.unwrap();
    let one = &polled.assignments[0];
    let credential = one.credential.clone().unwrap();
    let check = async || raw(&own, Call::FenceCheck, &credential, "2", "{}").await;
    assert_eq!(check().await.1["reason"], "not_running", "claimed only");
    let start =
        Start { token: one.token.clone(), start_id: "s".into(), boot_id: "b".into(), call: 0 };
    api.start(&job_id, vec![start]).await.unwrap();
    assert_eq!(check().await.1["answer"], "accepted");
    let call = async |call, body: Value| raw(&own, call, &credential, "2", &body.to_string()).await;
    let set = call(Call::XcomSet, json!({"key": "rows", "value": [1, 2]})).await;
    assert_eq!(set.0, 200, "{}", set.1);
    assert_eq!(call(Call::XcomGet, json!({"key": "rows"})).await.1["value"], json!([1, 2]));
    assert_eq!(call(Call::XcomGet, json!({"key": "none"})).await.1["value"], Value::Null);
    let gone = call(Call::XcomGet, json!({"key": "x", "task_id": "nobody"})).await;
    assert_eq!(gone.0, 404, "{}", gone.1);
    assert_eq!(call(Call::XcomSet, json!({"key": "a b", "value": 1})).await.0, 422);
    // It opens nothing else.
    assert_eq!(call(Call::Beat, json!({"job_id": job_id})).await.0, 401);
    api.leave(&job_id).await.unwrap();
    assert_eq!(check().await.1["answer"], "accepted", "a worker that restarts leaves it running");
    own.report_success(&job_id, &one.token).await;
    assert_eq!(check().await.1["reason"], "not_running");
    assert_eq!(call(Call::XcomSet, json!({"key": "rows", "value": 3})).await.0, 409);
}
