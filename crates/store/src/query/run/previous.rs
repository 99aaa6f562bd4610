//! The run before another one (`depends_on_past`).

use super::{Run, decode};
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
