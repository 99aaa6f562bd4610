//! Who could take what is queued: workers of its queue, and their slots.

use super::Gates;
use crate::catalog::Version;
use crate::error::EngineError;
use fencepost_core::state::{JobKind, JobState};
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::Tx;
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::listing::jobs::{self, JobFilter};
use fencepost_store::query::task_instance::Ti;

/// Workers that are looked through for one that served a queue.
const KNOWN: u32 = 200;

/// What a worker needs to claim something that was queued this moment.
const FRESH: Span = Span::from_secs(1);

/// Blocks where no live worker serves the queue, or all that do are full.
pub(super) async fn gate(
    tx: &Tx,
    version: &Version,
    ti: &Ti,
    gates: &mut Gates,
) -> Result<(), EngineError> {
    let task = version.dag.tasks.get(ti.key.task_index as usize);
    let queue = task.map_or("default", |task| task.limits.queue.as_str());
    let mut workers = job::live(tx).await?;
    // One that drains finishes what it has, and takes nothing.
    workers.retain(|job| job.kind == JobKind::Worker && job.state == JobState::Running);
    workers.retain(|job| serves(job, queue));
    if workers.is_empty() {
        let last = last_of(tx, queue).await?;
        gates.add(
            "queue_without_worker",
            false,
            format!("no live worker serves queue `{queue}`{last}"),
        );
        gates.advise(format!("start one:  fencepost worker -q {queue}"));
        return Ok(());
    }
    gates.add(
        "queue_without_worker",
        true,
        format!("{} live workers serve queue `{queue}`", workers.len()),
    );
    let ids: Vec<_> = workers.iter().map(|job| job.job_id).collect();
    let busy: i64 = jobs::leases(tx, &ids).await?.values().sum();
    let slots: i64 = workers.iter().map(|job| i64::from(job.slots)).sum();
    let is_fresh = ti.queued_at.is_some_and(|at| tx.now().since(at) < FRESH);
    let text = format!("{} live workers, {busy}/{slots} slots", workers.len());
    if gates.add("workers_full", busy < slots || is_fresh, text) {
        let most =
            workers.iter().map(|job| format!("{}@{} ({} slots)", job.name, job.host, job.slots));
        gates.hold(most.take(20).collect(), Some("wait, or start another worker".into()));
    }
    Ok(())
}

fn serves(job: &Job, queue: &str) -> bool {
    job.queues.split(',').any(|served| served == queue)
}

/// Who served a queue last, and when it was last heard of.
async fn last_of(tx: &Tx, queue: &str) -> Result<String, EngineError> {
    let filter = JobFilter {
        kind: JobKind::Worker,
        name: String::new(),
        all: true,
        lost_after: Timestamp::default(),
    };
    let ids = jobs::page(tx, &filter, ("", ""), KNOWN).await?;
    let known = jobs::load(tx, &ids).await?.into_iter().map(|found| found.job);
    let last = known.filter(|job| serves(job, queue)).max_by_key(|job| job.renewed_at);
    Ok(last.map_or_else(String::new, |job| {
        let ago = tx.now().since(job.renewed_at).in_secs();
        format!(" (last seen: {}, {ago} ago)", job.name)
    }))
}
