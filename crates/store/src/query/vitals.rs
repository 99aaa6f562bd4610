//! What an installation's pulse is read from: counts that a few short indexes answer, however long the
//! history is. Nothing here reads ended attempts, ended runs or the log.

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::time::{Span, Timestamp};
use std::collections::BTreeSet;

/// Jobs of one kind and state whose lease is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jobs {
    pub kind: String,
    pub state: String,
    pub count: i64,
    /// The oldest last beat, and the oldest last turn of a main loop.
    pub beat_at: Timestamp,
    pub turned_at: Timestamp,
    /// Leases of which less than a third is left.
    pub expiring: i64,
}

const VITALS_JOBS: Stmt = Stmt::same(
    "vitals_jobs",
    "SELECT kind, state, COUNT(*), MIN(renewed_at), MIN(renewed_at - loop_age),
        CAST(SUM(CASE WHEN lease_ttl IS NOT NULL AND renewed_at + lease_ttl - lease_ttl / 3 < $1
                      THEN 1 ELSE 0 END) AS BIGINT)
     FROM job WHERE state IN ('running', 'draining') GROUP BY kind, state ORDER BY kind, state",
);

/// Living jobs.
pub async fn jobs(tx: &Tx) -> Result<Vec<Jobs>, StoreError> {
    let rows = tx.query(&VITALS_JOBS, values![tx.now()]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("job");
            Ok(Jobs {
                kind: c.text()?,
                state: c.text()?,
                count: c.int()?,
                beat_at: c.time()?,
                turned_at: c.time()?,
                expiring: c.int()?,
            })
        })
        .collect()
}

/// Attempts that nobody has claimed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub queue: String,
    /// The pool whose ramp lets them go; empty: none.
    pub ramp: String,
    pub count: i64,
    pub oldest_at: Timestamp,
}

const VITALS_QUEUED: Stmt = Stmt::same(
    "vitals_queued",
    "SELECT queue, ramp, COUNT(*), MIN(queued_at) FROM attempt WHERE state = 'queued'
     GROUP BY queue, ramp ORDER BY queue, ramp LIMIT 1000",
);

/// Queued attempts by queue and ramp.
pub async fn queued(tx: &Tx) -> Result<Vec<Queued>, StoreError> {
    let rows = tx.query(&VITALS_QUEUED, vec![]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("attempt");
            let (queue, ramp) = (c.text()?, c.text()?);
            Ok(Queued { queue, ramp, count: c.int()?, oldest_at: c.time()? })
        })
        .collect()
}

const VITALS_SERVED: Stmt = Stmt::same(
    "vitals_served",
    "SELECT DISTINCT queues FROM job WHERE kind = 'worker' AND state = 'running' LIMIT 10000",
);

/// Queues that running workers serve.
pub async fn served(tx: &Tx) -> Result<BTreeSet<String>, StoreError> {
    let mut found = BTreeSet::new();
    for row in tx.query(&VITALS_SERVED, vec![]).await? {
        let queues = row.columns("job").text()?;
        found.extend(queues.split(',').map(ToOwned::to_owned));
    }
    Ok(found)
}

/// Instances that nothing but a slot keeps from an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scheduled {
    pub pool: String,
    pub count: i64,
    pub oldest_at: Option<Timestamp>,
}

const VITALS_SCHEDULED: Stmt = Stmt::same(
    "vitals_scheduled",
    "SELECT pool, COUNT(*), MIN(scheduled_at) FROM task_instance WHERE state = 'scheduled'
     GROUP BY pool ORDER BY pool LIMIT 1000",
);

/// Scheduled instances by pool.
pub async fn scheduled(tx: &Tx) -> Result<Vec<Scheduled>, StoreError> {
    let rows = tx.query(&VITALS_SCHEDULED, vec![]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("task_instance");
            Ok(Scheduled { pool: c.text()?, count: c.int()?, oldest_at: c.opt_time()? })
        })
        .collect()
}

const VITALS_OPEN: Stmt = Stmt::same(
    "vitals_open",
    "SELECT state, COUNT(*) FROM attempt
     WHERE state IN ('claimed', 'running', 'stopping', 'lost_open') GROUP BY state ORDER BY state",
);
const VITALS_HELD: Stmt = Stmt::same(
    "vitals_held",
    "SELECT COALESCE(reason, 'held'), COUNT(*) FROM task_instance WHERE state = 'held'
     GROUP BY reason ORDER BY 1 LIMIT 100",
);
const VITALS_RUNS: Stmt = Stmt::same(
    "vitals_runs",
    "SELECT 'queued', COUNT(*) FROM run WHERE state = 'queued'
     UNION ALL SELECT 'running', COUNT(*) FROM run WHERE state = 'running'",
);

/// Claimed, running, stopping and open lost attempts, by state.
pub async fn open(tx: &Tx) -> Result<Vec<(String, i64)>, StoreError> {
    counts(tx, &VITALS_OPEN).await
}

/// Held instances, by reason.
pub async fn held(tx: &Tx) -> Result<Vec<(String, i64)>, StoreError> {
    counts(tx, &VITALS_HELD).await
}

/// Queued and running runs.
pub async fn runs(tx: &Tx) -> Result<Vec<(String, i64)>, StoreError> {
    counts(tx, &VITALS_RUNS).await
}

async fn counts(tx: &Tx, stmt: &Stmt) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = tx.query(stmt, vec![]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("vitals");
            Ok((c.text()?, c.int()?))
        })
        .collect()
}

/// Effects that were not carried out yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effects {
    pub waiting: i64,
    /// Those of them that have failed at least once, and ten times: nobody will carry them out.
    pub failing: i64,
    pub dead: i64,
    pub oldest_at: Option<Timestamp>,
}

const VITALS_EFFECTS: Stmt = Stmt::same(
    "vitals_effects",
    "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN tries > 0 THEN 1 ELSE 0 END), 0) AS BIGINT),
        CAST(COALESCE(SUM(CASE WHEN tries >= 10 OR state <> 'due' THEN 1 ELSE 0 END), 0) AS BIGINT),
        MIN(created_at)
     FROM outbox",
);

/// The outbox, which has nothing that is done.
pub async fn effects(tx: &Tx) -> Result<Effects, StoreError> {
    let row = tx.query_opt(&VITALS_EFFECTS, vec![]).await?.unwrap_or(Row(vec![]));
    let mut c = row.columns("outbox");
    let (waiting, failing, dead) = (c.int()?, c.int()?, c.int()?);
    Ok(Effects { waiting, failing, dead, oldest_at: c.opt_time()? })
}

/// What single figures say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Figures {
    /// Incidents that were ever opened: their numbers rise.
    pub incidents: i64,
    pub incidents_open: i64,
    /// Attempts that have ended while nobody knows whether their processes have.
    pub may_run: i64,
    /// Jobs that are over and whose attempts are being worked off.
    pub departed: i64,
    /// Left in order, with attempts under shims that wait for a successor.
    pub detached: i64,
    /// The next slot of a schedule; it may be past.
    pub next_slot_at: Option<Timestamp>,
    /// The next retry, likewise.
    pub next_retry_at: Option<Timestamp>,
}

const VITALS_FIGURES: Stmt = Stmt::same(
    "vitals_figures",
    "SELECT (SELECT COALESCE(MAX(id), 0) FROM incident),
        (SELECT COUNT(*) FROM incident WHERE closed_at IS NULL),
        (SELECT COUNT(*) FROM attempt WHERE may_run = 1),
        (SELECT COUNT(*) FROM job WHERE pages = 1),
        (SELECT COUNT(*) FROM job
         WHERE state = 'stopped' AND detached = 1 AND succeeded_by IS NULL),
        (SELECT MIN(next_slot_at) FROM dag
         WHERE is_active = 1 AND is_paused = 0 AND next_slot_at IS NOT NULL),
        (SELECT MIN(retry_at) FROM task_instance WHERE state = 'up_for_retry')",
);

/// The figures.
pub async fn figures(tx: &Tx) -> Result<Figures, StoreError> {
    let row = tx.query_opt(&VITALS_FIGURES, vec![]).await?.unwrap_or(Row(vec![]));
    let mut c = row.columns("vitals");
    Ok(Figures {
        incidents: c.int()?,
        incidents_open: c.int()?,
        may_run: c.int()?,
        departed: c.int()?,
        detached: c.int()?,
        next_slot_at: c.opt_time()?,
        next_retry_at: c.opt_time()?,
    })
}

/// How long ago that was; nothing if it is still to come.
pub fn age(now: Timestamp, at: Timestamp) -> Span {
    now.since(at).max(Span::ZERO)
}

pub(super) const STATEMENTS: &[Stmt] = &[
    VITALS_JOBS,
    VITALS_QUEUED,
    VITALS_SERVED,
    VITALS_SCHEDULED,
    VITALS_OPEN,
    VITALS_HELD,
    VITALS_RUNS,
    VITALS_EFFECTS,
    VITALS_FIGURES,
];
