//! What the heartbeats of many workers cost the store: each is a job that beats every five seconds over
//! the execution API of one server.
//!
//! `cargo run --release -p fencepost-bench --bin heartbeats [-- --workers N --seconds N]`
//! prints the store's transactions a second as PostgreSQL counts them, the share of the job table's updates
//! that were made in place (HOT), the size of that table, and the CPU of the server and of PostgreSQL.

use anyhow::Context as _;
use fencepost_api::execution::{Beat, ExecutionApi};
use fencepost_bench::cluster::Driver;
use fencepost_bench::stores::Stores;
use fencepost_bench::watched::{Counts, cpu_seconds};
use fencepost_bench::{Rig, argument, instant, out, pause};
use fencepost_engine::{Cx, Settings};
use fencepost_server::execution::Execution;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// The default `heartbeat_interval`.
const INTERVAL: Duration = Duration::from_secs(5);

fn main() -> anyhow::Result<()> {
    let workers = argument("--workers").unwrap_or(1_000);
    let seconds = argument("--seconds").unwrap_or(30);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stores = Stores::new("")?;
    runtime.block_on(measure(&stores, workers, Duration::from_secs(seconds as u64)))
}

async fn measure(stores: &Stores, workers: usize, span: Duration) -> anyhow::Result<()> {
    let place = stores.place(Stores::POSTGRES, "beats")?;
    let rig = Rig::on(place.open("scheduler").await?, 128).await?;
    let cx = Cx::new(place.open("server").await?, rig.cx.env.clone(), Settings::default());
    let api: Arc<dyn ExecutionApi> = Arc::new(Execution::new(cx));
    let mut fleet = Vec::with_capacity(workers);
    for n in 0..workers {
        let worker = Driver::new(Arc::clone(&api), rig.cx.env.job_id().to_string());
        worker.register(n).await?;
        fleet.push(worker.job_id().to_owned());
    }
    let beats = Arc::new(AtomicUsize::new(0));
    let mut hearts = JoinSet::new();
    for (n, job_id) in fleet.into_iter().enumerate() {
        // Spread over the interval, as those of workers are that were started at different times.
        let first = INTERVAL.mul_f64(n as f64 / workers as f64);
        hearts.spawn(heart(Arc::clone(&api), job_id, first, Arc::clone(&beats)));
    }
    // A round of beats first: connections and statements are made, the table has its size.
    let warm = INTERVAL + Duration::from_secs(3);
    watch(&mut hearts, warm).await?;
    let (before, cpu) = (Counts::read(stores.server(), "beats")?, cpu_seconds(stores.server())?);
    let (began, beaten) = (instant(), beats.load(Ordering::Relaxed));
    watch(&mut hearts, span).await?;
    let (counts, own) = (Counts::read(stores.server(), "beats")?, cpu_seconds(stores.server())?);
    let took = began.elapsed().as_secs_f64();
    let made = (beats.load(Ordering::Relaxed) - beaten) as f64 / took;
    let hot = 100.0 * (counts.hot - before.hot) / (counts.updates - before.updates).max(1.0);
    out(&format!("{workers} workers, a beat every {} s, {took:.0} s", INTERVAL.as_secs()));
    out(&format!("  beats that were answered   {made:9.1} /s"));
    let rate = (counts.transactions - before.transactions) / took;
    out(&format!("  transactions               {rate:9.1} /s   (aim: under 20)"));
    out(&format!("  updates in place (HOT)     {hot:9.1} %    (aim: at least 95)"));
    out(&format!("  size of the job table      {:9.1} kB", counts.job_bytes / 1024.0));
    let share = |after: f64, before: f64| 100.0 * (after - before) / took;
    let (server, postgres) = (share(own.own, cpu.own), share(own.postgres, cpu.postgres));
    out(&format!("  CPU of server and workers  {server:9.1} %    of a core"));
    out(&format!("  CPU of PostgreSQL          {postgres:9.1} %    of a core"));
    Ok(())
}

/// Waits, unless a heart fails.
async fn watch(hearts: &mut JoinSet<anyhow::Result<()>>, span: Duration) -> anyhow::Result<()> {
    tokio::select! {
        () = pause(span) => Ok(()),
        ended = hearts.join_next() => ended.context("there are no hearts")??,
    }
}

async fn heart(
    api: Arc<dyn ExecutionApi>,
    job_id: String,
    first: Duration,
    beats: Arc<AtomicUsize>,
) -> anyhow::Result<()> {
    let mut next = instant() + first;
    for seq in 1_i64.. {
        pause(next.saturating_duration_since(instant())).await;
        next += INTERVAL;
        let beat = json!({ "job_id": job_id, "seq": seq, "inventory": [] });
        let beat: Beat = serde_json::from_value(beat)?;
        let beaten = api.beat(beat).await.map_err(|problem| anyhow::anyhow!("{problem:?}"))?;
        anyhow::ensure!(!beaten.is_over, "a worker that beats is over");
        beats.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
