//! What is old: found by indexes, from the oldest on, and removed a few rows at a time.
//!
//! A run goes in two parts. Its row goes in one transaction, which leaves its key in `pruned_run`: from that
//! commit on it is gone for everybody. The rows that were its own follow in any number of transactions, and
//! the key with the last of them. Who finds a row locked leaves it to whoever has it.

pub mod jobs;
pub mod logs;
pub mod rest;
pub mod rows;

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::retention::{Bounds, RunFacts};
use fencepost_core::state::RunState;
use fencepost_core::time::{Span, Timestamp};

/// A run that is old enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OldRun {
    pub run_pk: i64,
    pub run_id: String,
    pub ended_at: Timestamp,
    pub facts: RunFacts,
}

// The smallest end by index, not a join: the planner must not walk the runs.
const RETENTION_DAGS: Stmt = Stmt::same(
    "retention_dags",
    "SELECT d.dag_id, d.keep_runs FROM dag d WHERE d.dag_id > $1 AND d.keep_runs IS NOT NULL
        AND (SELECT MIN(r.ended_at) FROM run r WHERE r.dag_id = d.dag_id AND r.ended_at IS NOT NULL)
            < CASE WHEN d.keep_runs > 0 AND $2 - d.keep_runs < $4 THEN $2 - d.keep_runs
                   WHEN d.keep_runs > 0 THEN $4 ELSE $3 END
     ORDER BY d.dag_id LIMIT $5",
);

/// DAGs after a name with a run that is old enough, and how long each keeps its runs.
pub async fn dags(
    tx: &Tx,
    bounds: &Bounds,
    after: &str,
    limit: u32,
) -> Result<Vec<(String, Option<Span>)>, StoreError> {
    let values = values![after, bounds.now, bounds.runs, bounds.latest, limit];
    let rows = tx.query(&RETENTION_DAGS, values).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("dag");
            let (dag_id, own) = (c.text()?, c.int()?);
            Ok((dag_id, (own > 0).then(|| Span::from_micros(own))))
        })
        .collect()
}

const RETENTION_UNREAD: Stmt = Stmt::same(
    "retention_unread",
    "SELECT dag_id, version_pk FROM dag WHERE keep_runs IS NULL AND dag_id > $1
     ORDER BY dag_id LIMIT $2",
)
.locking(" FOR UPDATE SKIP LOCKED");
const RETENTION_SET_KEEP: Stmt = Stmt::same(
    "retention_set_keep",
    "UPDATE dag SET keep_runs = $3 WHERE dag_id = $1 AND version_pk = $2",
);

/// DAGs of which it is not written down how long they keep their runs, after a name: with their versions;
/// locked in a transaction that may write.
pub async fn unread(tx: &Tx, after: &str, limit: u32) -> Result<Vec<(String, i64)>, StoreError> {
    let rows = tx.query(&RETENTION_UNREAD, values![after, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("dag");
            Ok((c.text()?, c.int()?))
        })
        .collect()
}

/// Writes down how long a DAG keeps its runs, as that version says.
pub async fn set_keep(
    tx: &Tx,
    dag_id: &str,
    version_pk: i64,
    own: Option<Span>,
) -> Result<(), StoreError> {
    let own = own.map_or(0, Span::as_micros);
    tx.execute(&RETENTION_SET_KEEP, values![dag_id, version_pk, own]).await.map(drop)
}

const RETENTION_RUNS: Stmt = Stmt::same(
    "retention_runs",
    "SELECT r.run_pk, r.run_id, r.ended_at, r.state,
        CAST(CASE WHEN EXISTS (SELECT 1 FROM run n WHERE n.dag_id = r.dag_id
            AND (n.run_after, n.run_pk) > (r.run_after, r.run_pk)) THEN 0 ELSE 1 END AS BIGINT),
        CAST(CASE WHEN r.logical_date IS NULL THEN 0 ELSE 1 END AS BIGINT),
        (SELECT n.state FROM run n WHERE n.dag_id = r.dag_id AND n.state <> 'missed'
            AND n.logical_date >= r.logical_date
            AND (n.logical_date, n.run_pk) > (r.logical_date, r.run_pk)
            ORDER BY n.logical_date, n.run_pk LIMIT 1),
        CAST(CASE WHEN EXISTS (SELECT 1 FROM hold h WHERE h.run_pk = r.run_pk)
            OR EXISTS (SELECT 1 FROM attempt a WHERE a.run_pk = r.run_pk
                AND (a.state <> 'ended' OR a.may_run = 1)) THEN 1 ELSE 0 END AS BIGINT)
     FROM run r WHERE r.dag_id = $1 AND r.ended_at IS NOT NULL AND r.ended_at < $2
        AND (r.ended_at, r.run_pk) > ($3, $4)
     ORDER BY r.ended_at, r.run_pk LIMIT $5",
)
.locking(" FOR UPDATE OF r SKIP LOCKED");

/// Runs of a DAG that ended before an instant, after a place in the order of their ends; locked in a
/// transaction that may write.
pub async fn runs(
    tx: &Tx,
    dag_id: &str,
    before: Timestamp,
    after: (Timestamp, i64),
    limit: u32,
) -> Result<Vec<OldRun>, StoreError> {
    let values = values![dag_id, before, after.0, after.1, limit];
    tx.query(&RETENTION_RUNS, values).await?.into_iter().map(old_run).collect()
}

fn old_run(row: Row) -> Result<OldRun, StoreError> {
    let mut c = row.columns("run");
    let (run_pk, run_id, ended_at) = (c.int()?, c.text()?, c.time()?);
    let facts = RunFacts {
        state: c.named(RunState::parse)?,
        is_newest: c.flag()?,
        is_dated: c.flag()?,
        next: c.opt_named(RunState::parse)?,
        may_still_run: c.flag()?,
    };
    Ok(OldRun { run_pk, run_id, ended_at, facts })
}

const RETENTION_DROP: Stmt = Stmt::same(
    "retention_drop",
    "DELETE FROM run WHERE run_pk = $1 AND ended_at = $2
        AND state IN ('success', 'failed', 'cancelled', 'missed')",
);
const RETENTION_LEAVE: Stmt = Stmt::same(
    "retention_leave",
    "INSERT INTO pruned_run (run_pk, at) VALUES ($1, $2) ON CONFLICT DO NOTHING",
);

/// Removes the rows of runs that are over, and leaves their keys; how many.
pub async fn drop_runs(tx: &Tx, runs: &[&OldRun]) -> Result<u64, StoreError> {
    let sets = runs.iter().map(|run| values![run.run_pk, run.ended_at]).collect();
    let gone = tx.execute_many(&RETENTION_DROP, sets).await?;
    let left = runs.iter().zip(&gone).filter(|(_, n)| **n == 1);
    let sets = left.map(|(run, _)| values![run.run_pk, tx.now()]).collect();
    tx.execute_many(&RETENTION_LEAVE, sets).await?;
    Ok(gone.into_iter().sum())
}

const OWN: &[Stmt] = &[
    RETENTION_DAGS,
    RETENTION_UNREAD,
    RETENTION_SET_KEEP,
    RETENTION_RUNS,
    RETENTION_DROP,
    RETENTION_LEAVE,
];

/// Of this module and of those below it.
pub(super) fn statements() -> Vec<Stmt> {
    [OWN, jobs::STATEMENTS, logs::STATEMENTS, rest::STATEMENTS, rows::STATEMENTS].concat()
}
