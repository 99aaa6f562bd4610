//! The snapshot that the audit reads: everything that is not over, and the newest of what is.

use crate::query::installation;
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::audit::{AuditAttempt, AuditPool, AuditTi, Snapshot};
use fencepost_core::id::Token;
use fencepost_core::state::{AttemptState, Outcome, RunState, TiState};

const AUDIT_TIS: Stmt = Stmt::same(
    "audit_tis",
    "SELECT t.run_pk, t.task_index, t.map_index, t.dag_id, t.task_id, r.run_id, t.state, t.token,
            r.state, t.retry_at, t.forward_due, t.max_tries, t.infra_losses, t.clears
     FROM task_instance t JOIN run r ON r.run_pk = t.run_pk
     WHERE t.run_pk > $1 AND t.run_pk <= $2",
);
const AUDIT_ATTEMPTS: Stmt = Stmt::same(
    "audit_attempts",
    "SELECT a.token, a.attempt_number, a.run_pk, a.task_index, a.map_index, a.state, a.outcome,
            a.job_id, a.started_at, (SELECT COUNT(*) FROM hold h WHERE h.token = a.token)
     FROM attempt a WHERE a.run_pk > $1 AND a.run_pk <= $2",
);
const AUDIT_POOLS: Stmt = Stmt::same(
    "audit_pools",
    "SELECT p.name, p.slots, CAST(COALESCE(SUM(h.slots), 0) AS BIGINT), p.shrunk
     FROM pool p LEFT JOIN hold h ON h.pool = p.name GROUP BY p.name, p.slots, p.shrunk",
);
const AUDIT_DOUBLED_SLOTS: Stmt = Stmt::same(
    "audit_doubled_slots",
    "SELECT dag_id, CAST(logical_date AS TEXT) FROM run
     WHERE run_type = 'scheduled' AND run_pk > $1 AND run_pk <= $2
     GROUP BY dag_id, logical_date HAVING COUNT(*) > 1 LIMIT 100",
);
const AUDIT_UNFINISHED: Stmt = Stmt::same(
    "audit_unfinished",
    "SELECT DISTINCT r.dag_id, r.run_id FROM run r JOIN task_instance t ON t.run_pk = r.run_pk
     WHERE r.run_pk > $1 AND r.run_pk <= $2 AND r.state IN ('success', 'failed', 'cancelled')
        AND t.state NOT IN ('success', 'failed', 'skipped', 'upstream_failed', 'removed')
     LIMIT 100",
);
const AUDIT_LAST_RUN: Stmt =
    Stmt::same("audit_last_run", "SELECT COALESCE(MAX(run_pk), 0) FROM run");

/// The newest run's key.
pub async fn last_run(tx: &Tx) -> Result<i64, StoreError> {
    let row = tx.query_opt(&AUDIT_LAST_RUN, vec![]).await?;
    row.unwrap_or(crate::Row(vec![])).columns("run").int()
}

/// Everything about the runs after `after` up to `to`, and all pools.
pub async fn snapshot(tx: &Tx, after: i64, to: i64) -> Result<Snapshot, StoreError> {
    let range = || values![after, to];
    let mut snapshot = Snapshot::default();
    for row in tx.query(&AUDIT_TIS, range()).await? {
        snapshot.tis.push(ti(row.columns("task_instance"))?);
    }
    for row in tx.query(&AUDIT_ATTEMPTS, range()).await? {
        snapshot.attempts.push(attempt(row.columns("attempt"))?);
    }
    for row in tx.query(&AUDIT_POOLS, vec![]).await? {
        let mut c = row.columns("pool");
        let (name, slots, held, shrunk) = (c.text()?, c.int()?, c.int()?, c.flag()?);
        snapshot.pools.push(AuditPool { name, slots, held, shrunk });
    }
    for row in tx.query(&AUDIT_DOUBLED_SLOTS, range()).await? {
        let mut c = row.columns("run");
        snapshot.doubled_slots.push((c.text()?, c.opt_text()?.unwrap_or_default()));
    }
    for row in tx.query(&AUDIT_UNFINISHED, range()).await? {
        let mut c = row.columns("run");
        snapshot.unfinished_in_finished_runs.push((c.text()?, c.text()?));
    }
    if let Some(row) = installation::load(tx).await? {
        let counter = u64::try_from(row.counter).unwrap_or(0);
        snapshot.highest_minted = Token::new(row.epoch, counter).ok();
    }
    Ok(snapshot)
}

fn ti(mut c: crate::db::Columns) -> Result<AuditTi, StoreError> {
    let (run, task, map_index) = (c.int()?, c.number()?, c.number::<i32>()?);
    let (dag_id, task_id, run_id) = (c.text()?, c.text()?, c.text()?);
    let index = if map_index < 0 { String::new() } else { format!("[{map_index}]") };
    Ok(AuditTi {
        run,
        task,
        map_index,
        name: format!("{dag_id} {run_id} {task_id}{index}"),
        state: c.named(TiState::parse)?,
        token: c.opt_token()?,
        run_state: c.named(RunState::parse)?,
        has_timer: c.opt_time()?.is_some(),
        forward_due: c.flag()?,
        max_tries: c.number()?,
        infra_retries: c.number()?,
        clears: c.number()?,
    })
}

fn attempt(mut c: crate::db::Columns) -> Result<AuditAttempt, StoreError> {
    Ok(AuditAttempt {
        token: c.token()?,
        number: c.number()?,
        run: c.int()?,
        task: c.number()?,
        map_index: c.number()?,
        state: c.named(AttemptState::parse)?,
        outcome: c.opt_named(Outcome::parse)?,
        owned: c.opt_text()?.is_some(),
        started: c.opt_time()?.is_some(),
        holds: c.number()?,
    })
}
