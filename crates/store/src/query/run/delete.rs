//! The end of a run's rows, by a person.

use crate::{Stmt, StoreError, Tx, values};

pub(super) const RUN_DELETE: [Stmt; 6] = [
    Stmt::same("run_delete_events", "DELETE FROM event WHERE run_pk = $1"),
    Stmt::same("run_delete_xcoms", "DELETE FROM xcom WHERE run_pk = $1"),
    Stmt::same("run_delete_assets", "DELETE FROM asset_queue WHERE run_pk = $1"),
    Stmt::same("run_delete_tis", "DELETE FROM task_instance WHERE run_pk = $1"),
    Stmt::same("run_delete_attempts", "DELETE FROM attempt WHERE run_pk = $1"),
    Stmt::same(
        "run_delete",
        "DELETE FROM run WHERE run_pk = $1
            AND state IN ('queued', 'success', 'failed', 'cancelled', 'missed')",
    ),
];

/// Removes a run that is not running, with everything that belongs to it.
pub async fn delete(tx: &Tx, run_pk: i64) -> Result<bool, StoreError> {
    let mut last = 0;
    for stmt in &RUN_DELETE {
        last = tx.execute(stmt, values![run_pk]).await?;
    }
    Ok(last == 1)
}
