//! Runs that count in the limit of a backfill.

use super::{Run, decode_all};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::state::RunState;

macro_rules! open_runs {
    ($order:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM run WHERE backfill_pk = $1 AND state = $2 AND state IN ('queued', 'running')
                AND paused <= $3 ",
            $order,
            " LIMIT $4"
        )
    };
}

pub(super) const RUN_OF_BACKFILL: Stmt =
    Stmt::same("run_of_backfill", open_runs!("ORDER BY logical_date, run_pk"))
        .locking(" FOR UPDATE SKIP LOCKED");
pub(super) const RUN_OF_BACKFILL_BACK: Stmt =
    Stmt::same("run_of_backfill_back", open_runs!("ORDER BY logical_date DESC, run_pk DESC"))
        .locking(" FOR UPDATE SKIP LOCKED");

/// Queued runs of a backfill that nobody paused, in its order; locked.
pub async fn queued_of(
    tx: &Tx,
    backfill_pk: i64,
    backwards: bool,
    limit: u32,
) -> Result<Vec<Run>, StoreError> {
    let stmt = if backwards { &RUN_OF_BACKFILL_BACK } else { &RUN_OF_BACKFILL };
    let values = values![backfill_pk, RunState::Queued.as_str(), false, limit];
    decode_all(tx.query(stmt, values).await?)
}

/// Runs of a backfill in a state, paused ones too; locked.
pub async fn open_of(
    tx: &Tx,
    backfill_pk: i64,
    state: RunState,
    limit: u32,
) -> Result<Vec<Run>, StoreError> {
    let values = values![backfill_pk, state.as_str(), true, limit];
    decode_all(tx.query(&RUN_OF_BACKFILL, values).await?)
}

pub(super) const RUN_UNSTOPPED_OF: Stmt = Stmt::same(
    "run_unstopped_of",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE backfill_pk = $1 AND state = 'running' AND stop_reason IS NULL
            ORDER BY logical_date, run_pk LIMIT $2"
    ),
)
.locking(" FOR UPDATE SKIP LOCKED");

/// Running runs of a backfill that nobody stops yet; locked.
pub async fn unstopped_of(tx: &Tx, backfill_pk: i64, limit: u32) -> Result<Vec<Run>, StoreError> {
    decode_all(tx.query(&RUN_UNSTOPPED_OF, values![backfill_pk, limit]).await?)
}
