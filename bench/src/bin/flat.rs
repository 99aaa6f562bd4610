//! Is the cost of a task instance flat? As one run grows from 100 to 10,000 tasks, and as the store
//! fills with a million finished instances.
//!
//! `cargo run --release -p fencepost-bench --bin flat [-- --finished N --rounds N]`
//! prints microseconds per task instance and two ratios, for both stores. Both sides of a ratio are
//! measured in turns in one run, and the best of the rounds counts, so that a noisy machine does not decide.

use fencepost_bench::stores::Stores;
use fencepost_bench::{Rig, argument, best, fan, history, out};

/// Slots of the pool.
const SLOTS: i64 = 128;

fn main() -> anyhow::Result<()> {
    let finished = argument("--finished").unwrap_or(1_000_000);
    let rounds = argument("--rounds").unwrap_or(3);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let stores = Stores::new("")?;
    out(&format!("cost per task instance, best of {rounds} rounds"));
    for kind in Stores::KINDS {
        out(kind);
        runtime.block_on(of_runs(&stores, kind, rounds))?;
        runtime.block_on(of_history(&stores, kind, rounds, finished))?;
    }
    Ok(())
}

async fn of_runs(stores: &Stores, kind: &str, rounds: usize) -> anyhow::Result<()> {
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let fresh = async |name: &str, width: usize| {
            let place = stores.place(kind, &format!("{name}_{round}"))?;
            let rig = Rig::on(place.open("bench").await?, SLOTS).await?;
            rig.load("fan", &fan(width)).await?;
            anyhow::Ok(rig)
        };
        small.push(fresh("small", 98).await?.cost("fan", 20).await?);
        large.push(fresh("large", 9_998).await?.cost("fan", 1).await?);
    }
    table(("20 runs of 100 tasks", &small), ("1 run of 10,000 tasks", &large), "1.5");
    Ok(())
}

async fn of_history(
    stores: &Stores,
    kind: &str,
    rounds: usize,
    finished: usize,
) -> anyhow::Result<()> {
    let mut rigs = Vec::new();
    for name in ["empty", "filled"] {
        let place = stores.place(kind, name)?;
        let rig = Rig::on(place.open("bench").await?, SLOTS).await?;
        rig.load("small", &fan(98)).await?;
        if name == "filled" {
            history::fill(&place, "small", finished).await?;
        }
        // What is made once (statements, pages in memory) is no cost of an instance.
        rigs.push((rig, Vec::new()));
    }
    for (rig, _) in &mut rigs {
        rig.cost("small", 1).await?;
    }
    for _ in 0..rounds {
        for (rig, costs) in &mut rigs {
            costs.push(rig.cost("small", 10).await?);
        }
    }
    let name = format!("{finished} finished instances");
    if let [(_, empty), (_, full)] = &rigs[..] {
        table(("an empty store", empty), (&name, full), "1.2");
    }
    Ok(())
}

fn table(one: (&str, &[f64]), other: (&str, &[f64]), aim: &str) {
    let (before, after) = (best(one.1), best(other.1));
    out(&format!("  {:<28} {before:8.1} us", one.0));
    out(&format!("  {:<28} {after:8.1} us", other.0));
    out(&format!("  {:<28} {:8.2}  (aim: under {aim})", "ratio", after / before));
}
