//! Jobs: one row per incarnation of a process.

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::JobId;
use fencepost_core::state::{JobKind, JobState};
use fencepost_core::time::{Span, Timestamp};

/// A job's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub job_id: JobId,
    pub kind: JobKind,
    pub state: JobState,
    pub name: String,
    pub host: String,
    pub pid: u32,
    pub pid_start: i64,
    pub boot_id: String,
    pub machine_id: String,
    pub home_id: String,
    pub version: String,
    /// Joined by commas.
    pub queues: String,
    pub slots: u32,
    pub lease_ttl: Option<Span>,
    pub renew_seq: i64,
    pub renewed_at: Timestamp,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub succeeded_by: Option<JobId>,
    pub detached: bool,
    /// The epoch in which it registered, or reconciled last.
    pub epoch: u32,
    /// The age of its main loop's last turn, as its last beat said.
    pub loop_age: Span,
}

macro_rules! columns {
    () => {
        "job_id, kind, state, name, host, pid, pid_start, boot_id, machine_id, home_id, version, \
         queues, slots, lease_ttl, renew_seq, renewed_at, started_at, ended_at, succeeded_by, \
         detached, epoch, loop_age"
    };
}

fn decode(row: Row) -> Result<Job, StoreError> {
    let mut c: Columns = row.columns("job");
    let wrong = c.wrong("is not a UUID");
    Ok(Job {
        job_id: c.opt_job_id()?.ok_or(wrong)?,
        kind: c.named(JobKind::parse)?,
        state: c.named(JobState::parse)?,
        name: c.text()?,
        host: c.text()?,
        pid: c.number()?,
        pid_start: c.int()?,
        boot_id: c.text()?,
        machine_id: c.text()?,
        home_id: c.text()?,
        version: c.text()?,
        queues: c.text()?,
        slots: c.number()?,
        lease_ttl: c.opt_int()?.map(Span::from_micros),
        renew_seq: c.int()?,
        renewed_at: c.time()?,
        started_at: c.time()?,
        ended_at: c.opt_time()?,
        succeeded_by: c.opt_job_id()?,
        detached: c.flag()?,
        epoch: c.number()?,
        loop_age: Span::from_micros(c.int()?),
    })
}

const JOB_INSERT: Stmt = Stmt::same(
    "job_insert",
    concat!(
        "INSERT INTO job (",
        columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
         $18, $19, $20, $21, $22) ON CONFLICT (job_id) DO NOTHING"
    ),
);

/// Writes a new job; the same again changes nothing.
pub async fn insert(tx: &Tx, job: &Job) -> Result<(), StoreError> {
    let values = values![
        job.job_id,
        job.kind.as_str(),
        job.state.as_str(),
        &job.name,
        &job.host,
        job.pid,
        job.pid_start,
        &job.boot_id,
        &job.machine_id,
        &job.home_id,
        &job.version,
        &job.queues,
        job.slots,
        job.lease_ttl,
        job.renew_seq,
        job.renewed_at,
        job.started_at,
        job.ended_at,
        job.succeeded_by,
        job.detached,
        job.epoch,
        job.loop_age.as_micros(),
    ];
    tx.execute(&JOB_INSERT, values).await.map(drop)
}

const JOB_GET: Stmt =
    Stmt::same("job_get", concat!("SELECT ", columns!(), " FROM job WHERE job_id = $1"))
        .locking(" FOR KEY SHARE");

/// The job of that id. In a transaction that may write it stays as it is until the commit (but for
/// its renewals): who declares it lost or stopped waits for its claims and starts under way.
pub async fn get(tx: &Tx, job_id: JobId) -> Result<Option<Job>, StoreError> {
    tx.query_opt(&JOB_GET, values![job_id]).await?.map(decode).transpose()
}

const JOB_LIVE: Stmt = Stmt::same(
    "job_live",
    concat!(
        "SELECT ",
        columns!(),
        " FROM job WHERE state IN ('running', 'draining') ORDER BY kind, started_at LIMIT 1000"
    ),
);

/// Jobs that are believed alive.
pub async fn live(tx: &Tx) -> Result<Vec<Job>, StoreError> {
    tx.query(&JOB_LIVE, vec![]).await?.into_iter().map(decode).collect()
}

const JOB_PREDECESSORS: Stmt = Stmt::same(
    "job_predecessors",
    "SELECT j.job_id FROM job j WHERE j.kind = $1 AND j.home_id = $2 AND j.job_id <> $3
       AND (j.state IN ('running', 'draining')
            OR (j.succeeded_by IS NULL AND j.state = 'stopped' AND EXISTS (
                SELECT 1 FROM attempt a WHERE a.job_id = j.job_id
                   AND a.state IN ('claimed', 'running', 'stopping', 'lost_open'))))
     ORDER BY j.started_at LIMIT 100",
)
.locking(" FOR UPDATE OF j");

/// Earlier jobs of that home which are not ended, or ended with claims and no successor.
pub async fn predecessors(
    tx: &Tx,
    kind: JobKind,
    home_id: &str,
    successor: JobId,
) -> Result<Vec<JobId>, StoreError> {
    let rows = tx.query(&JOB_PREDECESSORS, values![kind.as_str(), home_id, successor]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("job");
            let wrong = c.wrong("is not a UUID");
            c.opt_job_id()?.ok_or(wrong)
        })
        .collect()
}

const JOB_SUCCEED: Stmt = Stmt::same(
    "job_succeed",
    "UPDATE job SET state = 'stopped', succeeded_by = $2, ended_at = COALESCE(ended_at, $3)
     WHERE job_id = $1 AND state IN ('running', 'draining', 'stopped') AND succeeded_by IS NULL",
);

/// Ends jobs in favour of their successor: from this commit their claims are its claims. One that
/// was declared lost meanwhile hands nothing over: `false`.
pub async fn succeed(tx: &Tx, jobs: &[JobId], successor: JobId) -> Result<Vec<bool>, StoreError> {
    let sets = jobs.iter().map(|job| values![*job, successor, tx.now()]).collect();
    Ok(tx.execute_many(&JOB_SUCCEED, sets).await?.into_iter().map(|n| n == 1).collect())
}

const JOB_SUCCEEDED: Stmt = Stmt::same(
    "job_succeeded",
    "SELECT job_id FROM job WHERE home_id = (SELECT home_id FROM job WHERE job_id = $1)
        AND kind = 'worker' AND succeeded_by = $1 ORDER BY ended_at DESC, job_id LIMIT 1",
);

/// The last job that this one succeeded.
pub async fn predecessor(tx: &Tx, job: JobId) -> Result<Option<JobId>, StoreError> {
    let Some(row) = tx.query_opt(&JOB_SUCCEEDED, values![job]).await? else { return Ok(None) };
    row.columns("job").opt_job_id()
}

const JOB_STOP: Stmt = Stmt::same(
    "job_stop",
    "UPDATE job SET state = 'stopped', ended_at = $2, detached = $3
     WHERE job_id = $1 AND state IN ('running', 'draining')",
);

/// Ends a job in order; `detached`: it leaves running attempts to their shims.
pub async fn stop(tx: &Tx, job: JobId, detached: bool) -> Result<bool, StoreError> {
    Ok(tx.execute(&JOB_STOP, values![job, tx.now(), detached]).await? == 1)
}

const JOB_DRAIN: Stmt = Stmt::same(
    "job_drain",
    "UPDATE job SET state = 'draining' WHERE job_id = $1 AND state = 'running'",
);
const JOB_RESUME: Stmt = Stmt::same(
    "job_resume",
    "UPDATE job SET state = 'running' WHERE job_id = $1 AND state = 'draining'",
);
const JOB_REMOVE: Stmt = Stmt::same(
    "job_remove",
    "UPDATE job SET removed = 1 WHERE job_id = $1 AND state IN ('stopped', 'lost') AND pages = 0",
);
const JOB_CONFIRM_DEAD: Stmt = Stmt::same(
    "job_confirm_dead",
    "UPDATE job SET state = 'lost', ended_at = $2, death = 'person', evidence = $3, pages = 1
     WHERE job_id = $1 AND (state IN ('running', 'draining')
        OR (state = 'stopped' AND detached = 1 AND succeeded_by IS NULL))",
);

/// running -> draining: it claims nothing more, and keeps its lease until its attempts are over.
pub async fn drain(tx: &Tx, job: JobId) -> Result<bool, StoreError> {
    Ok(tx.execute(&JOB_DRAIN, values![job]).await? == 1)
}

/// draining -> running.
pub async fn resume(tx: &Tx, job: JobId) -> Result<bool, StoreError> {
    Ok(tx.execute(&JOB_RESUME, values![job]).await? == 1)
}

/// Takes a job that is over, and worked off, from the lists.
pub async fn remove(tx: &Tx, job: JobId) -> Result<bool, StoreError> {
    Ok(tx.execute(&JOB_REMOVE, values![job]).await? == 1)
}

/// Declares a job lost on a person's word; `evidence` is JSON.
pub async fn confirm_dead(tx: &Tx, job: JobId, evidence: &str) -> Result<bool, StoreError> {
    Ok(tx.execute(&JOB_CONFIRM_DEAD, values![job, tx.now(), evidence]).await? == 1)
}

pub(super) const STATEMENTS: &[Stmt] = &[
    JOB_INSERT,
    JOB_GET,
    JOB_LIVE,
    JOB_PREDECESSORS,
    JOB_SUCCEED,
    JOB_SUCCEEDED,
    JOB_STOP,
    JOB_DRAIN,
    JOB_RESUME,
    JOB_REMOVE,
    JOB_CONFIRM_DEAD,
];
