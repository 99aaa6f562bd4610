//! What the death of one worker with very much in its hands costs: 100,000 running attempts, recovered by one
//! scheduler, while the tasks of another DAG go on starting.
//!
//! `cargo build --release -p fencepost-cli && cargo run --release -p fencepost-bench --bin recovery [-- --attempts N]`
//! The scheduler is the shipped binary; the dead worker is an inventory without processes, which claimed and started
//! its attempts over the engine and then fell silent. Prints how long its attempts took from the declaration to
//! the last one that is settled, and until all of them are queued anew; the scheduler's memory (PSS); and how long
//! a task of another queue waited for its claim, before and meanwhile. Exit status 1 if a bound is missed.

use anyhow::Context as _;
use fencepost_bench::roles::Installation;
use fencepost_bench::stores::{Place, Stores};
use fencepost_bench::watched::pss_mb;
use fencepost_bench::{Rig, argument, instant, out, pause};
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::JobKind;
use fencepost_core::time::Span;
use fencepost_engine::liveness::{Beat, renew};
use fencepost_engine::operations::claim::{self, Wants};
use fencepost_engine::operations::register::{self, Identity};
use fencepost_engine::operations::start::{self, StartRequest};
use fencepost_engine::operations::trigger::{self, TriggerRequest};
use fencepost_engine::{Cx, Settings};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The lease of the worker that dies.
const TTL: Span = Span::from_secs(15);
/// Its attempts of one claim.
const BATCH: u32 = 1_000;
/// The bounds of `4-testing`: from the declaration to the last one settled; the scheduler's memory.
const SECONDS: f64 = 60.0;
const MEGABYTES: f64 = 300.0;
/// One task of another queue after the other.
const OTHER: &str = "tasks:\n  t: {command: [\"true\"], queue: other}\n";

fn main() -> anyhow::Result<()> {
    let binary = std::env::args().skip(1).find(|argument| argument.ends_with("fencepost"));
    let binary = binary.unwrap_or_else(|| "target/release/fencepost".into());
    let attempts = argument("--attempts").unwrap_or(100_000);
    let stores = Stores::new("")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(&stores, Path::new(&binary), attempts))
}

async fn measure(stores: &Stores, binary: &Path, attempts: usize) -> anyhow::Result<()> {
    let place = stores.place(Stores::POSTGRES, "recovery")?;
    let Place::Postgres(url) = &place else { anyhow::bail!("not PostgreSQL") };
    let rig = Rig::on(place.open("bench").await?, 10 * attempts as i64).await?;
    let mut installation = Installation::new(binary, stores.folder(), url.clone())?;
    std::fs::write(installation.dags().join("many.yaml"), many(attempts))?;
    std::fs::write(installation.dags().join("other.yaml"), OTHER)?;
    installation.scheduler()?;
    let scheduler = *installation.pids().first().context("no scheduler")?;
    let cx = Cx::new(place.open("server").await?, rig.cx.env.clone(), Settings::default());

    let mut doomed = Worker::register(&cx, "doomed", "default", attempts).await?;
    let mut other = Worker::register(&cx, "other", "other", 8).await?;
    let doomed_beats = doomed.beats(&cx);
    let other_beats = other.beats(&cx);
    until_loaded(&rig).await?;
    trigger(&cx, "many").await?;
    let began = instant();
    while doomed.held < attempts {
        doomed.take(&cx).await?;
    }
    out(&format!("{attempts} attempts run ({:.0} s)", began.elapsed().as_secs_f64()));

    let calm = other.latencies(&cx, &|| false, 20).await?;
    doomed_beats.abort();
    let is_over = Arc::new(AtomicBool::new(false));
    let memory = tokio::task::spawn_blocking({
        let is_over = Arc::clone(&is_over);
        move || peak_mb(scheduler, &is_over)
    });
    let times = Times { stores, attempts };
    let until_over = || is_over.load(Ordering::Relaxed);
    let (busy, stages) = tokio::join!(other.latencies(&cx, &until_over, usize::MAX), async {
        let stages = times.wait().await;
        is_over.store(true, Ordering::Relaxed);
        stages
    });
    other_beats.abort();
    let (busy, stages, memory) = (busy?, stages?, memory.await??);
    out(&format!("{attempts} running attempts of one dead worker, lease {TTL}"));
    out(&format!("  silence to declaration  {:8.1} s", stages.declared));
    out(&format!("  declaration to settled  {:8.1} s   (bound: {SECONDS})", stages.settled));
    out(&format!(
        "  declaration to queued   {:8.1} s   all of them, under new tokens",
        stages.queued
    ));
    out(&format!("  scheduler, most (PSS)   {memory:8.1} MB  (bound: {MEGABYTES})"));
    let (before, meanwhile) = (Waits::of(calm), Waits::of(busy));
    out(&format!(
        "  another queue's task, trigger to claim: median, worst of {}, {}",
        before.count, meanwhile.count
    ));
    out(&format!("    before                {:8.3} {:.3} s", before.median, before.worst));
    out(&format!("    meanwhile             {:8.3} {:.3} s", meanwhile.median, meanwhile.worst));
    anyhow::ensure!(stages.settled < SECONDS, "too slow");
    anyhow::ensure!(memory < MEGABYTES, "too much memory");
    anyhow::ensure!(meanwhile.count > 0, "nothing else started meanwhile");
    Ok(())
}

/// A DAG of one task that is mapped so many times.
fn many(attempts: usize) -> String {
    let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let (inner, outer) = (attempts.min(1_000), attempts.div_ceil(1_000));
    format!(
        "max_active_tasks: 1000000\ntasks:\n  t:\n    command: [\"true\"]\n    expand:\n      a: [{}]\n      b: [{}]\n",
        list(outer),
        list(inner)
    )
}

async fn trigger(cx: &Cx, dag_id: &str) -> anyhow::Result<()> {
    let request =
        TriggerRequest { dag_id: dag_id.into(), by: "bench".into(), ..Default::default() };
    trigger::trigger(cx, request).await?;
    Ok(())
}

/// Waits until the scheduler has read the DAG files.
async fn until_loaded(rig: &Rig) -> anyhow::Result<()> {
    for _ in 0..600 {
        let tx = rig.cx.store.read("look_for_dags").await?;
        let found = fencepost_store::query::dag::get(&tx, "many").await?;
        if found.is_some() {
            return Ok(());
        }
        drop(tx);
        pause(Duration::from_millis(100)).await;
    }
    anyhow::bail!("the DAG files were not loaded")
}

/// A worker without processes.
struct Worker {
    job: JobId,
    queue: String,
    held: usize,
    slots: usize,
}

impl Worker {
    async fn register(cx: &Cx, name: &str, queue: &str, slots: usize) -> anyhow::Result<Self> {
        let job = cx.env.job_id();
        let identity = Identity {
            job_id: job,
            kind: JobKind::Worker,
            name: name.into(),
            host: name.into(),
            pid: 1,
            pid_start: 1,
            boot_id: "boot".into(),
            machine_id: name.into(),
            home_id: name.into(),
            registration: 1,
            version: "0".into(),
            queues: vec![queue.into()],
            slots: u32::try_from(slots)?,
            lease_ttl: Some(TTL),
        };
        register::register(cx, &identity).await?;
        Ok(Self { job, queue: queue.into(), held: 0, slots })
    }

    fn beats(&self, cx: &Cx) -> tokio::task::JoinHandle<()> {
        let (cx, job) = (cx.clone(), self.job);
        tokio::spawn(async move {
            for seq in 1.. {
                // A beat that fails is missed.
                let _ = renew(&cx, &[Beat { job, seq, loop_age: Span::ZERO }]).await;
                pause(Duration::from_secs(1)).await;
            }
        })
    }

    /// Claims and starts what waits in its queue; the tokens.
    async fn take(&mut self, cx: &Cx) -> anyhow::Result<Vec<Token>> {
        let queues = [self.queue.clone()];
        let free_slots = BATCH.min(u32::try_from(self.slots.saturating_sub(self.held))?);
        let wants = Wants { call: 0, held: &[], queues: &queues, free_slots };
        let work = claim::claim(cx, self.job, &wants).await?;
        let tokens: Vec<Token> = work.claimed.iter().map(|(attempt, _)| attempt.token).collect();
        if tokens.is_empty() {
            pause(Duration::from_millis(5)).await;
            return Ok(tokens);
        }
        let start = |token: &Token| StartRequest {
            token: *token,
            start_id: token.to_string(),
            boot_id: "boot".into(),
            call: 0,
        };
        let starts: Vec<StartRequest> = tokens.iter().map(start).collect();
        start::start(cx, self.job, &starts).await?;
        self.held += tokens.len();
        Ok(tokens)
    }

    /// Triggers one run after the other; how long each waited for its claim, in seconds.
    async fn latencies(
        &mut self,
        cx: &Cx,
        is_over: &dyn Fn() -> bool,
        most: usize,
    ) -> anyhow::Result<Vec<f64>> {
        let mut waits = Vec::new();
        while !is_over() && waits.len() < most {
            let began = instant();
            trigger(cx, "other").await?;
            let tokens = loop {
                let tokens = self.take(cx).await?;
                if !tokens.is_empty() {
                    break tokens;
                }
            };
            waits.push(began.elapsed().as_secs_f64());
            let reports = tokens.iter().map(|token| fencepost_bench::ended(*token)).collect();
            fencepost_engine::operations::report::report(cx, self.job, reports).await?;
            self.held -= tokens.len();
            pause(Duration::from_millis(100)).await;
        }
        Ok(waits)
    }
}

struct Waits {
    count: usize,
    median: f64,
    worst: f64,
}

impl Waits {
    fn of(mut waits: Vec<f64>) -> Self {
        waits.sort_by(f64::total_cmp);
        let at = |n: usize| waits.get(n).copied().unwrap_or(0.0);
        Self {
            count: waits.len(),
            median: at(waits.len() / 2),
            worst: at(waits.len().saturating_sub(1)),
        }
    }
}

/// The most memory that a process took until it is over.
fn peak_mb(pid: u32, is_over: &AtomicBool) -> anyhow::Result<f64> {
    let mut most = 0.0_f64;
    while !is_over.load(Ordering::Relaxed) {
        most = most.max(pss_mb(pid)?);
        #[expect(clippy::disallowed_methods, reason = "a bench waits")]
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(most)
}

/// Seconds between the stages of the recovery, by the store's clock.
struct Stages {
    declared: f64,
    settled: f64,
    queued: f64,
}

struct Times<'a> {
    stores: &'a Stores,
    attempts: usize,
}

const STAGES: &str = "SELECT
    (SELECT min(e.at) - max(j.renewed_at) FROM event e, job j WHERE e.kind = 'job_lost' AND j.name = 'doomed'),
    (SELECT max(at) FROM event WHERE kind = 'job_settled')
        - (SELECT min(at) FROM event WHERE kind = 'job_lost'),
    (SELECT max(queued_at) FROM attempt WHERE why = 'replaces')
        - (SELECT min(at) FROM event WHERE kind = 'job_lost'),
    (SELECT count(*) FROM attempt WHERE why = 'replaces' AND state = 'queued')";

impl Times<'_> {
    /// Waits until all of them are queued anew.
    async fn wait(&self) -> anyhow::Result<Stages> {
        for _ in 0..600 {
            pause(Duration::from_secs(1)).await;
            let text = self.stores.server().sql("recovery", STAGES)?;
            let numbers: Vec<f64> = text.trim().split('|').filter_map(|n| n.parse().ok()).collect();
            if let [declared, settled, queued, count] = numbers[..]
                && count >= self.attempts as f64
            {
                let [declared, settled, queued] = [declared, settled, queued].map(|n| n / 1e6);
                return Ok(Stages { declared, settled, queued });
            }
        }
        anyhow::bail!("not recovered in ten minutes")
    }
}
