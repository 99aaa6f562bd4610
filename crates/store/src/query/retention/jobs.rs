//! Jobs that ended long ago, homes that nobody uses, and incidents that are over.

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::retention::JobFacts;
use fencepost_core::time::Timestamp;

/// A job that is old enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldJob {
    pub job_id: String,
    pub ended_at: Timestamp,
    pub facts: JobFacts,
}

const RETENTION_JOBS: Stmt = Stmt::same(
    "retention_jobs",
    "SELECT j.job_id, j.ended_at,
        CAST(CASE WHEN EXISTS (SELECT 1 FROM attempt a WHERE a.job_id = j.job_id)
            THEN 1 ELSE 0 END AS BIGINT),
        CAST(CASE WHEN EXISTS (SELECT 1 FROM incident i WHERE i.job_id = j.job_id)
            THEN 1 ELSE 0 END AS BIGINT),
        CAST(CASE WHEN EXISTS (SELECT 1 FROM job p WHERE p.succeeded_by = j.job_id)
            THEN 1 ELSE 0 END AS BIGINT)
     FROM job j WHERE j.ended_at IS NOT NULL AND j.ended_at < $1 AND j.pages = 0
        AND j.state IN ('stopped', 'lost') AND (j.ended_at, j.job_id) > ($2, $3)
     ORDER BY j.ended_at, j.job_id LIMIT $4",
)
.locking(" FOR UPDATE OF j SKIP LOCKED");
const RETENTION_JOB_DROP: Stmt = Stmt::same(
    "retention_job_drop",
    "DELETE FROM job WHERE job_id = $1 AND ended_at = $2 AND pages = 0
        AND state IN ('stopped', 'lost')
        AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.job_id = job.job_id)",
);

/// Jobs that ended before an instant and are worked off, after a place in the order of their ends; locked in
/// a transaction that may write.
pub async fn jobs(
    tx: &Tx,
    before: Timestamp,
    after: (Timestamp, &str),
    limit: u32,
) -> Result<Vec<OldJob>, StoreError> {
    let rows = tx.query(&RETENTION_JOBS, values![before, after.0, after.1, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("job");
            let (job_id, ended_at) = (c.text()?, c.time()?);
            let (has_attempts, has_incident, has_predecessor) = (c.flag()?, c.flag()?, c.flag()?);
            let facts = JobFacts { has_attempts, has_incident, has_predecessor };
            Ok(OldJob { job_id, ended_at, facts })
        })
        .collect()
}

/// Removes jobs that are over, as they were read; how many.
pub async fn drop_jobs(tx: &Tx, jobs: &[&OldJob]) -> Result<u64, StoreError> {
    let sets = jobs.iter().map(|job| values![&job.job_id, job.ended_at]).collect();
    Ok(tx.execute_many(&RETENTION_JOB_DROP, sets).await?.into_iter().sum())
}

const RETENTION_HOMES: Stmt = Stmt::same(
    "retention_homes",
    "SELECT h.home_id, h.job_id,
        CAST(CASE WHEN EXISTS (SELECT 1 FROM job j WHERE j.job_id = h.job_id)
            THEN 1 ELSE 0 END AS BIGINT)
     FROM home h WHERE h.home_id > $1 ORDER BY h.home_id LIMIT $2",
);
const RETENTION_HOME_DROP: Stmt =
    Stmt::same("retention_home_drop", "DELETE FROM home WHERE home_id = $1 AND job_id = $2");

/// A home, and the job that registered last in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    pub home_id: String,
    pub job_id: String,
    /// The job's row exists.
    pub is_used: bool,
}

/// Homes after one.
pub async fn homes(tx: &Tx, after: &str, limit: u32) -> Result<Vec<Home>, StoreError> {
    let rows = tx.query(&RETENTION_HOMES, values![after, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("home");
            Ok(Home { home_id: c.text()?, job_id: c.text()?, is_used: c.flag()? })
        })
        .collect()
}

/// Removes homes in which nobody has registered since; how many. A job that is gone never comes back, so
/// only a later registration can keep one.
pub async fn drop_homes(tx: &Tx, homes: &[&Home]) -> Result<u64, StoreError> {
    let sets = homes.iter().map(|home| values![&home.home_id, &home.job_id]).collect();
    Ok(tx.execute_many(&RETENTION_HOME_DROP, sets).await?.into_iter().sum())
}

const RETENTION_INCIDENTS: Stmt = Stmt::same(
    "retention_incidents",
    "SELECT i.id, i.at,
        CAST(CASE WHEN i.closed_at IS NULL
            OR EXISTS (SELECT 1 FROM attempt a WHERE a.job_id = i.job_id)
            OR EXISTS (SELECT 1 FROM attempt a WHERE a.incident = i.id)
            THEN 1 ELSE 0 END AS BIGINT)
     FROM incident i WHERE i.id > $1 ORDER BY i.id LIMIT $2",
);
const RETENTION_INCIDENT_DROP: Stmt =
    Stmt::same("retention_incident_drop", "DELETE FROM incident WHERE id = $1");

/// An incident: its number, when it was, and whether it is open or an attempt of it is left.
pub type OldIncident = (i64, Timestamp, bool);

/// Incidents after a number.
pub async fn incidents(tx: &Tx, after: i64, limit: u32) -> Result<Vec<OldIncident>, StoreError> {
    let rows = tx.query(&RETENTION_INCIDENTS, values![after, limit]).await?;
    let decode = |row: Row| {
        let mut c = row.columns("incident");
        Ok((c.int()?, c.time()?, c.flag()?))
    };
    rows.into_iter().map(decode).collect()
}

/// Removes incidents; how many.
pub async fn drop_incidents(tx: &Tx, ids: &[i64]) -> Result<u64, StoreError> {
    let sets = ids.iter().map(|id| values![*id]).collect();
    Ok(tx.execute_many(&RETENTION_INCIDENT_DROP, sets).await?.into_iter().sum())
}

pub(super) const STATEMENTS: &[Stmt] = &[
    RETENTION_JOBS,
    RETENTION_JOB_DROP,
    RETENTION_HOMES,
    RETENTION_HOME_DROP,
    RETENTION_INCIDENTS,
    RETENTION_INCIDENT_DROP,
];
