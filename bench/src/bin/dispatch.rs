//! Task instances a second, against what the same machine and database can do at the least.
//!
//! `cargo run --release -p fencepost-bench --bin dispatch [-- --instances N --rounds N --statements]`
//! starts a PostgreSQL of its own (durable: fsync on) and prints a table with ratios. Floor and
//! figure are measured in turns in one run, and the best round counts. With `--statements` it also prints
//! what PostgreSQL spent on which statements. The last part needs target/release/fencepost.

use anyhow::Context as _;
use fencepost_bench::cluster::Cluster;
use fencepost_bench::floor::{self, spawn};
use fencepost_bench::roles::Installation;
use fencepost_bench::stores::{Place, Stores};
use fencepost_bench::{
    argument, independent, instant, is_asked, most, out, pause, statements, ten_tasks,
};
use std::path::Path;
use std::time::Duration;

const BATCH: i64 = 100;
/// Connections of the floor: the better of one and of these counts.
const MANY: usize = 4;
/// Workers that claim and complete.
const DRIVERS: usize = 8;
/// Instances of a run of the second shape.
const TEN: usize = 10;
/// Processes of a round.
const PROCESSES: usize = 400;
/// How many of them at a time: the better counts for a floor; a worker has as many slots as the second.
const AT_A_TIME: [usize; 2] = [4, 32];

fn main() -> anyhow::Result<()> {
    let instances = argument("--instances").unwrap_or(20_000);
    let rounds = argument("--rounds").unwrap_or(3);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stores = Stores::new(if is_asked("--statements") { statements::COUNTING } else { "" })?;
    for kind in Stores::KINDS {
        runtime.block_on(store(&stores, kind, instances, rounds))?;
    }
    processes(&runtime, &stores, rounds)
}

fn line(what: &str, figure: f64, floor: Option<(f64, &str)>) {
    let ratio = floor.map_or_else(String::new, |(floor, aim)| {
        format!("   {:.2} of the floor (aim: {aim})", figure / floor)
    });
    out(&format!("  {what:<44} {figure:>9.0} /s{ratio}"));
}

async fn store(stores: &Stores, kind: &str, instances: usize, rounds: usize) -> anyhow::Result<()> {
    let rows = i64::try_from(instances)?;
    let is_postgres = kind == Stores::POSTGRES;
    let url = stores.server().url("postgres");
    let (mut one, mut many, mut flat, mut runs) = (vec![], vec![], vec![], vec![]);
    for round in 0..rounds {
        if is_postgres {
            one.push(floor::postgres::batched(&url, rows, BATCH, 1).await?);
            many.push(floor::postgres::batched(&url, rows, BATCH, MANY).await?);
        } else {
            let own = stores.folder().join(format!("floor-{round}"));
            std::fs::create_dir(&own)?;
            one.push(floor::sqlite::batched(&own, rows, BATCH)?);
        }
        let (of_flat, of_runs) = (format!("flat_{round}"), format!("runs_{round}"));
        flat.push(flat_rate(&stores.place(kind, &of_flat)?, instances).await?);
        runs.push(runs_rate(&stores.place(kind, &of_runs)?, instances / TEN).await?);
        if is_postgres && is_asked("--statements") {
            statements::print(stores.server(), &of_flat)?;
            statements::print(stores.server(), &of_runs)?;
        }
    }
    let floor = most(&one).max(most(&many));
    out(&format!("{kind}, batches of {BATCH}, best of {rounds} rounds"));
    line("raw claim + complete, 1 connection", most(&one), None);
    if is_postgres {
        line(&format!("raw claim + complete, {MANY} connections"), most(&many), None);
        let single = floor::postgres::single(&url, stores.server().bin(), 4).await?;
        line("pgbench, a row a transaction, 4 clients", single, None);
    }
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
    let took = cluster.complete(all, DRIVERS).await?;
    Ok(all as f64 / took.as_secs_f64())
}

fn processes(
    runtime: &tokio::runtime::Runtime,
    stores: &Stores,
    rounds: usize,
) -> anyhow::Result<()> {
    let binary = Path::new("target/release/fencepost");
    let (mut bare, mut shims, mut ours) = (vec![], vec![], vec![]);
    for round in 0..rounds {
        for threads in AT_A_TIME {
            bare.push(spawn::fork_exec(PROCESSES, threads)?);
        }
        if binary.exists() {
            let folder = stores.folder().join(format!("roles-{round}"));
            for threads in AT_A_TIME {
                let own = folder.join(format!("shims-{threads}"));
                std::fs::create_dir_all(&own)?;
                shims.push(spawn::shims(&own, binary, PROCESSES, threads)?);
            }
            let Place::Postgres(url) =
                stores.place(Stores::POSTGRES, &format!("processes_{round}"))?
            else {
                anyhow::bail!("not PostgreSQL");
            };
            ours.push(runtime.block_on(worker_rate(binary, &folder, url))?);
            if is_asked("--statements") {
                statements::print(stores.server(), &format!("processes_{round}"))?;
            }
        }
    }
    let [few, many] = AT_A_TIME;
    out(&format!("processes, {few} and {many} at a time, best of {rounds} rounds"));
    line("fork + exec of `true`", most(&bare), None);
    if ours.is_empty() {
        out("  no target/release/fencepost: build fencepost-cli first for the rest");
        return Ok(());
    }
    line("shim around `true`", most(&shims), None);
    line("`true` as tasks of a worker", most(&ours), Some((most(&shims), "0.6")));
    Ok(())
}

/// A run of no-ops by a server, a scheduler and a worker, from its first start to its last end.
async fn worker_rate(binary: &Path, folder: &Path, url: String) -> anyhow::Result<f64> {
    let mut installation = Installation::new(binary, &folder.join("roles"), url.clone())?;
    std::fs::write(installation.dags().join("noops.yaml"), independent(PROCESSES))?;
    installation.server()?;
    installation.scheduler()?;
    installation.worker(AT_A_TIME[1])?;
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    let until = async |what: &str, text: &str| {
        let began = instant();
        while client.query_opt(text, &[]).await?.is_none() {
            anyhow::ensure!(began.elapsed() < Duration::from_mins(2), "{what}: for too long");
            pause(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    until("loading", "SELECT 1 FROM dag WHERE dag_id = 'noops'").await?;
    installation.trigger("noops")?;
    until("running", "SELECT 1 FROM run WHERE state = 'success'").await?;
    let micros = client
        .query_one("SELECT MAX(ended_at) - MIN(started_at) FROM attempt", &[])
        .await?
        .get::<_, Option<i64>>(0)
        .context("nothing ran")?;
    Ok(PROCESSES as f64 * 1e6 / micros as f64)
}
