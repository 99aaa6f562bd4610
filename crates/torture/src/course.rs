//! The course of a run: start, torture, let it settle, write down, judge.

use crate::check::{Facts, Settled, Verdict, judge};
use crate::clock::{MS, SECOND, boot_ns, pause, wait_until};
use crate::dags::SCHEDULED;
use crate::dump;
use crate::fault::{Kind, Plan};
use crate::installation::{DATABASE, Installation, Make, TTL_NS};
use crate::nemesis;
use crate::person::Person;
use crate::record::Record;
use crate::say;
use anyhow::Context as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Until the first attempts run.
const START_MS: u64 = 120_000;
/// Once the faults have stopped, everything ends within this.
const SETTLE_MS: u64 = 240_000;
/// How often what a fault may have left is undone once more meanwhile.
const HEAL_MS: u64 = 5_000;
/// After the end of the last run nobody of a task lives, and this is how long it is looked for.
const QUIET_MS: u64 = 3_000;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Order {
    pub seconds: u64,
    pub seed: u64,
    pub kinds: Vec<Kind>,
    pub pairs: bool,
    /// People cancel runs and clear tasks meanwhile.
    pub meddles: bool,
    /// Faults wait until so many attempts run.
    pub least: usize,
    pub make: Make,
}

/// Does it, and judges.
pub fn run(order: &Order, interrupted: &AtomicBool) -> anyhow::Result<Verdict> {
    let folder = &order.make.folder;
    // Others read what the database server's user has to read.
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o755).create(folder).with_context(|| folder.display().to_string())?;
    let record = Record::new(folder);
    let it = Installation::start(order.make.clone())?;
    say(&format!("the installation is in {}", folder.display()));
    let settled = under_load(&it, &record, order, interrupted);
    // What it left is of use, whatever became of it.
    let kept = std::fs::copy(it.path("postgresql/log"), it.path("logs/postgresql"));
    drop(kept);
    let settled = settled?;
    std::fs::write(it.path("settled"), serde_json::to_string(&settled)?)?;
    dump::write(&it)?;
    drop(it);
    verdict(folder)
}

/// Judges what is in a folder.
pub fn verdict(folder: &Path) -> anyhow::Result<Verdict> {
    Ok(judge(&Facts::read(folder)?))
}

fn under_load(
    it: &Installation,
    record: &Record,
    order: &Order,
    interrupted: &AtomicBool,
) -> anyhow::Result<Settled> {
    let (triggers_stop, care_stops) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| Person::new(it, record).trigger_until(&triggers_stop));
        scope.spawn(|| Person::new(it, record).look_after_until(&care_stops));
        if order.meddles {
            scope.spawn(|| Person::new(it, record).meddle_until(order.seed, &triggers_stop));
        }
        let least = order.least;
        let started = wait_until(START_MS, || it.shims(None).len() >= least.max(1));
        if started {
            let mut plan = Plan::new(order.seed, &order.kinds, order.pairs);
            let until = boot_ns() + order.seconds * SECOND;
            let until = || if interrupted.load(Ordering::Relaxed) { 0 } else { until };
            say("the faults begin");
            nemesis::torture(it, &mut plan, record, least, &until);
        }
        triggers_stop.store(true, Ordering::Relaxed);
        let settled = settle(it);
        care_stops.store(true, Ordering::Relaxed);
        anyhow::ensure!(started, "no attempt began to run: see {}", it.path("logs").display());
        settled
    })
}

/// Undoes all faults, and waits for the end of all runs.
fn settle(it: &Installation) -> anyhow::Result<Settled> {
    say("the faults have stopped");
    let limit = boot_ns() + SETTLE_MS * MS;
    let (mut is_paused, mut healed_at) = (false, 0);
    let mut is_over = false;
    while boot_ns() < limit && !is_over {
        if boot_ns() > healed_at + HEAL_MS * MS {
            nemesis::heal(it);
            healed_at = boot_ns();
        }
        pause(500);
        let Some(open) = Open::look(it) else { continue };
        // A run that is queued as its DAG is paused would wait for ever: another moment is chosen then.
        let wanted = open.others == 0 && open.queued_slots == 0;
        if wanted == is_paused {
            is_over = is_paused && open.running_slots == 0;
        } else {
            let verb = if wanted { "pause" } else { "unpause" };
            is_paused ^= it.verb(&["dags", verb, SCHEDULED]).is_ok();
        }
    }
    if !is_over {
        explain(it)?;
    }
    let quiet_from = boot_ns() + SECOND;
    pause(QUIET_MS);
    let audit = it.verb(&["doctor"]).err().map(|error| format!("{error:#}"));
    Ok(Settled { quiet_from, audit, ttl_ns: TTL_NS })
}

/// Runs that have not ended.
struct Open {
    others: u32,
    queued_slots: u32,
    running_slots: u32,
}

impl Open {
    /// `None` if the store does not say.
    fn look(it: &Installation) -> Option<Self> {
        let count = |of: &str| format!("count(*) FILTER (WHERE {of})");
        let query = format!(
            "SELECT {}, {}, {} FROM run WHERE state IN ('queued', 'running')",
            count(&format!("dag_id <> '{SCHEDULED}'")),
            count(&format!("dag_id = '{SCHEDULED}' AND state = 'queued'")),
            count(&format!("dag_id = '{SCHEDULED}' AND state = 'running'")),
        );
        let text = it.cluster().sql(DATABASE, &query).ok()?;
        let mut counts = text.trim().split('|').map(str::parse);
        let mut next = || counts.next()?.ok();
        Some(Self { others: next()?, queued_slots: next()?, running_slots: next()? })
    }
}

/// Why what has not ended has not, as the product says.
fn explain(it: &Installation) -> anyhow::Result<()> {
    let open = "SELECT dag_id || ' ' || run_id FROM run WHERE state IN ('queued', 'running')";
    let mut text = String::new();
    for line in it.cluster().sql(DATABASE, open)?.lines() {
        let Some((dag, run)) = line.split_once(' ') else { continue };
        let why = it.verb(&["explain", dag, run]).unwrap_or_else(|error| format!("{error:#}"));
        text.push_str(&format!("{dag} {run}\n{why}\n\n"));
    }
    Ok(std::fs::write(it.path("unfinished"), text)?)
}
