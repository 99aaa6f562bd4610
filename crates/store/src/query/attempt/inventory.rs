//! What the store shows in a worker's hands, for its inventories; and what it was asked.

use super::{Attempt, Claimer, decode_all};
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::{JobId, Token};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Timestamp;

/// An attempt in a job's hands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    pub job_id: JobId,
    pub token: Token,
    pub state: AttemptState,
    /// The number of the call that claimed it, started it or took it over.
    pub call: i64,
    /// Since when its owner owes an answer about it.
    pub handed_over_at: Option<Timestamp>,
}

// Through its index: (job, token) of those that are open.
pub(super) const ATTEMPT_HELD: Stmt = Stmt::same(
    "attempt_held",
    "SELECT job_id, token, state, call, handed_over_at FROM attempt WHERE job_id = $1
        AND state IN ('claimed', 'running', 'stopping', 'lost_open')
     ORDER BY token LIMIT 100000",
)
.batched(
    1,
    "SELECT w.ord, a.job_id, a.token, a.state, a.call, a.handed_over_at \
        FROM unnest($1::text[]) WITH ORDINALITY AS w(job_id, ord) \
        JOIN attempt a ON a.job_id = w.job_id \
        AND a.state IN ('claimed', 'running', 'stopping', 'lost_open') \
        ORDER BY w.ord, a.token",
);

/// Everything in the hands of jobs, without a lock.
pub async fn held_by(tx: &Tx, jobs: &[JobId]) -> Result<Vec<Held>, StoreError> {
    let sets = jobs.iter().map(|job| values![*job]).collect();
    tx.query_many(&ATTEMPT_HELD, sets).await?.into_iter().map(held).collect()
}

fn held(row: Row) -> Result<Held, StoreError> {
    let mut c = row.columns("attempt");
    let wrong = c.wrong("is not a UUID");
    Ok(Held {
        job_id: c.opt_job_id()?.ok_or(wrong)?,
        token: c.token()?,
        state: c.named(AttemptState::parse)?,
        call: c.int()?,
        handed_over_at: c.opt_time()?,
    })
}

pub(super) const ATTEMPT_ASKED: Stmt = Stmt::same(
    "attempt_asked",
    "UPDATE attempt SET asked_at = $3 WHERE token = $1 AND job_id = $2 AND asked_at IS NULL
        AND state IN ('claimed', 'running', 'stopping')",
);

/// A job is asked about attempts; `true` for each that it was not asked about before.
pub async fn asked(tx: &Tx, job: JobId, tokens: &[Token]) -> Result<Vec<bool>, StoreError> {
    let sets = tokens.iter().map(|token| values![*token, job, tx.now()]).collect();
    Ok(tx.execute_many(&ATTEMPT_ASKED, sets).await?.into_iter().map(|n| n == 1).collect())
}

pub(super) const ATTEMPT_ANSWERED: Stmt = Stmt::same(
    "attempt_answered",
    "UPDATE attempt SET call = $3, handed_over_at = NULL, asked_at = NULL
     WHERE token = $1 AND job_id = $2 AND state IN ('claimed', 'running', 'stopping', 'lost_open')",
);

/// A job has said what became of an attempt in its hands, with the call of that number.
pub async fn answered(tx: &Tx, token: Token, job: JobId, call: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&ATTEMPT_ANSWERED, values![token, job, call]).await? == 1)
}

pub(super) const ATTEMPT_RECLAIM: Stmt = Stmt::same(
    "attempt_reclaim",
    "UPDATE attempt SET state = 'running', job_id = $2, worker = $3, host = $4, start_id = $5,
        boot_id = $6, claimed_at = COALESCE(claimed_at, $7), started_at = $7, call = $8,
        handed_over_at = NULL, asked_at = NULL
     WHERE token = $1 AND (state = 'queued' OR (state = 'claimed' AND job_id = $2))",
);

/// A claim and a start that the store has forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reclaim<'a> {
    pub token: Token,
    pub by: Claimer<'a>,
    pub start_id: &'a str,
    pub boot_id: &'a str,
}

/// Records them again: queued, or claimed by the same job, -> running.
pub async fn reclaim(tx: &Tx, again: &Reclaim<'_>) -> Result<bool, StoreError> {
    let Reclaim { token, by, start_id, boot_id } = *again;
    let Claimer { job_id, worker, host, call } = by;
    let values = values![token, job_id, worker, host, start_id, boot_id, tx.now(), call];
    Ok(tx.execute(&ATTEMPT_RECLAIM, values).await? == 1)
}

pub(super) const ATTEMPT_OF_EARLIER: Stmt = Stmt::same(
    "attempt_of_earlier",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE state = 'queued' AND token < $1
          ORDER BY queue, priority DESC, token LIMIT $2"
    ),
);

/// Queued attempts whose tokens are below that one.
pub async fn queued_before(tx: &Tx, token: Token, limit: u32) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_OF_EARLIER, values![token, limit]).await?)
}
