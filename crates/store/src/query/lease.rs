//! Leases: who renews, who is observed, who is declared lost, and whose attempts are left to be worked
//! off.
//!
//! A renewal changes no column that an index or a foreign key looks at. What ends a job locks its row
//! first ([`lock`]); what acts for a job asserts that it still may ([`assert_own`], [`alive`]) in
//! the transaction that acts, so the two never cross.

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::JobId;
use fencepost_core::liveness::Reading;
use fencepost_core::state::{JobKind, JobState};
use fencepost_core::time::{Span, Timestamp};

/// A beat of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renewal {
    pub job: JobId,
    pub seq: i64,
    /// The sequence number that the row must be below: `seq`, but for a test of that guard.
    pub below: i64,
    /// The age of its main loop's last turn.
    pub loop_age: Span,
}

/// What became of a beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    Yes,
    /// A later beat came first, or this one came twice; the job is alive.
    Old,
    /// Its job is over.
    Over(JobState),
    /// There is no such job.
    Unknown,
}

const LEASE_RENEW: Stmt = Stmt::same(
    "lease_renew",
    "UPDATE job SET renew_seq = $2, renewed_at = $3, loop_age = $5
     WHERE job_id = $1 AND renew_seq < $4 AND state IN ('running', 'draining')",
)
.batched(
    1,
    "UPDATE job SET renew_seq = u.seq, renewed_at = u.at, loop_age = u.age FROM (SELECT \
        j.job_id, w.seq, w.at, w.below, w.age, w.ord FROM unnest($1::text[], $2::bigint[], \
        $3::bigint[], $4::bigint[], $5::bigint[]) WITH ORDINALITY AS w(job_id, seq, at, below, \
        age, ord) JOIN job j ON j.job_id = w.job_id WHERE j.renew_seq < w.below AND j.state IN \
        ('running', 'draining') ORDER BY j.job_id FOR NO KEY UPDATE OF j) u WHERE job.job_id = \
        u.job_id AND job.renew_seq < u.below AND job.state IN ('running', 'draining') \
        RETURNING u.ord",
);
const LEASE_STATE: Stmt = Stmt::same("lease_state", "SELECT state FROM job WHERE job_id = $1");

/// Renews leases, in the order of their jobs; an answer for each, in that order too.
pub async fn renew(tx: &Tx, renewals: &mut [Renewal]) -> Result<Vec<(JobId, Renewed)>, StoreError> {
    renewals.sort_unstable_by_key(|renewal| (renewal.job, renewal.seq));
    let set = |r: &Renewal| values![r.job, r.seq, tx.now(), r.below, r.loop_age.as_micros()];
    let changed = tx.execute_many(&LEASE_RENEW, renewals.iter().map(set).collect()).await?;
    let mut answers = Vec::with_capacity(renewals.len());
    for (renewal, changed) in renewals.iter().zip(changed) {
        let answer = if changed == 1 { Renewed::Yes } else { not_renewed(tx, renewal.job).await? };
        answers.push((renewal.job, answer));
    }
    Ok(answers)
}

async fn not_renewed(tx: &Tx, job: JobId) -> Result<Renewed, StoreError> {
    let Some(row) = tx.query_opt(&LEASE_STATE, values![job]).await? else {
        return Ok(Renewed::Unknown);
    };
    let state = row.columns("job").named(JobState::parse)?;
    Ok(match state {
        JobState::Running | JobState::Draining => Renewed::Old,
        JobState::Stopped | JobState::Lost => Renewed::Over(state),
    })
}

const LEASE_READ: Stmt = Stmt::same(
    "lease_read",
    "SELECT job_id, kind, lease_ttl, renew_seq, renewed_at, detached FROM job
     WHERE state IN ('running', 'draining') AND lease_ttl IS NOT NULL LIMIT 50000",
);
const LEASE_READ_DETACHED: Stmt = Stmt::same(
    "lease_read_detached",
    "SELECT job_id, kind, lease_ttl, renew_seq, renewed_at, detached FROM job
     WHERE state = 'stopped' AND detached = 1 AND succeeded_by IS NULL AND lease_ttl IS NOT NULL
     LIMIT 50000",
);

/// Every lease that can run out. A job without a TTL (a standalone's) is never observed.
pub async fn read(tx: &Tx) -> Result<Vec<Reading>, StoreError> {
    let mut rows = tx.query(&LEASE_READ, vec![]).await?;
    rows.extend(tx.query(&LEASE_READ_DETACHED, vec![]).await?);
    rows.into_iter().map(reading).collect()
}

fn reading(row: Row) -> Result<Reading, StoreError> {
    let mut c: Columns = row.columns("job");
    let wrong = c.wrong("is not a UUID");
    Ok(Reading {
        job: c.opt_job_id()?.ok_or(wrong)?,
        kind: c.named(JobKind::parse)?,
        ttl: Span::from_micros(c.int()?),
        renew_seq: c.int()?,
        renewed_at: c.time()?,
        detached: c.flag()?,
    })
}

const LEASE_SHORTEST: Stmt = Stmt::same(
    "lease_shortest",
    "SELECT MIN(lease_ttl) FROM job WHERE state IN ('running', 'draining')",
);

/// The shortest TTL of a live job.
pub async fn shortest_ttl(tx: &Tx) -> Result<Option<Span>, StoreError> {
    let Some(row) = tx.query_opt(&LEASE_SHORTEST, vec![]).await? else { return Ok(None) };
    Ok(row.columns("job").opt_int()?.map(Span::from_micros))
}

const LEASE_LOCK: Stmt =
    Stmt::same("lease_lock", "SELECT renew_seq, renewed_at FROM job WHERE job_id = $1")
        .locking(" FOR UPDATE");

/// Locks a job's row against everything that acts for it and against its renewal, and reads the
/// renewal: (number, instant).
pub async fn lock(tx: &Tx, job: JobId) -> Result<Option<(i64, Timestamp)>, StoreError> {
    let Some(row) = tx.query_opt(&LEASE_LOCK, values![job]).await? else { return Ok(None) };
    let mut c = row.columns("job");
    Ok(Some((c.int()?, c.time()?)))
}

const LEASE_DECLARE: Stmt = Stmt::same(
    "lease_declare",
    "UPDATE job SET state = 'lost', ended_at = $3, death = $4, evidence = $5, pages = 1
     WHERE job_id = $1 AND renew_seq = $2
        AND (state IN ('running', 'draining')
             OR (state = 'stopped' AND detached = 1 AND succeeded_by IS NULL))
        AND ($6 >= renewed_at + lease_ttl OR (renewed_at > $6 AND $7 >= 2 * lease_ttl))",
);

/// A declaration of a job as lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declaration {
    pub job: JobId,
    /// The renewal that was observed.
    pub renew_seq: i64,
    /// How long its silence was observed.
    pub window: Span,
    /// The word of the job's death.
    pub death: &'static str,
    /// JSON.
    pub evidence: String,
    /// The store's instant at which the lease must be over: now, but for a test of that guard.
    pub at: Timestamp,
}

/// Declares a job lost, if its renewal is still the one that was observed and the store's clock
/// agrees. (After that clock went back before the renewal it cannot; twice the TTL of observation
/// does then.)
pub async fn declare(tx: &Tx, declaration: &Declaration) -> Result<bool, StoreError> {
    let Declaration { job, renew_seq, window, death, evidence, at } = declaration;
    let values = values![*job, *renew_seq, tx.now(), *death, evidence, *at, window.as_micros()];
    Ok(tx.execute(&LEASE_DECLARE, values).await? == 1)
}

/// A job that is over, with attempts to be worked off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departed {
    pub job: JobId,
    pub kind: JobKind,
    pub state: JobState,
    pub name: String,
    pub death: Option<String>,
    /// JSON.
    pub evidence: Option<String>,
}

const LEASE_DEPARTED: Stmt = Stmt::same(
    "lease_departed",
    "SELECT job_id, kind, state, name, death, evidence FROM job
     WHERE pages = 1 ORDER BY job_id LIMIT $1",
);

/// Jobs that are over and whose attempts are not.
pub async fn departed(tx: &Tx, limit: u32) -> Result<Vec<Departed>, StoreError> {
    let rows = tx.query(&LEASE_DEPARTED, values![limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("job");
            let wrong = c.wrong("is not a UUID");
            Ok(Departed {
                job: c.opt_job_id()?.ok_or(wrong)?,
                kind: c.named(JobKind::parse)?,
                state: c.named(JobState::parse)?,
                name: c.text()?,
                death: c.opt_text()?,
                evidence: c.opt_text()?,
            })
        })
        .collect()
}

const LEASE_SETTLED: Stmt =
    Stmt::same("lease_settled", "UPDATE job SET pages = 0 WHERE job_id = $1 AND pages = 1");

/// Nothing of a job is left to be worked off.
pub async fn settled(tx: &Tx, job: JobId) -> Result<bool, StoreError> {
    Ok(tx.execute(&LEASE_SETTLED, values![job]).await? == 1)
}

const LEASE_ORPHAN: Stmt = Stmt::same(
    "lease_orphan",
    "UPDATE job SET pages = 1 WHERE job_id = $1 AND state = 'stopped' AND succeeded_by IS NULL",
);

/// What a job claimed and never started is to be worked off: it ended without a successor.
pub async fn orphan(tx: &Tx, job: JobId) -> Result<bool, StoreError> {
    Ok(tx.execute(&LEASE_ORPHAN, values![job]).await? == 1)
}

const LEASE_ASSERT: Stmt = Stmt::same(
    "lease_assert",
    "SELECT job_id FROM job WHERE job_id = $1 AND epoch = $2 AND state = 'running'
        AND EXISTS (SELECT 1 FROM installation WHERE one = 1 AND epoch = $2)",
)
.locking(" FOR KEY SHARE");

/// Whether a job may write as itself: it runs, and its epoch is the installation's.
pub async fn assert_own(tx: &Tx, job: JobId, epoch: u32) -> Result<bool, StoreError> {
    Ok(tx.query_opt(&LEASE_ASSERT, values![job, epoch]).await?.is_some())
}

const LEASE_ALIVE: Stmt = Stmt::same(
    "lease_alive",
    "SELECT epoch FROM job WHERE job_id = $1 AND state IN ('running', 'draining')",
)
.locking(" FOR KEY SHARE");

/// The epoch in which a job reconciled last, if it is not over; it cannot be declared lost until this
/// transaction ends.
pub async fn alive(tx: &Tx, job: JobId) -> Result<Option<u32>, StoreError> {
    let Some(row) = tx.query_opt(&LEASE_ALIVE, values![job]).await? else { return Ok(None) };
    row.columns("job").number().map(Some)
}

const LEASE_EPOCH: Stmt = Stmt::same(
    "lease_epoch",
    "UPDATE job SET epoch = $2 WHERE job_id = $1 AND epoch < $2
        AND state IN ('running', 'draining')",
);

/// A job has reconciled in an epoch.
pub async fn reach_epoch(tx: &Tx, job: JobId, epoch: u32) -> Result<bool, StoreError> {
    Ok(tx.execute(&LEASE_EPOCH, values![job, epoch]).await? == 1)
}

const LEASE_BEHIND: Stmt = Stmt::same(
    "lease_behind",
    "SELECT name FROM job WHERE kind = 'worker' AND epoch < $1
        AND (state IN ('running', 'draining')
             OR (state = 'stopped' AND detached = 1 AND succeeded_by IS NULL))
     ORDER BY name LIMIT 20",
);

/// Workers whose lease is not over and that have not reconciled in an epoch yet: the names of some.
pub async fn behind(tx: &Tx, epoch: u32) -> Result<Vec<String>, StoreError> {
    let rows = tx.query(&LEASE_BEHIND, values![epoch]).await?;
    rows.into_iter().map(|row| row.columns("job").text()).collect()
}

const LEASE_EPOCHS: Stmt =
    Stmt::same("lease_epochs", "SELECT job_id, epoch FROM job WHERE job_id = $1");

/// The epochs in which jobs reconciled last.
pub async fn epochs(tx: &Tx, jobs: &[JobId]) -> Result<Vec<(JobId, u32)>, StoreError> {
    let sets = jobs.iter().map(|job| values![*job]).collect();
    let rows = tx.query_many(&LEASE_EPOCHS, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("job");
            let wrong = c.wrong("is not a UUID");
            Ok((c.opt_job_id()?.ok_or(wrong)?, c.number()?))
        })
        .collect()
}

const LEASE_LONGEST: Stmt =
    Stmt::same("lease_longest", "SELECT MAX(lease_ttl) FROM job WHERE kind = 'worker'");

/// The longest TTL of any worker that is known.
pub async fn longest_ttl(tx: &Tx) -> Result<Option<Span>, StoreError> {
    let Some(row) = tx.query_opt(&LEASE_LONGEST, vec![]).await? else { return Ok(None) };
    Ok(row.columns("job").opt_int()?.map(Span::from_micros))
}

pub(super) const STATEMENTS: &[Stmt] = &[
    LEASE_RENEW,
    LEASE_STATE,
    LEASE_READ,
    LEASE_READ_DETACHED,
    LEASE_SHORTEST,
    LEASE_LOCK,
    LEASE_DECLARE,
    LEASE_DEPARTED,
    LEASE_SETTLED,
    LEASE_ORPHAN,
    LEASE_ASSERT,
    LEASE_ALIVE,
    LEASE_EPOCH,
    LEASE_BEHIND,
    LEASE_EPOCHS,
    LEASE_LONGEST,
];
