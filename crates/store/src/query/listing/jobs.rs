//! Jobs of one kind, by name, with what is in their hands.

use crate::query::job::{self, Job};
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::JobId;
use fencepost_core::state::JobKind;
use fencepost_core::time::Timestamp;
use std::collections::BTreeMap;

/// Which jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFilter {
    pub kind: JobKind,
    /// Empty: any name and host.
    pub name: String,
    /// Also those that ended with nothing left.
    pub all: bool,
    /// Lost ones are shown for a while although nothing is left of them.
    pub lost_after: Timestamp,
}

/// A job in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobUse {
    pub job: Job,
    /// Attempts in its hands.
    pub leases: i64,
    /// JSON, of a lost one.
    pub evidence: Option<String>,
}

const JOB_PAGE: Stmt = Stmt::same(
    "job_page",
    "SELECT j.job_id FROM job j
     WHERE j.kind = $1 AND (j.name, j.job_id) > ($2, $3)
       AND ($4 = '' OR j.name = $4 OR j.host = $4)
       AND ($5 = CAST(1 AS BIGINT) OR j.removed = 0)
       AND ($5 = CAST(1 AS BIGINT) OR j.state IN ('running', 'draining') OR j.pages = 1
            OR (j.state = 'stopped' AND j.detached = 1 AND j.succeeded_by IS NULL)
            OR (j.state = 'lost' AND (j.ended_at > $6 OR EXISTS (
                SELECT 1 FROM attempt a WHERE a.job_id = j.job_id
                   AND a.state IN ('claimed', 'running', 'stopping', 'lost_open')))))
     ORDER BY j.name, j.job_id LIMIT $7",
);
const JOB_NEWEST: Stmt = Stmt::same(
    "job_newest",
    "SELECT job_id FROM job WHERE kind = $1 AND name = $2 ORDER BY started_at DESC, job_id DESC
     LIMIT 1",
);
const JOB_LEASES: Stmt = Stmt::same(
    "job_leases",
    "SELECT job_id, COUNT(*) FROM attempt WHERE job_id = $1
        AND state IN ('claimed', 'running', 'stopping', 'lost_open') GROUP BY job_id",
);
const JOB_EVIDENCE: Stmt = Stmt::same(
    "job_evidence",
    "SELECT job_id, evidence FROM job WHERE job_id = $1 AND evidence IS NOT NULL",
);

/// Keys of jobs after a place: (name, id).
pub async fn page(
    tx: &Tx,
    filter: &JobFilter,
    after: (&str, &str),
    limit: u32,
) -> Result<Vec<JobId>, StoreError> {
    let values = values![
        filter.kind.as_str(),
        after.0,
        after.1,
        &filter.name,
        filter.all,
        filter.lost_after,
        limit
    ];
    tx.query(&JOB_PAGE, values).await?.into_iter().map(id).collect()
}

/// The newest incarnation of a name.
pub async fn newest(tx: &Tx, kind: JobKind, name: &str) -> Result<Option<JobId>, StoreError> {
    tx.query_opt(&JOB_NEWEST, values![kind.as_str(), name]).await?.map(id).transpose()
}

fn id(row: Row) -> Result<JobId, StoreError> {
    let mut c = row.columns("job");
    let wrong = c.wrong("is not a UUID");
    c.opt_job_id()?.ok_or(wrong)
}

/// How many attempts are in the hands of each of some jobs that has any, by its id.
pub async fn leases(tx: &Tx, ids: &[JobId]) -> Result<BTreeMap<String, i64>, StoreError> {
    let sets = ids.iter().map(|id| values![*id]).collect();
    let rows = tx.query_many(&JOB_LEASES, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("attempt");
            Ok((c.text()?, c.int()?))
        })
        .collect()
}

/// The rows of keys, in their order.
pub async fn load(tx: &Tx, ids: &[JobId]) -> Result<Vec<JobUse>, StoreError> {
    let leases = leases(tx, ids).await?;
    let mut evidence: BTreeMap<String, String> = BTreeMap::new();
    let sets = ids.iter().map(|id| values![*id]).collect();
    for row in tx.query_many(&JOB_EVIDENCE, sets).await? {
        let mut c = row.columns("job");
        evidence.insert(c.text()?, c.text()?);
    }
    let mut found = Vec::new();
    for id in ids {
        let Some(job) = job::get(tx, *id).await? else { continue };
        let key = id.to_string();
        let leases = leases.get(&key).copied().unwrap_or(0);
        found.push(JobUse { job, leases, evidence: evidence.remove(&key) });
    }
    Ok(found)
}

pub(in crate::query) const STATEMENTS: &[Stmt] = &[JOB_PAGE, JOB_NEWEST, JOB_LEASES, JOB_EVIDENCE];
