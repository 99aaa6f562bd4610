//! The snapshot that the audit reads: everything about a range of runs, and all pools.

mod version;

use crate::db::Columns;
use crate::query::installation;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::audit::{AuditAttempt, AuditOutput, AuditPool, AuditRun, AuditTi, Snapshot};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, CountedAs, Outcome, RunState, TiState};
use fencepost_core::trigger_rule::UpstreamCounts;
use std::collections::BTreeMap;

const AUDIT_RUNS: Stmt = Stmt::same(
    "audit_runs",
    "SELECT run_pk, dag_id, run_id, state, unfinished, version_pk FROM run
     WHERE run_pk > $1 AND run_pk <= $2 ORDER BY run_pk",
);
const AUDIT_TIS: Stmt = Stmt::same(
    "audit_tis",
    "SELECT t.run_pk, t.task_index, t.map_index, t.dag_id, t.task_id, r.run_id, t.state, t.token,
            COALESCE(t.retry_at, (SELECT MIN(g.created_at) FROM trigger g WHERE g.run_pk = t.run_pk
                AND g.task_index = t.task_index AND g.map_index = t.map_index
                AND (t.state <> 'deferred' OR g.token = t.token))),
            t.forward_due, t.recheck, t.up_total, t.up_success, t.up_failed,
            t.up_skipped, t.up_upstream_failed, t.up_removed, t.try_number, t.max_tries,
            t.attempts, t.infra_losses, t.clears
     FROM task_instance t LEFT JOIN run r ON r.run_pk = t.run_pk
     WHERE t.run_pk > $1 AND t.run_pk <= $2
        AND NOT EXISTS (SELECT 1 FROM pruned_run p WHERE p.run_pk = t.run_pk)",
);
const AUDIT_LOGGED: Stmt = Stmt::same(
    "audit_logged",
    "SELECT e.run_pk, e.task_id, e.map_index, e.to_state FROM event e
     JOIN (SELECT MAX(seq) AS seq FROM event
           WHERE run_pk > $1 AND run_pk <= $2 AND task_id IS NOT NULL AND to_state IS NOT NULL
           GROUP BY run_pk, task_id, map_index) l ON l.seq = e.seq",
);
const AUDIT_ATTEMPTS: Stmt = Stmt::same(
    "audit_attempts",
    "SELECT a.token, a.attempt_number, a.run_pk, a.task_index, a.map_index, a.state, a.outcome,
            a.counted_as, a.job_id, a.started_at,
            CAST(CASE WHEN a.state IN ('claimed', 'running', 'stopping') AND EXISTS (
                SELECT 1 FROM job j WHERE j.job_id = a.job_id AND j.pages = 0
                    AND (j.state = 'lost' OR (j.state = 'stopped' AND j.lease_ttl IS NOT NULL
                         AND j.detached = 0 AND j.succeeded_by IS NULL))) THEN 1 ELSE 0 END AS BIGINT),
            (SELECT COUNT(*) FROM hold h WHERE h.token = a.token)
     FROM attempt a WHERE a.run_pk > $1 AND a.run_pk <= $2
        AND NOT EXISTS (SELECT 1 FROM pruned_run p WHERE p.run_pk = a.run_pk)",
);
const AUDIT_OUTPUTS: Stmt = Stmt::same(
    "audit_outputs",
    "SELECT DISTINCT run_pk, task_index, map_index, token FROM xcom
     WHERE run_pk > $1 AND run_pk <= $2
        AND NOT EXISTS (SELECT 1 FROM pruned_run p WHERE p.run_pk = xcom.run_pk)",
);
const AUDIT_POOLS: Stmt = Stmt::same(
    "audit_pools",
    "SELECT p.name, p.slots, CAST(COALESCE(SUM(h.slots), 0) AS BIGINT), p.shrunk
     FROM pool p LEFT JOIN hold h ON h.pool = p.name GROUP BY p.name, p.slots, p.shrunk",
);
const AUDIT_STRAY_HOLDS: Stmt = Stmt::same(
    "audit_stray_holds",
    "SELECT h.token FROM hold h
     WHERE NOT EXISTS (SELECT 1 FROM attempt a WHERE a.token = h.token) LIMIT 100",
);
// A run of the range against all others: two of one slot may be far apart. A backfill may run a slot
// that was missed.
const AUDIT_DOUBLED_SLOTS: Stmt = Stmt::same(
    "audit_doubled_slots",
    "SELECT DISTINCT r.dag_id, r.logical_date FROM run r
     WHERE r.run_type IN ('scheduled', 'backfill') AND r.run_pk > $1 AND r.run_pk <= $2
        AND EXISTS (SELECT 1 FROM run o WHERE o.dag_id = r.dag_id
            AND o.logical_date = r.logical_date AND o.run_pk <> r.run_pk
            AND (o.run_type = 'scheduled' AND r.run_type = 'scheduled'
                OR o.run_type IN ('scheduled', 'backfill') AND o.state <> 'missed'
                    AND r.state <> 'missed'))
     LIMIT 100",
);
const AUDIT_LAST_RUN: Stmt =
    Stmt::same("audit_last_run", "SELECT COALESCE(MAX(run_pk), 0) FROM run");

pub(super) const STATEMENTS: &[Stmt] = &[
    AUDIT_RUNS,
    AUDIT_TIS,
    AUDIT_LOGGED,
    AUDIT_ATTEMPTS,
    AUDIT_OUTPUTS,
    AUDIT_POOLS,
    AUDIT_STRAY_HOLDS,
    AUDIT_DOUBLED_SLOTS,
    AUDIT_LAST_RUN,
    version::AUDIT_VERSIONS,
];

/// The newest run's key.
pub async fn last_run(tx: &Tx) -> Result<i64, StoreError> {
    let row = tx.query_opt(&AUDIT_LAST_RUN, vec![]).await?;
    row.unwrap_or(Row(vec![])).columns("run").int()
}

/// Everything about the runs after `after` up to `to`, and all pools.
pub async fn snapshot(tx: &Tx, after: i64, to: i64) -> Result<Snapshot, StoreError> {
    let range = || values![after, to];
    let mut snapshot = Snapshot::default();
    let mut versions: Vec<(i64, i64)> = Vec::new();
    for row in tx.query(&AUDIT_RUNS, range()).await? {
        let (run, version_pk) = run(row)?;
        versions.push((run.run, version_pk));
        snapshot.runs.push(run);
    }
    snapshot.tasks = version::tasks(tx, &versions, (after, to)).await?;
    let logged = logged(tx, (after, to)).await?;
    for row in tx.query(&AUDIT_TIS, range()).await? {
        snapshot.tis.push(ti(row.columns("task_instance"), &logged)?);
    }
    for row in tx.query(&AUDIT_ATTEMPTS, range()).await? {
        snapshot.attempts.push(attempt(row.columns("attempt"))?);
    }
    for row in tx.query(&AUDIT_OUTPUTS, range()).await? {
        let mut c = row.columns("xcom");
        let (run, task, map_index) = (c.int()?, c.number()?, c.number()?);
        snapshot.outputs.push(AuditOutput { run, task, map_index, token: c.token()? });
    }
    whole_store(tx, &mut snapshot).await?;
    for row in tx.query(&AUDIT_DOUBLED_SLOTS, range()).await? {
        let mut c = row.columns("run");
        let (dag_id, slot) = (c.text()?, c.opt_time()?);
        let slot = slot.map_or_else(|| "-".into(), |at| at.to_string());
        snapshot.doubled_slots.push((dag_id, slot));
    }
    Ok(snapshot)
}

/// What belongs to no range of runs.
async fn whole_store(tx: &Tx, snapshot: &mut Snapshot) -> Result<(), StoreError> {
    for row in tx.query(&AUDIT_POOLS, vec![]).await? {
        let mut c = row.columns("pool");
        let (name, slots, held, shrunk) = (c.text()?, c.int()?, c.int()?, c.flag()?);
        snapshot.pools.push(AuditPool { name, slots, held, shrunk });
    }
    for row in tx.query(&AUDIT_STRAY_HOLDS, vec![]).await? {
        snapshot.stray_holds.push(row.columns("hold").token()?);
    }
    if let Some(row) = installation::load(tx).await? {
        let counter = u64::try_from(row.counter).unwrap_or(0);
        snapshot.highest_minted = Token::new(row.epoch, counter).ok();
    }
    Ok(())
}

fn run(row: Row) -> Result<(AuditRun, i64), StoreError> {
    let mut c = row.columns("run");
    let (run, dag_id, run_id) = (c.int()?, c.text()?, c.text()?);
    let (state, unfinished) = (c.named(RunState::parse)?, c.int()?);
    let name = format!("{dag_id} {run_id}");
    Ok((AuditRun { run, name, state, unfinished }, c.int()?))
}

/// The last state that the transition log tells, by (run, task, map index).
type Logged = BTreeMap<(i64, String, i32), TiState>;

async fn logged(tx: &Tx, (after, to): (i64, i64)) -> Result<Logged, StoreError> {
    let rows = tx.query(&AUDIT_LOGGED, values![after, to]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("event");
            let key = (c.int()?, c.text()?, c.opt_number()?.unwrap_or(-1));
            Ok((key, c.named(TiState::parse)?))
        })
        .collect()
}

fn ti(mut c: Columns, logged: &Logged) -> Result<AuditTi, StoreError> {
    let (run, task, map_index) = (c.int()?, c.number()?, c.number::<i32>()?);
    let (dag_id, task_id, run_id) = (c.text()?, c.text()?, c.opt_text()?);
    let run_id = run_id.unwrap_or_else(|| format!("run number {run}"));
    let index = if map_index < 0 { String::new() } else { format!("[{map_index}]") };
    let name = format!("{dag_id} {run_id} {task_id}{index}");
    Ok(AuditTi {
        run,
        task,
        map_index,
        name,
        state: c.named(TiState::parse)?,
        token: c.opt_token()?,
        has_timer: c.opt_time()?.is_some(),
        forward_due: c.flag()?,
        recheck: c.flag()?,
        upstream: UpstreamCounts {
            total: c.number()?,
            success: c.number()?,
            failed: c.number()?,
            skipped: c.number()?,
            upstream_failed: c.number()?,
            removed: c.number()?,
        },
        try_number: c.number()?,
        max_tries: c.number()?,
        attempts: c.number()?,
        infra_losses: c.number()?,
        clears: c.number()?,
        logged: logged.get(&(run, task_id, map_index)).copied(),
    })
}

fn attempt(mut c: Columns) -> Result<AuditAttempt, StoreError> {
    Ok(AuditAttempt {
        token: c.token()?,
        number: c.number()?,
        run: c.int()?,
        task: c.number()?,
        map_index: c.number()?,
        state: c.named(AttemptState::parse)?,
        outcome: c.opt_named(Outcome::parse)?,
        counted_as: c.opt_named(CountedAs::parse)?,
        owned: c.opt_text()?.is_some(),
        started: c.opt_time()?.is_some(),
        abandoned: c.flag()?,
        holds: c.number()?,
    })
}
