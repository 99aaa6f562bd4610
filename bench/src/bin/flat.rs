//! Is the cost of a task instance flat? As one run grows from 100 to 10,000 tasks, and as the store
//! fills with a million finished instances.
//!
//! `cargo run --release -p fencepost-bench --bin flat [-- --finished N --rounds N]`
//! prints microseconds per task instance and two ratios. Both sides of a ratio are measured in
//! turns in one run, and the best of the rounds counts, so that a noisy machine does not decide.

use anyhow::Context as _;
use fencepost_bench::{Rig, best, fan, micros_per};
use fencepost_core::state::{RunState, RunType, TiState};
use fencepost_core::trigger_rule::UpstreamCounts;
use fencepost_store::query::attempt::{self, NewAttempt};
use fencepost_store::query::run::{self, NewRun};
use fencepost_store::query::task_instance::{self, Ti, TiKey};
use fencepost_store::query::{dag, installation};

/// Attempts claimed at a time.
const BATCH: u32 = 128;

fn main() -> anyhow::Result<()> {
    let finished = argument("--finished").unwrap_or(1_000_000);
    let rounds = argument("--rounds").unwrap_or(5);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    runtime.block_on(measure(finished, rounds))
}

fn argument(name: &str) -> Option<usize> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument == name)?;
    arguments.next()?.parse().ok()
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
async fn measure(finished: usize, rounds: usize) -> anyhow::Result<()> {
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        small.push(shape(98, 20).await?);
        large.push(shape(9_998, 1).await?);
    }
    println!("cost per task instance, best of {rounds} rounds");
    println!("  20 runs of 100 tasks       {:8.1} us", best(&small));
    println!("  1 run of 10,000 tasks      {:8.1} us", best(&large));
    println!("  ratio                      {:8.2}  (aim: under 1.5)", best(&large) / best(&small));

    let folder = tempfile::tempdir()?;
    let mut full = Rig::new(folder.path(), 128).await?;
    full.load("small", &fan(98)).await?;
    fill(&full, finished).await.context("filling the store")?;
    let empty_folder = tempfile::tempdir()?;
    let mut empty = Rig::new(empty_folder.path(), 128).await?;
    empty.load("small", &fan(98)).await?;
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        before.push(runs(&mut empty, "small", 10).await?);
        after.push(runs(&mut full, "small", 10).await?);
    }
    println!("  empty store                {:8.1} us", best(&before));
    println!("  {finished} finished instances {:8.1} us", best(&after));
    println!("  ratio                      {:8.2}  (aim: under 1.2)", best(&after) / best(&before));
    Ok(())
}

/// Microseconds per instance of some runs of a fan on a fresh store.
async fn shape(width: usize, count: usize) -> anyhow::Result<f64> {
    let folder = tempfile::tempdir()?;
    let mut rig = Rig::new(folder.path(), 128).await?;
    rig.load("fan", &fan(width)).await?;
    runs(&mut rig, "fan", count).await
}

async fn runs(rig: &mut Rig, dag_id: &str, count: usize) -> anyhow::Result<f64> {
    for _ in 0..count {
        rig.trigger(dag_id).await?;
    }
    let (done, took) = rig.run_dry(BATCH).await?;
    anyhow::ensure!(done > 0, "nothing ran");
    Ok(micros_per(done, took))
}

/// Fills the store with finished runs of 10,000 instances, each with its attempt.
async fn fill(rig: &Rig, finished: usize) -> anyhow::Result<()> {
    const RUN: usize = 10_000;
    let version = {
        let tx = rig.cx.store.read("read").await?;
        dag::get(&tx, "small").await?.context("no dag")?.version_pk
    };
    for n in 0..finished.div_ceil(RUN) {
        let tx = rig.cx.store.begin("fill").await?;
        let run_id = format!("history_{n}");
        let new = NewRun {
            dag_id: "small".into(),
            run_id: run_id.clone(),
            version_pk: version,
            run_type: RunType::Manual,
            logical_date: None,
            interval: None,
            run_after: tx.now(),
            conf: serde_json::json!({}),
            params: serde_json::json!({}),
            note: None,
            triggered_by: "bench".into(),
        };
        run::insert(&tx, &[new]).await?;
        let made = run::get(&tx, "small", &run_id).await?.context("no run")?;
        run::start(&tx, made.run_pk, 0, None).await?;
        run::end(&tx, made.run_pk, RunState::Running, RunState::Success, "done").await?;
        let tokens = installation::mint(&tx, RUN).await?;
        let mut tis = Vec::with_capacity(RUN);
        let mut attempts = Vec::with_capacity(RUN);
        for (index, token) in (0_u32..).zip(&tokens) {
            let key = TiKey { run_pk: made.run_pk, task_index: index, map_index: -1 };
            tis.push(instance(key, tx.now()));
            attempts.push(NewAttempt {
                token: *token,
                attempt_id: rig.cx.env.attempt_id(),
                ti: key,
                dag_id: "small".into(),
                try_number: 1,
                attempt_number: 1,
                why: fencepost_core::state::Why::First,
                replaces: None,
                prev_outcome: "first".into(),
                queue: "default".into(),
                priority: 1,
                queued_until: tx.now(),
            });
        }
        task_instance::insert(&tx, &tis).await?;
        attempt::insert(&tx, &attempts).await?;
        let ends: Vec<_> = tokens.iter().map(|token| end(*token)).collect();
        attempt::end(&tx, &ends).await?;
        tx.commit().await?;
    }
    Ok(())
}

fn instance(key: TiKey, now: fencepost_core::time::Timestamp) -> Ti {
    Ti {
        key,
        task_id: format!("t{:05}", key.task_index),
        dag_id: "small".into(),
        state: TiState::Success,
        token: None,
        try_number: 1,
        max_tries: 1,
        attempts: 1,
        infra_losses: 0,
        single_deaths: 0,
        requeues: 0,
        clears: 0,
        generation: 0,
        pool: "default_pool".into(),
        pool_slots: 1,
        priority: 1,
        upstream: UpstreamCounts::default(),
        forward_due: false,
        recheck: 0,
        retry_at: None,
        next_why: "first".into(),
        prev_outcome: "first".into(),
        reason: Some("exit".into()),
        scheduled_at: Some(now),
        queued_at: None,
        started_at: None,
        ended_at: Some(now),
    }
}

fn end(token: fencepost_core::id::Token) -> attempt::AttemptEnd {
    attempt::AttemptEnd {
        token,
        from: fencepost_core::state::AttemptState::Queued,
        outcome: fencepost_core::state::Outcome::Success,
        reason: "exit".into(),
        message: None,
        exit_code: Some(0),
        signal: None,
        counted_as: fencepost_core::state::CountedAs::None,
        evidence: None,
        report_digest: None,
        containment: None,
    }
}
