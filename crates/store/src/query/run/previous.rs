//! The run before another one (`depends_on_past`), and those on either side of it.

use super::{Run, decode, decode_all};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::time::Timestamp;

pub(super) const RUN_PREVIOUS: Stmt = Stmt::same(
    "run_previous",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND logical_date IS NOT NULL AND logical_date < $2
            AND state <> 'missed' AND (run_type <> 'manual' OR $3 = CAST(1 AS BIGINT))
          ORDER BY logical_date DESC LIMIT 1"
    ),
);

/// The run before a logical date; a person's counts only if asked for.
pub async fn previous(
    tx: &Tx,
    dag_id: &str,
    before: Timestamp,
    manual: bool,
) -> Result<Option<Run>, StoreError> {
    tx.query_opt(&RUN_PREVIOUS, values![dag_id, before, manual]).await?.map(decode).transpose()
}

pub(super) const RUN_DATED_BEFORE: Stmt = Stmt::same(
    "run_dated_before",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND logical_date < $2 AND state <> 'missed'
          ORDER BY logical_date DESC, run_pk DESC LIMIT $3"
    ),
);
pub(super) const RUN_DATED_AFTER: Stmt = Stmt::same(
    "run_dated_after",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND logical_date > $2 AND state <> 'missed'
          ORDER BY logical_date, run_pk LIMIT $3"
    ),
);

/// The runs of a DAG nearest to a logical date, before it or after it; slots that were missed have nothing.
pub async fn dated(
    tx: &Tx,
    dag_id: &str,
    (date, is_after): (Timestamp, bool),
    limit: u32,
) -> Result<Vec<Run>, StoreError> {
    let stmt = if is_after { &RUN_DATED_AFTER } else { &RUN_DATED_BEFORE };
    decode_all(tx.query(stmt, values![dag_id, date, limit]).await?)
}
