//! How the process trees of attempts are held together, as their workers found out.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::{JobId, Token};

pub(super) const ATTEMPT_LEVEL: Stmt = Stmt::same(
    "attempt_level",
    "UPDATE attempt SET containment = $2 WHERE token = $1 AND state IN ('running', 'stopping')",
);

/// Records the containment level that was reached.
pub async fn set_level(tx: &Tx, token: Token, level: &str) -> Result<(), StoreError> {
    tx.execute(&ATTEMPT_LEVEL, values![token, level]).await.map(drop)
}

pub(super) const ATTEMPT_LEVEL_TOLD: Stmt = Stmt::same(
    "attempt_level_told",
    "UPDATE attempt SET containment = $3 WHERE token = $1 AND job_id = $2
        AND containment IS NULL AND state IN ('running', 'stopping')",
)
.batched(
    1,
    "UPDATE attempt a SET containment = u.level FROM unnest($1::bigint[], $2::text[], $3::text[]) \
        WITH ORDINALITY AS u(token, job_id, level, ord) WHERE a.token = u.token \
        AND a.job_id = u.job_id AND a.containment IS NULL AND a.state IN ('running', 'stopping') \
        RETURNING u.ord",
);

/// Records levels that are not known yet, of what these jobs run.
pub async fn told(tx: &Tx, levels: &[(Token, JobId, String)]) -> Result<(), StoreError> {
    let sets = levels.iter().map(|(token, job, level)| values![*token, *job, level]).collect();
    tx.execute_many(&ATTEMPT_LEVEL_TOLD, sets).await.map(drop)
}
