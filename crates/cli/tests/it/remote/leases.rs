//! Leases with real processes: what a worker leaves is gone before anybody else begins.

use super::installation::{Installation, lease, wait_for};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, Outcome};
use fencepost_store::query::attempt::{self, Attempt};
use fencepost_store::query::xcom;
use fencepost_worker::clock::ClockKind;

/// A task that would run for ever at its first attempt, with a process that left its session and is deaf
/// to SIGTERM; it says at each tick that it lives.
fn deaf(ledger: &std::path::Path) -> String {
    let ledger = ledger.display();
    format!(
        "dag_id: deaf
tasks:
  t:
    run: |
      say() {{ echo \"$1 $FENCEPOST_FENCING_TOKEN $(date +%s%N)\" >> {ledger}; }}
      say begin
      if [ \"$FENCEPOST_ATTEMPT_NUMBER\" != 1 ]; then exit 0; fi
      export -f say
      trap '' TERM
      setsid bash -c \"trap '' TERM; while :; do say tick; sleep 0.05; done\" &
      while :; do sleep 0.1; done
"
    )
}

/// Lines of the ledger as (word, token, nanoseconds).
fn lines(own: &Installation) -> Vec<(String, i64, u128)> {
    let read = |line: &String| {
        let mut words = line.split(' ').map(ToOwned::to_owned);
        let (word, token, at) = (words.next()?, words.next()?, words.next()?);
        Some((word, token.parse().ok()?, at.parse().ok()?))
    };
    own.ledger().iter().filter_map(read).collect()
}

async fn attempts(own: &Installation) -> Vec<Attempt> {
    let mut tokens: Vec<Token> =
        lines(own).iter().map(|(_, token, _)| Token::from_i64(*token).unwrap()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    let tx = own.cx.store.read("test").await.unwrap();
    attempt::look(&tx, &tokens).await.unwrap()
}

/// Nothing of the first attempt happened after the second one began.
async fn assert_apart(own: &Installation) {
    let lines = lines(own);
    let first = lines[0].1;
    let last = lines.iter().filter(|(_, token, _)| *token == first).map(|(.., at)| *at).max();
    let begins = lines.iter().find(|(word, token, _)| word == "begin" && *token != first);
    assert!(last.unwrap() < begins.unwrap().2, "{lines:?}");
    let attempts = attempts(own).await;
    assert_eq!(attempts.len(), 2, "{attempts:?}");
    assert_eq!(attempts[0].outcome, Some(Outcome::Lost));
    assert_eq!(attempts[1].outcome, Some(Outcome::Success));
    assert_eq!(attempts[1].try_number, 1);
}

async fn ticking(own: &Installation) {
    let ticks = async || lines(own).iter().any(|(word, ..)| word == "tick");
    wait_for("the task to tick", ticks).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_worker_left_is_gone_before_its_successor_begins() {
    let mut own = Installation::new().await;
    own.beat().await;
    own.load("deaf.yaml", &deaf(&own.path("ledger"))).await;
    let worker = own.worker_with("w-1", Some(lease(6, 1)));
    let run = own.trigger("deaf").await;
    ticking(&own).await;
    worker.kill().await;
    let other = own.worker_with("w-2", Some(lease(6, 1)));
    own.wait_run("deaf", &run, "success").await;
    assert_apart(&own).await;
    assert_eq!(other.stop().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_restarts_within_its_lease_goes_on_with_the_same_attempt() {
    let mut own = Installation::new().await;
    own.beat().await;
    own.load("deaf.yaml", &deaf(&own.path("ledger"))).await;
    let worker = own.worker_with("w-1", Some(lease(60, 1)));
    own.trigger("deaf").await;
    ticking(&own).await;
    worker.kill().await;
    let before = lines(&own).len();
    let again = own.worker_with("w-1", Some(lease(60, 1)));
    let renewed = async || {
        let tx = own.cx.store.read("test").await.unwrap();
        let jobs = fencepost_store::query::job::live(&tx).await.unwrap();
        jobs.iter().any(|job| job.name == "w-1" && job.renew_seq > 2) && lines(&own).len() > before
    };
    wait_for("the successor to beat", renewed).await;
    let attempts = attempts(&own).await;
    assert!(attempts.len() == 1 && attempts[0].outcome.is_none(), "{attempts:?}");
    assert_eq!(again.stop().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_cut_off_fences_itself_and_comes_back_as_a_new_job() {
    let mut own = Installation::new().await;
    own.beat().await;
    own.load("deaf.yaml", &deaf(&own.path("ledger"))).await;
    let worker = own.worker_with("w-1", Some(lease(6, 1)));
    let run = own.trigger("deaf").await;
    ticking(&own).await;
    own.kill_server().await;
    // Nobody tells it anything: it ends its task by its own clock.
    let seen = std::cell::Cell::new((0, 0));
    let silent = async || {
        let (ticks, now) = (lines(&own).len(), ClockKind::Boottime.now_ns());
        if ticks != seen.get().0 {
            seen.set((ticks, now));
        }
        now - seen.get().1 > 1_000_000_000
    };
    wait_for("the task to be gone", silent).await;
    own.serve().await;
    own.beat().await;
    own.wait_run("deaf", &run, "success").await;
    assert_apart(&own).await;
    assert_eq!(worker.stop().await, Vec::<String>::new());
}

/// A task that writes an output and ends well while nobody looks after it, and one that is held as
/// soon as it is lost: what its shim wrote down settles it, and it is not run again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_that_the_shim_wrote_down_settles_a_task_that_is_held_as_lost() {
    let mut own = Installation::new().await;
    own.beat().await;
    let ledger = own.path("ledger");
    let yaml = format!(
        "dag_id: held
tasks:
  t:
    on_lost: hold
    outputs: {{rows: integer}}
    run: |
      echo \"begin $FENCEPOST_FENCING_TOKEN 0\" >> {ledger}
      sleep 1.5
      echo rows=7 >> \"$FENCEPOST_OUTPUT_FILE\"
",
        ledger = ledger.display()
    );
    own.load("held.yaml", &yaml).await;
    let worker = own.worker_with("w-1", Some(lease(6, 1)));
    let run = own.trigger("held").await;
    wait_for("the task to begin", async || !own.ledger().is_empty()).await;
    worker.kill().await;
    let is_open = async || attempts(&own).await[0].state == AttemptState::LostOpen;
    wait_for("the attempt to be lost", is_open).await;
    let again = own.worker_with("w-1", Some(lease(6, 1)));
    own.wait_run("held", &run, "success").await;
    let attempts = attempts(&own).await;
    assert_eq!(attempts[0].outcome, Some(Outcome::Success));
    assert_eq!((own.ledger().len(), attempts.len()), (1, 1));
    let tx = own.cx.store.read("test").await.unwrap();
    let outputs = xcom::of_run(&tx, attempts[0].ti.run_pk).await.unwrap();
    let outputs: Vec<_> = outputs.into_iter().map(|one| (one.name, one.value)).collect();
    assert_eq!(outputs, [("rows".to_owned(), 7.into())]);
    assert_eq!(again.stop().await, Vec::<String>::new());
}
