//! Does an instance of a wide mapped task cost what one of a small one does? A task that is mapped over what a
//! template gives, 1,000 and 100,000 wide, on PostgreSQL.
//!
//! `cargo run --release -p fencepost-bench --bin mapped [-- --width N --rounds N]`
//! prints microseconds per instance (made, dispatched, started, reported, rolled up), their ratio, and the most
//! memory that this one process had: scheduler, server and a worker without processes together. Both sides are
//! measured in one run, the small one several times before and after, and its best counts. Exit status 1 if a
//! bound is missed.

use fencepost_bench::stores::Stores;
use fencepost_bench::watched::peak_rss_mb;
use fencepost_bench::{Rig, argument, best, out};

/// The bounds of the must-show.
const RATIO: f64 = 1.5;
const MEGABYTES: f64 = 400.0;
const SMALL: usize = 1_000;

fn main() -> anyhow::Result<()> {
    let width = argument("--width").unwrap_or(100_000);
    let rounds = argument("--rounds").unwrap_or(3);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let stores = Stores::new("")?;
    runtime.block_on(measure(&stores, width, rounds))
}

async fn measure(stores: &Stores, width: usize, rounds: usize) -> anyhow::Result<()> {
    let mut small = Vec::new();
    for round in 0..rounds {
        small.push(cost(stores, &format!("small_{round}"), SMALL).await?);
    }
    let large = cost(stores, "large", width).await?;
    let memory = peak_rss_mb()?;
    for round in rounds..2 * rounds {
        small.push(cost(stores, &format!("small_{round}"), SMALL).await?);
    }
    let small = best(&small);
    out(&format!("  mapped {SMALL:>7} wide  {small:10.1} us an instance"));
    out(&format!("  mapped {width:>7} wide  {large:10.1} us an instance"));
    out(&format!("  ratio                {:10.2}  (bound: {RATIO})", large / small));
    out(&format!("  most memory          {memory:10.1} MB (bound: {MEGABYTES})"));
    anyhow::ensure!(large / small < RATIO, "a wide task costs too much");
    anyhow::ensure!(memory < MEGABYTES, "too much memory");
    Ok(())
}

async fn cost(stores: &Stores, name: &str, width: usize) -> anyhow::Result<f64> {
    let place = stores.place(Stores::POSTGRES, name)?;
    let mut rig = Rig::on(place.open("bench").await?, 128).await?;
    rig.load("mapped", &mapped(width)).await?;
    rig.cost("mapped", 1).await
}

/// A task, one mapped so many times over a template, and one after all of those.
fn mapped(width: usize) -> String {
    let (outer, inner) = (width.div_ceil(1_000), width.min(1_000));
    format!(
        "max_active_tasks: 1000000\ntasks:\n  before: {{command: [\"true\"]}}\n  t:\n    \
         command: [\"true\"]\n    depends_on: [before]\n    expand:\n      \
         a: \"{{{{ range({outer}) | list }}}}\"\n      b: \"{{{{ range({inner}) | list }}}}\"\n  \
         after: {{command: [\"true\"], depends_on: [t]}}\n"
    )
}
