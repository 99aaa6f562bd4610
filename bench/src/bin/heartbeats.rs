//! What the heartbeats of many workers cost the store, and what an hour of them leaves of its lease table.
//!
//! `cargo run --release -p fencepost-bench --bin heartbeats [-- --workers N --servers N --seconds N --hours N]`
//!
//! First at the real pace: each worker is a job with a lease that beats every five seconds over the execution
//! API of one of the servers, while a scheduler observes the leases. Then an hour in less time: as many
//! renewals as the workers of one hour send, by the servers' own transaction, a few connections at once and
//! without a pause. Autovacuum is as PostgreSQL ships it, so it comes once a minute of the short time, and an
//! hour in two minutes is thirty times harder on it than the hour.
//! Exit 1 if a bound is missed.

use anyhow::Context as _;
use fencepost_api::execution::{Beat, ExecutionApi};
use fencepost_bench::cluster::Driver;
use fencepost_bench::stores::{Place, Stores};
use fencepost_bench::watched::{Counts, cpu_seconds};
use fencepost_bench::{Rig, argument, instant, out, pause};
use fencepost_core::id::JobId;
use fencepost_core::time::Span;
use fencepost_engine::liveness::Watch;
use fencepost_engine::operations::beat::{self as beats, Says};
use fencepost_engine::{Cx, Pass, Settings};
use fencepost_server::execution::Execution;
use fencepost_server::render::Renderer;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// The default `heartbeat_interval`.
const INTERVAL: Duration = Duration::from_secs(5);
/// Beats of a worker in an hour.
const OF_AN_HOUR: usize = 720;
/// Connections that renew at once in the short hour, and beats of one transaction: as many as wait when a server
/// flushes at the real pace.
const AT_ONCE: usize = 4;
const OF_A_FLUSH: usize = 200;
/// Registrations under way at once.
const REGISTERING: usize = 32;
const DATABASE: &str = "beats";

fn main() -> anyhow::Result<()> {
    let workers = argument("--workers").unwrap_or(10_000);
    let servers = argument("--servers").unwrap_or(2).max(1);
    let seconds = argument("--seconds").unwrap_or(30);
    let hours = argument("--hours").unwrap_or(1);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stores = Stores::new("")?;
    let bench = Bench { stores: &stores, workers, servers };
    let missed = runtime.block_on(bench.measure(Duration::from_secs(seconds as u64), hours))?;
    anyhow::ensure!(missed == 0, "{missed} bounds are missed");
    Ok(())
}

struct Bench<'a> {
    stores: &'a Stores,
    workers: usize,
    servers: usize,
}

/// Lines of a table that are compared with a bound.
struct Table {
    missed: usize,
    /// Bytes of the job table at its smallest.
    smallest: f64,
}

impl Table {
    fn bound(&mut self, what: &str, figure: &str, bound: &str, holds: bool) {
        self.missed += usize::from(!holds);
        let verdict = if holds { "ok" } else { "MISSED" };
        out(&format!("  {what:<34} {figure:>14}   {bound:<16} {verdict}"));
    }

    fn line(what: &str, figure: &str) {
        out(&format!("  {what:<34} {figure:>14}"));
    }
}

impl Bench<'_> {
    async fn measure(&self, span: Duration, hours: usize) -> anyhow::Result<usize> {
        let place = self.stores.place(Stores::POSTGRES, DATABASE)?;
        let rig = Rig::on(place.open("scheduler").await?, 128).await?;
        let mut apis: Vec<Arc<dyn ExecutionApi>> = Vec::new();
        for _ in 0..self.servers {
            apis.push(Arc::new(Execution::new(
                self.cx(&rig, &place, "server").await?,
                Renderer::without_keys(),
            )));
        }
        let fleet = self.register(&rig, &apis).await?;
        self.stores.server().sql(DATABASE, "VACUUM FULL job")?;
        let smallest = Counts::read(self.stores.server(), DATABASE)?.job_bytes;
        let watch = tokio::spawn(observe(rig.cx.clone()));
        let mut table = Table { missed: 0, smallest };
        let last = self.real_pace(&apis, &fleet, span, &mut table).await?;
        self.short_hour(&rig, &place, (&fleet, last, hours), &mut table).await?;
        watch.abort();
        Ok(table.missed)
    }

    async fn cx(&self, rig: &Rig, place: &Place, role: &str) -> anyhow::Result<Cx> {
        Ok(Cx::new(place.open(role).await?, rig.cx.env.clone(), Settings::default()))
    }

    async fn register(
        &self,
        rig: &Rig,
        apis: &[Arc<dyn ExecutionApi>],
    ) -> anyhow::Result<Vec<String>> {
        let (mut fleet, mut under_way) = (Vec::with_capacity(self.workers), JoinSet::new());
        for n in 0..self.workers {
            if under_way.len() == REGISTERING {
                under_way.join_next().await.context("nothing is under way")???;
            }
            let api = Arc::clone(&apis[n % apis.len()]);
            let worker = Driver::new(api, rig.cx.env.job_id().to_string()).leased();
            fleet.push(worker.job_id().to_owned());
            under_way.spawn(async move { worker.register(n).await });
        }
        while let Some(registered) = under_way.join_next().await {
            registered??;
        }
        Ok(fleet)
    }

    /// Every worker beats every five seconds; the number of the last beats.
    async fn real_pace(
        &self,
        apis: &[Arc<dyn ExecutionApi>],
        fleet: &[String],
        span: Duration,
        table: &mut Table,
    ) -> anyhow::Result<i64> {
        let server = self.stores.server();
        let beaten = Arc::new(AtomicUsize::new(0));
        let mut hearts = JoinSet::new();
        for (n, job_id) in fleet.iter().enumerate() {
            // Spread over the interval, as those of workers are that were started at different times.
            let first = INTERVAL.mul_f64(n as f64 / fleet.len() as f64);
            let api = Arc::clone(&apis[n % apis.len()]);
            hearts.spawn(heart(api, job_id.clone(), first, Arc::clone(&beaten)));
        }
        // A round of beats first: connections and statements are made, the table has its size.
        watch(&mut hearts, INTERVAL + Duration::from_secs(3)).await?;
        let (before, cpu) = (Counts::read(server, DATABASE)?, cpu_seconds(server)?);
        let (began, had) = (instant(), beaten.load(Ordering::Relaxed));
        watch(&mut hearts, span).await?;
        let (counts, own) = (Counts::read(server, DATABASE)?, cpu_seconds(server)?);
        let took = began.elapsed().as_secs_f64();
        let rate = (beaten.load(Ordering::Relaxed) - had) as f64 / took;
        hearts.shutdown().await;
        out(&format!(
            "{} workers, {} servers, a scheduler; a beat every {} s, {took:.0} s",
            self.workers,
            self.servers,
            INTERVAL.as_secs()
        ));
        let due = self.workers as f64 / INTERVAL.as_secs_f64();
        let is_kept = rate >= 0.98 * due;
        table.bound(
            "beats that were answered",
            &format!("{rate:.1} /s"),
            &format!("{due:.0} /s"),
            is_kept,
        );
        let rate = (counts.transactions - before.transactions) / took;
        table.bound(
            "transactions of the store",
            &format!("{rate:.1} /s"),
            "under 50 /s",
            rate < 50.0,
        );
        let hot = hot(&before, &counts);
        table.bound("updates in place (HOT)", &format!("{hot:.2} %"), "at least 95 %", hot >= 95.0);
        let share = |after: f64, before: f64| format!("{:.1} %", 100.0 * (after - before) / took);
        Table::line("CPU of servers and workers", &share(own.own, cpu.own));
        Table::line("CPU of PostgreSQL", &share(own.postgres, cpu.postgres));
        Ok(i64::try_from((span + INTERVAL * 4).as_secs())?)
    }

    /// As many renewals as there are in so many hours, by the transaction of the servers.
    async fn short_hour(
        &self,
        rig: &Rig,
        place: &Place,
        (fleet, last, hours): (&[String], i64, usize),
        table: &mut Table,
    ) -> anyhow::Result<()> {
        let server = self.stores.server();
        let before = Counts::read(server, DATABASE)?;
        let began = instant();
        let mut renewing = JoinSet::new();
        for part in 0..AT_ONCE {
            let own = fleet.iter().skip(part).step_by(AT_ONCE);
            let jobs: Vec<JobId> = own.map(|job| job.parse()).collect::<Result<_, _>>()?;
            let cx = self.cx(rig, place, "server").await?;
            renewing.spawn(renew(cx, jobs, last, OF_AN_HOUR * hours));
        }
        let mut largest = before.job_bytes;
        loop {
            tokio::select! {
                ended = renewing.join_next() => match ended {
                    Some(ended) => ended??,
                    None => break,
                },
                () = pause(Duration::from_secs(2)) => {
                    largest = largest.max(Counts::read(server, DATABASE)?.job_bytes);
                }
            }
        }
        let took = began.elapsed().as_secs_f64();
        // What it counts comes a little late.
        pause(Duration::from_secs(2)).await;
        let after = Counts::read(server, DATABASE)?;
        largest = largest.max(after.job_bytes);
        let renewals = after.updates - before.updates;
        let wanted = (self.workers * OF_AN_HOUR * hours) as f64;
        out(&format!("{hours} h of these renewals in {took:.0} s, {OF_A_FLUSH} a transaction"));
        let is_all = renewals >= 0.99 * wanted;
        table.bound("renewals", &format!("{renewals:.0}"), &format!("{wanted:.0}"), is_all);
        let hot = hot(&before, &after);
        table.bound("updates in place (HOT)", &format!("{hot:.2} %"), "at least 95 %", hot >= 95.0);
        let kb = |bytes: f64| format!("{:.0} kB", bytes / 1024.0);
        Table::line("job table with its indexes, least", &kb(table.smallest));
        let times = largest / table.smallest;
        let figure = format!("{}, {times:.1} x", kb(largest));
        table.bound("the same, largest", &figure, "within 10 x", times <= 10.0);
        Ok(())
    }
}

fn hot(before: &Counts, after: &Counts) -> f64 {
    100.0 * (after.hot - before.hot) / (after.updates - before.updates).max(1.0)
}

/// A scheduler observes the leases.
async fn observe(cx: Cx) -> anyhow::Result<()> {
    let mut watch = Watch::default();
    loop {
        watch.pass(&cx).await?;
        pause(Duration::from_secs(2)).await;
    }
}

/// Renews each of the jobs so often, a flush at a time, in another order each round.
async fn renew(cx: Cx, mut jobs: Vec<JobId>, last: i64, rounds: usize) -> anyhow::Result<()> {
    for round in 0..rounds {
        let turned = round % jobs.len().max(1);
        jobs.rotate_left(turned);
        let seq = last + i64::try_from(round)? + 1;
        for flush in jobs.chunks(OF_A_FLUSH) {
            let batch: Vec<beats::Beat> = flush.iter().map(|job| beat(*job, seq)).collect();
            beats::take(&cx, &batch).await?;
        }
    }
    Ok(())
}

fn beat(job_id: JobId, seq: i64) -> beats::Beat {
    beats::Beat {
        job_id,
        seq,
        loop_age: Span::ZERO,
        call: seq,
        inventory: Vec::new(),
        says: Says::Nothing,
        unanswered: Vec::new(),
        unstarted: Vec::new(),
        epoch: 0,
        reconciles: false,
        checkpoints: Vec::new(),
        levels: Vec::new(),
    }
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
