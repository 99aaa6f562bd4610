//! What a job that is over left behind.

use super::{Attempt, decode_all};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::JobId;

// The first condition is the index's own; an open lost attempt is settled, though not ended.
pub(super) const ATTEMPT_LEFT: Stmt = Stmt::same(
    "attempt_left",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE job_id = $1
            AND state IN ('claimed', 'running', 'stopping', 'lost_open') AND state <> 'lost_open'
            AND token > $2 ORDER BY token LIMIT $3"
    ),
);

/// Attempts of a job that nobody has settled, by page.
pub async fn left_by(
    tx: &Tx,
    job_id: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_LEFT, values![job_id, after, limit]).await?)
}
