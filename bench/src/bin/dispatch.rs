//! Task instances a second, against what the same machine and database can do at the least.
//!
//! `cargo run --release -p fencepost-bench --bin dispatch [-- --instances N --rounds N]`
//! starts a PostgreSQL of its own (durable: fsync on) and prints a table with ratios. Floor and
//! figure are measured in turns in one run, and the best round counts.

use fencepost_bench::cluster::{Cluster, Place};
use fencepost_bench::floor::{self, spawn};
use fencepost_bench::{independent, most, ten_tasks};
use std::path::Path;

const BATCH: i64 = 100;
/// Connections of the floor and drivers of ours: the better of one and of these counts.
const MANY: usize = 4;
/// Instances of a run of the second shape.
const TEN: usize = 10;
/// A server that keeps what it promises.
const DURABLE: &str = "fsync = on\nfull_page_writes = on\nsynchronous_commit = on\n\
    shared_buffers = 256MB\nmax_wal_size = 4GB\nautovacuum_naptime = 60s\n";

fn main() -> anyhow::Result<()> {
    let instances = argument("--instances").unwrap_or(20_000);
    let rounds = argument("--rounds").unwrap_or(3);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let folder = tempfile::tempdir()?;
    let server = fencepost_testing::Cluster::start_with(&folder.path().join("pg"), DURABLE)?;
    runtime.block_on(stores(&server, folder.path(), instances, rounds))?;
    processes(folder.path())
}

fn argument(name: &str) -> Option<usize> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument == name)?;
    arguments.next()?.parse().ok()
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn line(what: &str, figure: f64, floor: Option<(f64, &str)>) {
    let ratio = floor.map_or_else(String::new, |(floor, aim)| {
        format!("   {:.2} of the floor (aim: {aim})", figure / floor)
    });
    println!("  {what:<44} {figure:>9.0} /s{ratio}");
}

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn title(text: &str) {
    println!("{text}");
}

async fn stores(
    server: &fencepost_testing::Cluster,
    folder: &Path,
    instances: usize,
    rounds: usize,
) -> anyhow::Result<()> {
    let rows = i64::try_from(instances)?;
    let (mut raw, mut raw_many) = (Vec::new(), Vec::new());
    let (mut flat, mut runs) = (Vec::new(), Vec::new());
    let url = server.url("postgres");
    for round in 0..rounds {
        raw.push(floor::postgres::batched(&url, rows, BATCH, 1).await?);
        raw_many.push(floor::postgres::batched(&url, rows, BATCH, MANY).await?);
        let place = |shape: &str| -> anyhow::Result<Place> {
            let name = format!("{shape}_{round}");
            server.sql("postgres", &format!("CREATE DATABASE {name}"))?;
            Ok(Place::Postgres(server.url(&name)))
        };
        flat.push(flat_rate(&place("flat")?, instances).await?);
        runs.push(runs_rate(&place("runs")?, instances / TEN).await?);
    }
    let floor = most(&raw).max(most(&raw_many));
    title(&format!("PostgreSQL, batches of {BATCH}, best of {rounds} rounds"));
    line("raw claim + complete, 1 connection", most(&raw), None);
    line(&format!("raw claim + complete, {MANY} connections"), most(&raw_many), None);
    let single = floor::postgres::single(&url, server.bin(), 4).await?;
    line("pgbench, a row a transaction, 4 clients", single, None);
    line("independent task instances", most(&flat), Some((floor, "0.3")));
    line(&format!("{} runs of a DAG of {TEN}", instances / TEN), most(&runs), Some((floor, "0.2")));
    sqlite(folder, instances, rounds).await
}

async fn sqlite(folder: &Path, instances: usize, rounds: usize) -> anyhow::Result<()> {
    let (mut raw, mut flat, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let own = folder.join(format!("sqlite-{round}"));
        std::fs::create_dir(&own)?;
        raw.push(floor::sqlite::batched(&own, i64::try_from(instances)?, BATCH)?);
        flat.push(flat_rate(&Place::Sqlite(own.join("flat.db")), instances).await?);
        runs.push(runs_rate(&Place::Sqlite(own.join("runs.db")), instances / TEN).await?);
    }
    let floor = most(&raw);
    title(&format!("SQLite, batches of {BATCH}, best of {rounds} rounds"));
    line("raw claim + complete", floor, None);
    line("independent task instances", most(&flat), Some((floor, "0.3")));
    line(&format!("{} runs of a DAG of {TEN}", instances / TEN), most(&runs), Some((floor, "0.2")));
    Ok(())
}

/// Runs of a DAG whose tasks know nothing of each other.
async fn flat_rate(place: &Place, instances: usize) -> anyhow::Result<f64> {
    const WIDTH: usize = 1_000;
    let cluster = Cluster::new(place, 1_000_000).await?;
    cluster.rig.load("flat", &independent(WIDTH)).await?;
    let runs = instances.div_ceil(WIDTH);
    rate(&cluster, "flat", runs, runs * WIDTH).await
}

async fn runs_rate(place: &Place, runs: usize) -> anyhow::Result<f64> {
    let cluster = Cluster::new(place, 1_000_000).await?;
    cluster.rig.load("ten", &ten_tasks()).await?;
    rate(&cluster, "ten", runs, runs * TEN).await
}

async fn rate(cluster: &Cluster, dag: &str, runs: usize, all: usize) -> anyhow::Result<f64> {
    for _ in 0..runs {
        cluster.rig.trigger(dag).await?;
    }
    let took = cluster.complete(all, MANY).await?;
    Ok(all as f64 / took.as_secs_f64())
}

fn processes(folder: &Path) -> anyhow::Result<()> {
    const COUNT: usize = 400;
    let binary = Path::new("target/release/fencepost");
    title("processes, 4 at a time");
    line("fork + exec of `true`", spawn::fork_exec(COUNT, MANY)?, None);
    if !binary.exists() {
        title("  no target/release/fencepost: build fencepost-cli first for the rest");
        return Ok(());
    }
    line("shim around `true`", spawn::shims(folder, binary, COUNT, MANY)?, None);
    Ok(())
}
