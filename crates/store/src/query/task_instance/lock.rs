//! Locks of instances, in the order in which everybody takes them: a run, its instances by key,
//! their attempts by token, pools, the installation's counter.

use super::{Ti, decode_all};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;

pub(super) const TI_OF_ATTEMPT: Stmt = Stmt::same(
    "ti_of_attempt",
    concat!(
        "SELECT ",
        columns!("t."),
        " FROM attempt a JOIN task_instance t ON t.run_pk = a.run_pk
            AND t.task_index = a.task_index AND t.map_index = a.map_index WHERE a.token = $1"
    ),
)
.locking(" FOR UPDATE OF t")
.batched(
    0,
    concat!(
        "SELECT u.ord, ",
        columns!("t."),
        " FROM unnest($1::bigint[]) WITH ORDINALITY AS u(wanted, ord)
          JOIN attempt a ON a.token = u.wanted
          JOIN task_instance t ON t.run_pk = a.run_pk AND t.task_index = a.task_index
            AND t.map_index = a.map_index ORDER BY t.run_pk, t.task_index, t.map_index"
    ),
);

/// The instances that attempts are of. In a transaction that may write this comes first: who decides
/// about an attempt locks its instance before the attempt, and instances in the order of their
/// keys, so that no two wait for each other.
pub async fn of_attempts(tx: &Tx, tokens: &[Token]) -> Result<Vec<Ti>, StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    decode_all(tx.query_many(&TI_OF_ATTEMPT, sets).await?)
}

pub(super) const TI_LOCK_TASK: Stmt = Stmt::split(
    "ti_lock_task",
    "SELECT $1 + $2 - $1 - $2",
    "SELECT COUNT(*) FROM (SELECT 1 FROM task_instance WHERE run_pk = $1 AND task_index = $2
        ORDER BY map_index FOR UPDATE) locked",
);
pub(super) const TI_LOCK_UNFINISHED: Stmt = Stmt::split(
    "ti_lock_unfinished",
    "SELECT $1 - $1",
    "SELECT COUNT(*) FROM (SELECT 1 FROM task_instance WHERE run_pk = $1
        AND state NOT IN ('success', 'failed', 'skipped', 'upstream_failed', 'removed')
        ORDER BY task_index, map_index FOR UPDATE) locked",
);

/// Locks all instances of some tasks of a run: what is read of them afterwards stays so. The rows
/// are not answered, since an answer that is not read would keep the locks.
pub async fn lock_tasks(tx: &Tx, run_pk: i64, tasks: &[u32]) -> Result<(), StoreError> {
    let mut tasks = tasks.to_vec();
    tasks.sort_unstable();
    let sets = tasks.iter().map(|task| values![run_pk, *task]).collect();
    tx.query_many(&TI_LOCK_TASK, sets).await.map(drop)
}

/// Locks every instance of a run that has not ended.
pub async fn lock_unfinished(tx: &Tx, run_pk: i64) -> Result<(), StoreError> {
    tx.query(&TI_LOCK_UNFINISHED, values![run_pk]).await.map(drop)
}
