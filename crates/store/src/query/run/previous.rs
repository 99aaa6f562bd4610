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
            AND state <> 'missed' ORDER BY logical_date DESC LIMIT 1"
    ),
);

/// The run before a logical date (`depends_on_past`).
pub async fn previous(tx: &Tx, dag_id: &str, before: Timestamp) -> Result<Option<Run>, StoreError> {
    tx.query_opt(&RUN_PREVIOUS, values![dag_id, before]).await?.map(decode).transpose()
}
