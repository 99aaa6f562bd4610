//! Incidents: one row for every job that was declared lost, with its evidence.

use crate::{Row, Stmt, StoreError, Tx, values};
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
    /// Attempts of it that were worked off.
    pub attempts: i64,
    pub settled_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    pub closed_by: Option<String>,
    pub close_reason: Option<String>,
}

const INCIDENT_OPEN: Stmt = Stmt::same(
    "incident_open",
    "INSERT INTO incident (kind, job_id, at, declared_by, evidence) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT (job_id) DO UPDATE SET closed_at = NULL, closed_by = NULL, close_reason = NULL",
);

/// Opens the incident of a job; there is one for each, and it opens again if more becomes known.
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

/// Its columns, as they are decoded.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, kind, job_id, at, declared_by, evidence, attempts, settled_at, closed_at, \
             closed_by, close_reason FROM incident WHERE ",
            $rest
        )
    };
}

const INCIDENT_PAGE: Stmt =
    Stmt::same("incident_page", select!("id < $1 ORDER BY id DESC LIMIT $2"));
const INCIDENT_PAGE_OPEN: Stmt = Stmt::same(
    "incident_page_open",
    select!("closed_at IS NULL AND id < $1 ORDER BY id DESC LIMIT $2"),
);
const INCIDENT_GET: Stmt = Stmt::same("incident_get", select!("id = $1"));
const INCIDENT_OF_JOB: Stmt = Stmt::same("incident_of_job", select!("job_id = $1"));

/// Incidents, the newest first, before an id.
pub async fn page(tx: &Tx, before: i64, limit: u32) -> Result<Vec<Incident>, StoreError> {
    decoded(tx.query(&INCIDENT_PAGE, values![before, limit]).await?)
}

/// Those that are not closed.
pub async fn page_open(tx: &Tx, before: i64, limit: u32) -> Result<Vec<Incident>, StoreError> {
    decoded(tx.query(&INCIDENT_PAGE_OPEN, values![before, limit]).await?)
}

/// One of them.
pub async fn get(tx: &Tx, id: i64) -> Result<Option<Incident>, StoreError> {
    Ok(decoded(tx.query(&INCIDENT_GET, values![id]).await?)?.pop())
}

/// Those of some jobs.
pub async fn of_jobs(tx: &Tx, jobs: &[JobId]) -> Result<Vec<Incident>, StoreError> {
    let sets = jobs.iter().map(|job| values![*job]).collect();
    decoded(tx.query_many(&INCIDENT_OF_JOB, sets).await?)
}

fn decoded(rows: Vec<Row>) -> Result<Vec<Incident>, StoreError> {
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
                closed_at: c.opt_time()?,
                closed_by: c.opt_text()?,
                close_reason: c.opt_text()?,
            })
        })
        .collect()
}

const INCIDENT_CLOSE: Stmt = Stmt::same(
    "incident_close",
    "UPDATE incident SET closed_at = $2, closed_by = $3, close_reason = $4
     WHERE id = $1 AND closed_at IS NULL",
);

/// Closes it; `false` if it is closed already.
pub async fn close(tx: &Tx, id: i64, by: &str, reason: Option<&str>) -> Result<bool, StoreError> {
    Ok(tx.execute(&INCIDENT_CLOSE, values![id, tx.now(), by, reason]).await? == 1)
}

const INCIDENT_RIPE: Stmt = Stmt::same(
    "incident_ripe",
    "SELECT i.id, i.job_id FROM incident i WHERE i.closed_at IS NULL AND i.settled_at IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM attempt a WHERE a.job_id = i.job_id
            AND a.state IN ('claimed', 'running', 'stopping', 'lost_open'))
        AND NOT EXISTS (SELECT 1 FROM attempt m WHERE m.may_run = 1 AND m.incident = i.id)
        AND NOT EXISTS (SELECT 1 FROM attempt q WHERE q.state = 'queued' AND q.ramp > '')
     ORDER BY i.id LIMIT $1",
);

/// Incidents that may be closed: nothing of them is open, nobody wonders what still runs, and no
/// recovered work waits for a ramp.
pub async fn ripe(tx: &Tx, limit: u32) -> Result<Vec<(i64, JobId)>, StoreError> {
    let rows = tx.query(&INCIDENT_RIPE, values![limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("incident");
            let wrong = c.wrong("is not a UUID");
            Ok((c.int()?, c.opt_job_id()?.ok_or(wrong)?))
        })
        .collect()
}

pub(super) const STATEMENTS: &[Stmt] = &[
    INCIDENT_OPEN,
    INCIDENT_COUNT,
    INCIDENT_SETTLE,
    INCIDENT_PAGE,
    INCIDENT_PAGE_OPEN,
    INCIDENT_GET,
    INCIDENT_OF_JOB,
    INCIDENT_CLOSE,
    INCIDENT_RIPE,
];
