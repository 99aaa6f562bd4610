//! Rows for the tests, made by the store's own functions.

use fencepost_core::callback::Occasions;
use fencepost_core::id::{AttemptId, JobId, Token};
use fencepost_core::state::{
    AttemptState, CountedAs, JobKind, JobState, Outcome, RunType, TiState, Why,
};
use fencepost_core::time::{Span, Timestamp};
use fencepost_core::trigger_rule::UpstreamCounts;
use fencepost_store::query::attempt::{AttemptEnd, Claimer, NewAttempt};
use fencepost_store::query::dag::DagRow;
use fencepost_store::query::job::Job;
use fencepost_store::query::run::NewRun;
use fencepost_store::query::task_instance::{Ti, TiKey};
use fencepost_store::query::{attempt, dag, installation, job, outbox, pool, run, task_instance};
use fencepost_store::{Store, Tx};
use serde_json::json;

pub(crate) fn at(micros: i64) -> Timestamp {
    Timestamp::from_micros(micros)
}

pub(crate) fn job_id(n: u128) -> JobId {
    JobId::from_u128(n)
}

pub(crate) fn claimer(n: u128) -> Claimer<'static> {
    Claimer { job_id: job_id(n), worker: "w", host: "h", call: 1 }
}

pub(crate) fn worker(n: u128) -> Job {
    Job {
        job_id: job_id(n),
        kind: JobKind::Worker,
        state: JobState::Running,
        name: "w".into(),
        host: "h".into(),
        pid: 7,
        pid_start: 1,
        boot_id: "boot".into(),
        machine_id: "machine".into(),
        home_id: "home".into(),
        version: "0".into(),
        queues: "default".into(),
        slots: 8,
        lease_ttl: Some(Span::from_secs(300)),
        renew_seq: 0,
        renewed_at: at(1),
        started_at: at(1),
        ended_at: None,
        succeeded_by: None,
        detached: false,
        epoch: 1,
        loop_age: Span::ZERO,
    }
}

pub(crate) fn dag_row(dag_id: &str) -> DagRow {
    DagRow {
        dag_id: dag_id.into(),
        version: 1,
        version_pk: 1,
        is_paused: false,
        is_active: true,
        fileloc: format!("{dag_id}.yaml"),
        owner: "o".into(),
        tags: json!(["a", "b"]),
        description: "d".into(),
        schedule: "@daily".into(),
        max_active_runs: 16,
        max_active_tasks: 16,
        slot_cursor: None,
        next_slot_at: Some(at(5)),
        created_at: at(1),
        updated_at: at(1),
        paused_by: None,
    }
}

pub(crate) fn new_run(dag_id: &str, run_id: &str) -> NewRun {
    NewRun {
        dag_id: dag_id.into(),
        run_id: run_id.into(),
        version_pk: 1,
        run_type: RunType::Manual,
        logical_date: Some(at(10)),
        interval: Some((at(9), at(10))),
        run_after: at(10),
        conf: json!({"k": "it's; DROP TABLE run; --"}),
        params: json!({}),
        note: None,
        triggered_by: "person".into(),
        calls: Occasions::default(),
        alert_at: None,
    }
}

pub(crate) fn key(run_pk: i64, task_index: u32) -> TiKey {
    TiKey { run_pk, task_index, map_index: -1 }
}

pub(crate) fn ti(key: TiKey, state: TiState) -> Ti {
    Ti {
        key,
        task_id: format!("t{}", key.task_index),
        dag_id: "d".into(),
        state,
        token: None,
        try_number: 1,
        max_tries: 1,
        attempts: 0,
        infra_losses: 0,
        single_deaths: 0,
        requeues: 0,
        clears: 0,
        generation: 0,
        pool: "p".into(),
        pool_slots: 1,
        priority: 1,
        upstream: UpstreamCounts::default(),
        forward_due: false,
        recheck: 0,
        retry_at: None,
        next_why: "first".into(),
        prev_outcome: "first".into(),
        reason: None,
        mapped: None,
        scheduled_at: Some(at(11)),
        queued_at: None,
        started_at: None,
        ended_at: None,
        calls: Occasions::default(),
    }
}

pub(crate) fn new_attempt(ti: TiKey, token: Token) -> NewAttempt {
    NewAttempt {
        ramp: None,
        token,
        attempt_id: AttemptId::from_u128(u128::try_from(token.as_i64()).unwrap()),
        ti,
        dag_id: "d".into(),
        try_number: 1,
        attempt_number: 1,
        why: Why::First,
        replaces: None,
        prev_outcome: "first".into(),
        queue: "default".into(),
        priority: 1,
        queued_until: at(i64::MAX / 2),
    }
}

pub(crate) fn end(token: Token, from: AttemptState) -> AttemptEnd {
    AttemptEnd {
        token,
        from,
        outcome: Outcome::Success,
        reason: "exit".into(),
        message: None,
        exit_code: Some(0),
        signal: None,
        counted_as: CountedAs::None,
        evidence: None,
        report_digest: Some("digest".into()),
        containment: Some("pidns".into()),
    }
}

/// An installation, two workers (1 and 2), a pool, a DAG and one running run; its key.
pub(crate) async fn settle(store: &Store) -> i64 {
    let tx = store.begin("settle").await.unwrap();
    installation::make(&tx, "installation").await.unwrap();
    job::insert(&tx, &worker(1)).await.unwrap();
    job::insert(&tx, &worker(2)).await.unwrap();
    pool::make(&tx, "p", 1_000, "").await.unwrap();
    dag::upsert(&tx, &dag_row("d")).await.unwrap();
    run::insert(&tx, &[new_run("d", "r")]).await.unwrap();
    let run_pk = run::get(&tx, "d", "r").await.unwrap().unwrap().run_pk;
    let start = run::RunStart { run_pk, unfinished: 1, timeout: None };
    assert_eq!(run::start(&tx, &[start]).await.unwrap(), [true]);
    tx.commit().await.unwrap();
    run_pk
}

/// Queues `count` attempts of tasks of their own, from task `first` on; their tokens.
pub(crate) async fn queue(tx: &Tx, run_pk: i64, first: u32, count: usize) -> Vec<Token> {
    let tokens = installation::mint(tx, count).await.unwrap();
    let keys = (first..).map(|task| key(run_pk, task));
    let made: Vec<NewAttempt> =
        keys.zip(&tokens).map(|(key, token)| new_attempt(key, *token)).collect();
    attempt::insert(tx, &made).await.unwrap();
    tokens
}

/// Inserts instances.
pub(crate) async fn make(tx: &Tx, tis: &[Ti]) {
    task_instance::insert(tx, tis).await.unwrap();
}

/// Writes a mark that a test looks for afterwards.
pub(crate) async fn mark(tx: &Tx, name: &str) -> Result<(), fencepost_store::StoreError> {
    outbox::insert(tx, name, &json!(null)).await
}

/// The marks that are in the store, sorted.
pub(crate) async fn marks(store: &Store) -> Vec<String> {
    let tx = store.read("marks").await.unwrap();
    let found = outbox::due(&tx, 10_000).await.unwrap();
    let mut names: Vec<String> = found.into_iter().map(|effect| effect.kind).collect();
    names.sort();
    names
}
