//! What a job that is over left behind, and what stays open of it.

use super::{Attempt, StopRequest, decode_all};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;

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

pub(super) const ATTEMPT_KEEP_OPEN: Stmt = Stmt::same(
    "attempt_keep_open",
    "UPDATE attempt SET state = 'lost_open', reason = $3, evidence = $4
     WHERE token = $1 AND state = $2",
);

/// A lost attempt that stays the current one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostOpen {
    pub token: Token,
    pub from: AttemptState,
    pub reason: String,
    /// JSON.
    pub evidence: Option<String>,
}

/// running or stopping -> lost_open, from the state that was read.
pub async fn keep_open(tx: &Tx, opens: &[LostOpen]) -> Result<Vec<bool>, StoreError> {
    let sets = opens
        .iter()
        .map(|o| values![o.token, o.from.as_str(), &o.reason, o.evidence.clone()])
        .collect();
    Ok(tx.execute_many(&ATTEMPT_KEEP_OPEN, sets).await?.into_iter().map(|n| n == 1).collect())
}

pub(super) const ATTEMPT_STOP_OPEN: Stmt = Stmt::same(
    "attempt_stop_open",
    "UPDATE attempt SET stop_reason = $2, stop_by = $3, stop_at = $4
     WHERE token = $1 AND state = 'lost_open'",
);

/// What becomes of open lost attempts once they are known to be gone.
pub async fn stop_open(
    tx: &Tx,
    tokens: &[Token],
    request: &StopRequest<'_>,
) -> Result<(), StoreError> {
    let sets = tokens
        .iter()
        .map(|token| values![*token, request.reason.as_str(), request.by, tx.now()])
        .collect();
    tx.execute_many(&ATTEMPT_STOP_OPEN, sets).await.map(drop)
}
