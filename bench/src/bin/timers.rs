//! What very many waits cost the one triggerer that watches them: 50,000 timers that come due at one instant.
//!
//! `cargo build --release -p fencepost-cli && cargo run --release -p fencepost-bench --bin timers [-- --timers N]`
//! Server, scheduler and triggerer are the shipped binary, on PostgreSQL. Prints the triggerer's memory (PSS) while it
//! watches all of them, the most that it had until the last one fired, how long that took, and that each fired
//! once. Exit status 1 if a bound is missed.

use anyhow::Context as _;
use fencepost_bench::roles::Installation;
use fencepost_bench::stores::{Place, Stores};
use fencepost_bench::watched::pss_mb;
use fencepost_bench::{argument, instant, out, pause};
use std::path::Path;
use std::time::Duration;

/// The bound of the must-show.
const MEGABYTES: f64 = 150.0;
/// How long something is waited for.
const PATIENCE: Duration = Duration::from_mins(20);

fn main() -> anyhow::Result<()> {
    let binary = std::env::args().skip(1).find(|argument| argument.ends_with("fencepost"));
    let binary = binary.unwrap_or_else(|| "target/release/fencepost".into());
    let timers = argument("--timers").unwrap_or(50_000);
    let stores = Stores::new("")?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(measure(&stores, Path::new(&binary), timers))
}

async fn measure(stores: &Stores, binary: &Path, timers: usize) -> anyhow::Result<()> {
    let place = stores.place(Stores::POSTGRES, "timers")?;
    let Place::Postgres(url) = &place else { anyhow::bail!("not PostgreSQL") };
    drop(place.open("bench").await?);
    let mut installation = Installation::new(binary, stores.folder(), url.clone())?;
    std::fs::write(installation.dags().join("many.yaml"), many(timers))?;
    installation.server()?;
    installation.scheduler()?;
    installation.triggerer()?;
    let triggerer = *installation.pids().last().context("no triggerer")?;
    let count = |what: &str| -> anyhow::Result<usize> {
        let counted = stores.server().sql("timers", &format!("SELECT count(*) FROM {what}"))?;
        Ok(counted.trim().parse()?)
    };
    until(|| Ok(count("dag")? == 1)).await?;
    installation.trigger("many")?;
    let began = instant();
    until(|| Ok(count("trigger")? == timers)).await?;
    out(&format!("{timers} timers wait ({:.0} s)", began.elapsed().as_secs_f64()));
    let calm = pss_mb(triggerer)?;
    let mut most = calm;
    // They are made due at one instant, which no clock of this bench has to wait for.
    stores.server().sql("timers", "UPDATE trigger SET due_at = 1")?;
    let began = instant();
    until(|| {
        most = most.max(pss_mb(triggerer)?);
        Ok(count("task_instance WHERE state = 'success'")? == timers)
    })
    .await?;
    let took = began.elapsed().as_secs_f64();
    let ends = count("event WHERE from_state = 'deferred'")?;
    out(&format!("  memory while they wait     {calm:8.1} MB (bound: {MEGABYTES})"));
    out(&format!("  memory, most               {most:8.1} MB"));
    out(&format!("  due to the last one fired  {took:8.1} s  ({:.0} /s)", timers as f64 / took));
    anyhow::ensure!(ends == timers, "{ends} ends of {timers} waits");
    anyhow::ensure!(most < MEGABYTES, "too much memory");
    Ok(())
}

async fn until(mut is: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let began = instant();
    while !is()? {
        anyhow::ensure!(began.elapsed() < PATIENCE, "waited in vain");
        pause(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// A wait that is mapped so many times.
fn many(timers: usize) -> String {
    let list = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let (inner, outer) = (timers.min(1_000), timers.div_ceil(1_000));
    format!(
        "max_active_tasks: 1000000\ntasks:\n  t:\n    wait: {{interval: 1d}}\n    expand:\n      \
         a: [{}]\n      b: [{}]\n",
        list(outer),
        list(inner)
    )
}
