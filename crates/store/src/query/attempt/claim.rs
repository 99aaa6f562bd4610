//! An attempt comes into a worker's hands: claim, start, hand-over.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::{JobId, Token};

pub(super) const ATTEMPT_CLAIM: Stmt = Stmt::split(
    "attempt_claim",
    "UPDATE attempt SET state = 'claimed', job_id = $1, worker = $2, host = $3, claimed_at = $4,
        call = $7
     WHERE state = 'queued' AND token IN (
        SELECT token FROM attempt WHERE state = 'queued' AND ramp = '' AND queue = $5
        ORDER BY priority DESC, token LIMIT $6)
     RETURNING token",
    "WITH picked AS MATERIALIZED (
        SELECT token FROM attempt WHERE state = 'queued' AND ramp = '' AND queue = $5
        ORDER BY priority DESC, token LIMIT $6 FOR UPDATE SKIP LOCKED)
     UPDATE attempt a SET state = 'claimed', job_id = $1, worker = $2, host = $3, claimed_at = $4,
        call = $7
     FROM picked WHERE a.token = picked.token RETURNING a.token",
);

pub(super) const ATTEMPT_CLAIM_RAMP: Stmt = Stmt::split(
    "attempt_claim_ramp",
    "UPDATE attempt SET state = 'claimed', job_id = $1, worker = $2, host = $3, claimed_at = $4,
        call = $7
     WHERE state = 'queued' AND token IN (
        SELECT token FROM attempt WHERE state = 'queued' AND ramp = $8 AND queue = $5
        ORDER BY priority DESC, token LIMIT $6)
     RETURNING token",
    "WITH picked AS MATERIALIZED (
        SELECT token FROM attempt WHERE state = 'queued' AND ramp = $8 AND queue = $5
        ORDER BY priority DESC, token LIMIT $6 FOR UPDATE SKIP LOCKED)
     UPDATE attempt a SET state = 'claimed', job_id = $1, worker = $2, host = $3, claimed_at = $4,
        call = $7
     FROM picked WHERE a.token = picked.token RETURNING a.token",
);

/// Who claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claimer<'a> {
    pub job_id: JobId,
    pub worker: &'a str,
    pub host: &'a str,
    /// The number of its call.
    pub call: i64,
}

/// Claims up to `limit` queued attempts of a queue that no ramp holds back, the highest priority first.
pub async fn claim(
    tx: &Tx,
    by: Claimer<'_>,
    queue: &str,
    limit: u32,
) -> Result<Vec<Token>, StoreError> {
    let values = values![by.job_id, by.worker, by.host, tx.now(), queue, limit, by.call];
    let rows = tx.query(&ATTEMPT_CLAIM, values).await?;
    rows.into_iter().map(|row| row.columns("attempt").token()).collect()
}

/// The same of those that the ramp of a pool lets go.
pub async fn claim_by_ramp(
    tx: &Tx,
    by: Claimer<'_>,
    (pool, queue): (&str, &str),
    limit: u32,
) -> Result<Vec<Token>, StoreError> {
    let values = values![by.job_id, by.worker, by.host, tx.now(), queue, limit, by.call, pool];
    let rows = tx.query(&ATTEMPT_CLAIM_RAMP, values).await?;
    rows.into_iter().map(|row| row.columns("attempt").token()).collect()
}

pub(super) const ATTEMPT_START: Stmt = Stmt::same(
    "attempt_start",
    "UPDATE attempt SET state = 'running', start_id = $3, boot_id = $4,
        started_at = COALESCE(started_at, $5), call = $6, handed_over_at = NULL
     WHERE token = $1 AND job_id = $2
        AND (state = 'claimed' OR (state = 'running' AND start_id IS NULL))",
)
.batched(
    1,
    "UPDATE attempt a SET state = 'running', start_id = u.start_id, boot_id = u.boot_id, \
        started_at = COALESCE(a.started_at, u.at), call = u.call, handed_over_at = NULL \
        FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], \
        $6::bigint[]) WITH ORDINALITY AS u(token, job_id, start_id, boot_id, at, call, ord) WHERE a.token = u.token AND a.job_id = u.job_id AND (a.state = \
        'claimed' OR (a.state = 'running' AND a.start_id IS NULL)) RETURNING u.ord",
);
pub(super) const ATTEMPT_UNSTART: Stmt = Stmt::same(
    "attempt_unstart",
    "UPDATE attempt SET start_id = NULL, boot_id = NULL
     WHERE token = $1 AND job_id = $2 AND state = 'running'",
);

/// A start that was accepted by the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    pub token: Token,
    pub job_id: JobId,
    pub start_id: String,
    pub boot_id: String,
    /// The number of its worker's call.
    pub call: i64,
}

/// claimed -> running, for the owner; also a running one whose start was taken back.
pub async fn start(tx: &Tx, starts: &[Started]) -> Result<Vec<bool>, StoreError> {
    let sets = starts
        .iter()
        .map(|s| values![s.token, s.job_id, &s.start_id, &s.boot_id, tx.now(), s.call])
        .collect();
    Ok(tx.execute_many(&ATTEMPT_START, sets).await?.into_iter().map(|n| n == 1).collect())
}

/// Takes back a start that is proved not to have happened: it may be started again.
pub async fn unstart(tx: &Tx, token: Token, job_id: JobId) -> Result<bool, StoreError> {
    Ok(tx.execute(&ATTEMPT_UNSTART, values![token, job_id]).await? == 1)
}

pub(super) const ATTEMPT_HAND_OVER: Stmt = Stmt::same(
    "attempt_hand_over",
    "UPDATE attempt SET job_id = $2, worker = $3, host = $4, call = $6, handed_over_at = $5,
        asked_at = NULL,
        claimed_at = CASE WHEN state = 'claimed' THEN $5 ELSE claimed_at END
     WHERE token = $1 AND state IN ('claimed', 'running', 'stopping', 'lost_open')",
);

/// Gives an attempt to the successor of its owner.
pub async fn hand_over(tx: &Tx, token: Token, to: Claimer<'_>) -> Result<bool, StoreError> {
    let values = values![token, to.job_id, to.worker, to.host, tx.now(), to.call];
    Ok(tx.execute(&ATTEMPT_HAND_OVER, values).await? == 1)
}
