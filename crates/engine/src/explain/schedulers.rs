//! Nothing is planned while no scheduler lives.

use super::Gates;
use crate::error::EngineError;
use fencepost_core::state::JobKind;
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::job::{self, Job};
use fencepost_store::query::listing::jobs::{self, JobFilter};

/// Schedulers that have ended, of which the newest is looked for.
const ENDED: u32 = 200;

/// Blocks if there were schedulers and none holds a lease. A standalone has none of its own.
pub(super) async fn gate(tx: &Tx, gates: &mut Gates) -> Result<(), EngineError> {
    let mut known: Vec<Job> = job::live(tx).await?;
    known.retain(|job| job.kind == JobKind::Scheduler);
    let holds = |job: &Job| job.lease_ttl.is_none_or(|ttl| tx.now().since(job.renewed_at) < ttl);
    if known.iter().any(holds) {
        return Ok(());
    }
    if known.is_empty() {
        known = ended(tx).await?;
    }
    let Some(last) = known.iter().map(|job| job.renewed_at).max() else { return Ok(()) };
    gates.add("scheduler_down", false, format!("no scheduler has held a lease since {last}"));
    gates.hold(Vec::new(), Some("start one:  fencepost scheduler".into()));
    Ok(())
}

async fn ended(tx: &Tx) -> Result<Vec<Job>, EngineError> {
    let filter = JobFilter {
        kind: JobKind::Scheduler,
        name: String::new(),
        all: true,
        lost_after: Timestamp::default(),
    };
    let ids = jobs::page(tx, &filter, ("", ""), ENDED).await?;
    Ok(jobs::load(tx, &ids).await?.into_iter().map(|found| found.job).collect())
}
