//! One look at everything that passes would find to do.

use crate::{Row, Stmt, StoreError, Tx};
use fencepost_core::time::Timestamp;

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Something may be moved at once.
    pub is_movable: bool,
    /// The same, or something has to be watched closely.
    pub is_busy: bool,
    /// A timer has fallen due.
    pub is_due: bool,
    /// When the next timer falls due; it may be past.
    pub next_due: Option<Timestamp>,
}

const LOOK: Stmt = Stmt::same(
    "look",
    "SELECT CAST(CASE WHEN EXISTS (SELECT 1 FROM task_instance WHERE state = 'scheduled')
          OR EXISTS (SELECT 1 FROM task_instance WHERE forward_due = 1)
          OR EXISTS (SELECT 1 FROM task_instance WHERE recheck > 0)
          OR EXISTS (SELECT 1 FROM run WHERE state = 'queued')
          OR EXISTS (SELECT 1 FROM occasion)
          OR EXISTS (SELECT 1 FROM installation WHERE reconciled <> epoch)
          OR EXISTS (SELECT 1 FROM pool WHERE shrunk = 1) THEN 1 ELSE 0 END AS BIGINT),
        CAST(CASE WHEN EXISTS (SELECT 1 FROM attempt WHERE state = 'queued')
          OR EXISTS (SELECT 1 FROM attempt WHERE state = 'claimed') THEN 1 ELSE 0 END AS BIGINT),
        (SELECT MIN(next_slot_at) FROM dag
         WHERE is_active = 1 AND is_paused = 0 AND next_slot_at IS NOT NULL),
        (SELECT MIN(retry_at) FROM task_instance WHERE state = 'up_for_retry'),
        (SELECT MIN(deadline_at) FROM run
         WHERE state = 'running' AND deadline_at IS NOT NULL AND stop_reason IS NULL),
        (SELECT MIN(due_at) FROM outbox WHERE state = 'due'),
        (SELECT MIN(due_at) FROM trigger WHERE due_at IS NOT NULL),
        (SELECT MIN(due_at) FROM callback WHERE state = 'due'),
        (SELECT MIN(alert_at) FROM run
         WHERE alert_at IS NOT NULL AND state IN ('queued', 'running'))",
);

/// Looks. What departed jobs left is not looked for: who observes the leases sees it.
pub async fn look(tx: &Tx) -> Result<Look, StoreError> {
    let row = tx.query_opt(&LOOK, vec![]).await?.unwrap_or(Row(vec![]));
    let mut c = row.columns("look");
    let (is_movable, is_watched) = (c.flag()?, c.flag()?);
    let mut timers = [None; 7];
    for timer in &mut timers {
        *timer = c.opt_time()?;
    }
    let is_busy = is_movable || is_watched;
    let next_due = timers.into_iter().flatten().min();
    let is_due = next_due.is_some_and(|at| at <= tx.now());
    Ok(Look { is_movable, is_busy, is_due, next_due })
}

pub(super) const STATEMENTS: &[Stmt] = &[LOOK];
