//! Incidents: one row for every job that was declared lost, with its evidence.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::JobId;
use fencepost_core::time::Timestamp;

/// An incident.
#[derive(Debug, Clone, PartialEq)]
pub struct Incident {
    pub id: i64,
    /// How the job died.
    pub kind: String,
    pub job_id: JobId,
    pub at: Timestamp,
    pub declared_by: String,
    pub evidence: serde_json::Value,
    pub attempts: i64,
    pub settled_at: Option<Timestamp>,
}

const INCIDENT_OPEN: Stmt = Stmt::same(
    "incident_open",
    "INSERT INTO incident (kind, job_id, at, declared_by, evidence) VALUES ($1, $2, $3, $4, $5)",
);

/// Opens the incident of a job; there is one for each.
pub async fn open(
    tx: &Tx,
    job: JobId,
    kind: &str,
    declared_by: &str,
    evidence: &str,
) -> Result<(), StoreError> {
    let values = values![kind, job, tx.now(), declared_by, evidence];
    tx.execute(&INCIDENT_OPEN, values).await.map(drop)
}

const INCIDENT_COUNT: Stmt =
    Stmt::same("incident_count", "UPDATE incident SET attempts = attempts + $2 WHERE job_id = $1");

/// So many attempts more were worked off.
pub async fn count(tx: &Tx, job: JobId, more: usize) -> Result<(), StoreError> {
    let more = i64::try_from(more).unwrap_or(i64::MAX);
    tx.execute(&INCIDENT_COUNT, values![job, more]).await.map(drop)
}

const INCIDENT_SETTLE: Stmt = Stmt::same(
    "incident_settle",
    "UPDATE incident SET settled_at = $2 WHERE job_id = $1 AND settled_at IS NULL",
);

/// All of them were.
pub async fn settle(tx: &Tx, job: JobId) -> Result<(), StoreError> {
    tx.execute(&INCIDENT_SETTLE, values![job, tx.now()]).await.map(drop)
}

const INCIDENT_PAGE: Stmt = Stmt::same(
    "incident_page",
    "SELECT id, kind, job_id, at, declared_by, evidence, attempts, settled_at FROM incident
     WHERE id < $1 ORDER BY id DESC LIMIT $2",
);

/// Incidents, the newest first, before an id.
pub async fn page(tx: &Tx, before: i64, limit: u32) -> Result<Vec<Incident>, StoreError> {
    let rows = tx.query(&INCIDENT_PAGE, values![before, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("incident");
            let wrong = c.wrong("is not a UUID");
            Ok(Incident {
                id: c.int()?,
                kind: c.text()?,
                job_id: c.opt_job_id()?.ok_or(wrong)?,
                at: c.time()?,
                declared_by: c.text()?,
                evidence: c.json()?,
                attempts: c.int()?,
                settled_at: c.opt_time()?,
            })
        })
        .collect()
}

pub(super) const STATEMENTS: &[Stmt] =
    &[INCIDENT_OPEN, INCIDENT_COUNT, INCIDENT_SETTLE, INCIDENT_PAGE];
