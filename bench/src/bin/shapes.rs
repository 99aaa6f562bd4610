//! What a task instance costs in DAGs of different shapes: a chain of 1,000, a fan of 10,000 that
//! comes together again, 1,000 runs of ten tasks.
//!
//! `cargo run --release -p fencepost-bench --bin shapes [-- --scale PERCENT]`
//! prints instances, seconds and microseconds per instance, for both stores. Passes and worker take turns
//! in one thread, so that the figures are those of the work and not of waiting for each other; a chain
//! pays the commits of each step alone.

use fencepost_bench::stores::Stores;
use fencepost_bench::{Rig, argument, chain, fan, out, ten_tasks};

fn main() -> anyhow::Result<()> {
    let scale = argument("--scale").unwrap_or(100);
    let of = |most: usize| (most * scale / 100).max(1);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let stores = Stores::new("")?;
    let shapes = [
        (format!("a chain of {}", of(1_000)), chain(of(1_000)), 1),
        (format!("a fan of {}", of(10_000)), fan(of(10_000)), 1),
        (format!("{} runs of 10 tasks", of(1_000)), ten_tasks(), of(1_000)),
    ];
    for kind in Stores::KINDS {
        out(&format!("{kind:<28} {:>10} {:>8} {:>12}", "instances", "s", "us each"));
        for (n, (name, yaml, runs)) in shapes.iter().enumerate() {
            let place = stores.place(kind, &format!("shape_{n}"))?;
            let (done, took) = runtime.block_on(async {
                let mut rig = Rig::on(place.open("bench").await?, 1_000_000).await?;
                rig.load("shape", yaml).await?;
                rig.runs("shape", *runs).await
            })?;
            let (seconds, each) = (took.as_secs_f64(), fencepost_bench::micros_per(done, took));
            out(&format!("  {name:<26} {done:>10} {seconds:>8.1} {each:>12.1}"));
        }
    }
    Ok(())
}
