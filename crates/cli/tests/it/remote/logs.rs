//! Logs of attempts on another host: every byte once, in order, to the reason of the end (I21).

use super::installation::{Installation, registration, wait_for};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_api::execution::{ExecutionApi, LogAnswer, LogPiece, LogPlace, Poll, Start};
use fencepost_core::id::Token;
use fencepost_store::query::attempt_log;

/// The bytes that the store has of a log, and whether its pieces join without a gap.
async fn received(own: &Installation, token: &str) -> (Vec<u8>, bool) {
    let Ok(token) = token.parse::<Token>() else { return (Vec::new(), true) };
    let tx = own.cx.store.read("test").await.unwrap();
    let (mut bytes, mut end, mut joined) = (Vec::new(), (0, 0), true);
    for piece in attempt_log::from(&tx, token, (0, 0), 1_000_000).await.unwrap() {
        joined &= (piece.segment, piece.offset) == end;
        end = piece.end();
        bytes.extend(STANDARD.decode(&piece.content).unwrap());
    }
    (bytes, joined)
}

async fn token_of(own: &Installation) -> String {
    let tx = own.cx.store.read("test").await.unwrap();
    let run = fencepost_store::query::run::get(&tx, "talk", "r").await.unwrap().unwrap();
    let found = fencepost_store::query::attempt::of_run(&tx, run.run_pk, 0, 10).await.unwrap();
    found.last().map(|attempt| attempt.token.as_i64().to_string()).unwrap_or_default()
}

/// Two servers' restarts, a worker's restart and any bytes: the log is whole, and says why it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_arrives_whole_whatever_restarts_and_ends_with_its_reason() {
    let mut own = Installation::new().await;
    let script = "for n in $(seq 1 3000); do echo line $n of some length to fill a piece or two; \
                  done; printf 'nul \\000 and \\377 bytes\\n'; sleep 3; echo last words";
    own.load(
        "talk.yaml",
        &format!("dag_id: talk\ntasks:\n  t:\n    run: \"{}\"\n", script.replace('\\', "\\\\")),
    )
    .await;
    let worker = own.worker("w-1");
    own.trigger_as("talk", "r").await;
    wait_for("something to arrive", async || {
        !received(&own, &token_of(&own).await).await.0.is_empty()
    })
    .await;
    own.kill_server().await;
    own.serve().await;
    worker.stop().await;
    let worker = own.worker("w-1");
    own.wait_run("talk", "r", "success").await;
    let token = token_of(&own).await;
    wait_for("the end to arrive", async || {
        let (bytes, _) = received(&own, &token).await;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let reason = text.lines().last().is_some_and(|line| line.contains(" fencepost F "));
        text.contains("last words") && reason
    })
    .await;
    let (bytes, joined) = received(&own, &token).await;
    assert!(joined, "no gap and nothing twice");
    let text = String::from_utf8_lossy(&bytes);
    for n in [1, 1_500, 3_000] {
        assert_eq!(text.matches(&format!(" line {n} of ")).count(), 1, "{n}");
    }
    assert!(bytes.windows(4).any(|at| at == b"\0 an") && bytes.contains(&0xff));
    assert!(text.contains("last words"));
    worker.stop().await;
}

fn piece(token: &str, offset: u64, text: &str) -> LogPiece {
    let at = LogPlace { segment: 0, offset };
    LogPiece { token: token.into(), at, content: STANDARD.encode(text) }
}

fn next(answer: &LogAnswer) -> u64 {
    match answer {
        LogAnswer::Have { next } => next.offset,
        LogAnswer::Refused { detail, .. } => panic!("{detail}"),
    }
}

/// What was received stays, whatever comes again, late or in another order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pieces_that_come_again_change_nothing_and_late_ones_are_marked() {
    let own = Installation::new().await;
    own.load("talk.yaml", "dag_id: talk\ntasks:\n  t: {run: x}\n").await;
    own.trigger_as("talk", "r").await;
    let api = own.client(&own.join_token);
    let job = own.cx.env.job_id().to_string();
    api.register(registration(&job)).await.unwrap();
    let poll = Poll {
        job_id: job.clone(),
        call: 0,
        held: Vec::new(),
        free_slots: 8,
        queues: vec!["default".into()],
        wait_ms: 20_000,
        known_stops: Vec::new(),
    };
    let token = api.poll(poll).await.unwrap().assignments[0].token.clone();
    let start = Start { token: token.clone(), start_id: "s".into(), boot_id: "b".into(), call: 0 };
    api.start(&job, vec![start]).await.unwrap();
    let send = async |offset, text: &str| {
        next(&api.logs(&job, vec![piece(&token, offset, text)]).await.unwrap()[0])
    };
    assert_eq!(send(0, "").await, 0, "nothing is there yet");
    assert_eq!(send(0, "one\n").await, 4);
    assert_eq!(send(0, "one\n").await, 4, "again");
    assert_eq!(send(0, "one\ntwo\n").await, 4, "from where it stands, nothing else");
    assert_eq!(send(4, "two\n").await, 8);
    assert_eq!(send(2, "e\n").await, 8, "an old one");
    assert_eq!(received(&own, &token).await, (b"one\ntwo\n".to_vec(), true));
    let broken = LogPiece { content: "no base64!".into(), ..piece(&token, 8, "") };
    assert_eq!(api.logs(&job, vec![broken]).await.unwrap_err().status, 400);
    own.confirm_dead(&token).await;
    assert_eq!(send(8, "late\n").await, 13);
    let tx = own.cx.store.read("test").await.unwrap();
    let pieces = attempt_log::from(&tx, token.parse().unwrap(), (0, 0), 10).await.unwrap();
    let late: Vec<bool> = pieces.iter().map(|piece| piece.late).collect();
    assert_eq!(late, [false, false, true]);
}
