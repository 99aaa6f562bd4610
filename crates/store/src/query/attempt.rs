//! Attempts: one row for every dispatch ever made.

pub mod afterwards;
mod claim;
pub(super) mod statements;

pub use claim::{Claimer, Started, claim, claim_by_ramp, hand_over, start, unstart};

use crate::db::Columns;
use crate::query::task_instance::TiKey;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::{AttemptId, JobId, Token};
use fencepost_core::state::{AttemptState, CountedAs, Outcome, StopReason, Why};
use fencepost_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// An attempt's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    pub token: Token,
    pub attempt_id: AttemptId,
    pub ti: TiKey,
    pub dag_id: String,
    pub try_number: u32,
    pub attempt_number: u32,
    pub state: AttemptState,
    pub outcome: Option<Outcome>,
    pub why: Why,
    pub replaces: Option<Token>,
    pub prev_outcome: String,
    pub queue: String,
    pub priority: i32,
    pub queued_until: Timestamp,
    pub job_id: Option<JobId>,
    pub worker: Option<String>,
    pub host: Option<String>,
    pub containment: Option<String>,
    pub start_id: Option<String>,
    pub boot_id: Option<String>,
    pub queued_at: Timestamp,
    pub claimed_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub stop_reason: Option<StopReason>,
    pub stop_by: Option<String>,
    pub stop_at: Option<Timestamp>,
    /// Where a mark leads once the attempt is gone: a task instance's state.
    pub stop_mark: Option<String>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub counted_as: Option<CountedAs>,
    pub evidence: Option<String>,
    pub report_digest: Option<String>,
    /// It came back after a loss, by the ramp of that pool.
    pub ramp: Option<String>,
}

macro_rules! columns {
    () => {
        "token, attempt_id, run_pk, task_index, map_index, dag_id, try_number, attempt_number, \
         state, outcome, why, replaces, prev_outcome, queue, priority, queued_until, job_id, \
         worker, host, containment, start_id, boot_id, queued_at, claimed_at, started_at, \
         ended_at, stop_reason, stop_by, stop_at, stop_mark, reason, message, exit_code, signal, \
         counted_as, evidence, report_digest, ramp"
    };
}

mod inventory;
mod left;
pub mod level;
pub use inventory::{Held, Reclaim, answered, asked, held_by, queued_before, reclaim};
pub use left::{LostOpen, keep_open, left_by, stop_open};
pub use level::set_level;

fn decode(row: Row) -> Result<Attempt, StoreError> {
    let mut c: Columns = row.columns("attempt");
    Ok(Attempt {
        token: c.token()?,
        attempt_id: c.attempt_id()?,
        ti: TiKey { run_pk: c.int()?, task_index: c.number()?, map_index: c.number()? },
        dag_id: c.text()?,
        try_number: c.number()?,
        attempt_number: c.number()?,
        state: c.named(AttemptState::parse)?,
        outcome: c.opt_named(Outcome::parse)?,
        why: c.named(Why::parse)?,
        replaces: c.opt_token()?,
        prev_outcome: c.text()?,
        queue: c.text()?,
        priority: c.number()?,
        queued_until: c.time()?,
        job_id: c.opt_job_id()?,
        worker: c.opt_text()?,
        host: c.opt_text()?,
        containment: c.opt_text()?,
        start_id: c.opt_text()?,
        boot_id: c.opt_text()?,
        queued_at: c.time()?,
        claimed_at: c.opt_time()?,
        started_at: c.opt_time()?,
        ended_at: c.opt_time()?,
        stop_reason: c.opt_named(StopReason::parse)?,
        stop_by: c.opt_text()?,
        stop_at: c.opt_time()?,
        stop_mark: c.opt_text()?,
        reason: c.opt_text()?,
        message: c.opt_text()?,
        exit_code: c.opt_int()?,
        signal: c.opt_int()?,
        counted_as: c.opt_named(CountedAs::parse)?,
        evidence: c.opt_text()?,
        report_digest: c.opt_text()?,
        ramp: Some(c.text()?).filter(|pool| !pool.is_empty()),
    })
}

fn decode_all(rows: Vec<Row>) -> Result<Vec<Attempt>, StoreError> {
    rows.into_iter().map(decode).collect()
}

/// An attempt to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAttempt {
    pub token: Token,
    pub attempt_id: AttemptId,
    pub ti: TiKey,
    pub dag_id: String,
    pub try_number: u32,
    pub attempt_number: u32,
    pub why: Why,
    pub replaces: Option<Token>,
    pub prev_outcome: String,
    pub queue: String,
    pub priority: i32,
    pub queued_until: Timestamp,
    /// Replaces what was lost: the pool by whose ramp it comes back.
    pub ramp: Option<String>,
}

const ATTEMPT_INSERT: Stmt = Stmt::same(
    "attempt_insert",
    "INSERT INTO attempt (token, attempt_id, run_pk, task_index, map_index, dag_id, try_number,
        attempt_number, state, why, replaces, prev_outcome, queue, priority, queued_until,
        queued_at, ramp)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9, $10, $11, $12, $13, $14, $15, $16)",
)
.batched(
    0,
    "INSERT INTO attempt (state, token, attempt_id, run_pk, task_index, map_index, \
        dag_id, try_number, attempt_number, why, replaces, prev_outcome, queue, priority, \
        queued_until, queued_at, ramp) SELECT 'queued', u.* FROM unnest($1::bigint[], $2::text[], \
        $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[], $8::bigint[], \
        $9::text[], $10::bigint[], $11::text[], $12::text[], $13::bigint[], $14::bigint[], \
        $15::bigint[], $16::text[]) AS u(token, attempt_id, run_pk, task_index, map_index, dag_id, \
        try_number, attempt_number, why, replaces, prev_outcome, queue, priority, \
        queued_until, queued_at, ramp)",
);

/// Makes queued attempts.
pub async fn insert(tx: &Tx, attempts: &[NewAttempt]) -> Result<(), StoreError> {
    let sets = attempts
        .iter()
        .map(|a| {
            values![
                a.token,
                a.attempt_id,
                a.ti.run_pk,
                a.ti.task_index,
                a.ti.map_index,
                &a.dag_id,
                a.try_number,
                a.attempt_number,
                a.why.as_str(),
                a.replaces.map_or(0, Token::as_i64),
                &a.prev_outcome,
                &a.queue,
                a.priority,
                a.queued_until,
                tx.now(),
                a.ramp.as_deref().unwrap_or_default(),
            ]
        })
        .collect();
    tx.execute_many(&ATTEMPT_INSERT, sets).await.map(drop)
}

// The locks of attempts come after those of their instances (see `task_instance::of_attempts`).
const ATTEMPT_GET: Stmt =
    Stmt::same("attempt_get", concat!("SELECT ", columns!(), " FROM attempt a WHERE token = $1"))
        .locking(" FOR UPDATE OF a")
        .batched(
            0,
            concat!(
                "SELECT u.ord, ",
                columns!(),
                " FROM unnest($1::bigint[]) WITH ORDINALITY AS u(wanted, ord)
                    JOIN attempt a ON a.token = u.wanted ORDER BY u.ord"
            ),
        );
const ATTEMPT_LOOK: Stmt =
    Stmt::same("attempt_look", concat!("SELECT ", columns!(), " FROM attempt WHERE token = $1"));
const ATTEMPT_BY_ID: Stmt = Stmt::same(
    "attempt_by_id",
    concat!("SELECT ", columns!(), " FROM attempt WHERE attempt_id = $1"),
);

/// The attempts of those tokens that exist, as they are given; locked in a transaction that may
/// write, in the order of the tokens. Their instances are to be locked before.
pub async fn get(tx: &Tx, tokens: &[Token]) -> Result<Vec<Attempt>, StoreError> {
    let sorted: BTreeSet<Token> = tokens.iter().copied().collect();
    let sets = sorted.iter().map(|token| values![*token]).collect();
    let found = decode_all(tx.query_many(&ATTEMPT_GET, sets).await?)?;
    let found: BTreeMap<Token, Attempt> = found.into_iter().map(|a| (a.token, a)).collect();
    Ok(tokens.iter().filter_map(|token| found.get(token).cloned()).collect())
}

/// The attempts of those tokens that exist, without a lock: only what never changes is to be relied on.
pub async fn look(tx: &Tx, tokens: &[Token]) -> Result<Vec<Attempt>, StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    decode_all(tx.query_many(&ATTEMPT_LOOK, sets).await?)
}

/// The attempt of that id.
pub async fn by_id(tx: &Tx, id: AttemptId) -> Result<Option<Attempt>, StoreError> {
    tx.query_opt(&ATTEMPT_BY_ID, values![id]).await?.map(decode).transpose()
}

const ATTEMPT_OF_TI: Stmt = Stmt::same(
    "attempt_of_ti",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE run_pk = $1 AND task_index = $2 AND map_index = $3
          ORDER BY token LIMIT 10000"
    ),
);

/// Every attempt of an instance, in order of tokens.
pub async fn of_ti(tx: &Tx, ti: TiKey) -> Result<Vec<Attempt>, StoreError> {
    let values = values![ti.run_pk, ti.task_index, ti.map_index];
    decode_all(tx.query(&ATTEMPT_OF_TI, values).await?)
}

const ATTEMPT_END: Stmt = Stmt::same(
    "attempt_end",
    "UPDATE attempt SET state = 'ended', outcome = $3, reason = $4, message = $5, exit_code = $6,
        signal = $7, counted_as = $8, evidence = $9, report_digest = $10, ended_at = $11,
        containment = COALESCE($12, containment)
     WHERE token = $1 AND state = $2",
)
.batched(
    1,
    "UPDATE attempt a SET state = 'ended', outcome = u.outcome, reason = u.reason, \
        message = u.message, exit_code = u.exit_code, signal = u.signal, counted_as = \
        u.counted_as, evidence = u.evidence, report_digest = u.report_digest, ended_at = \
        u.at, containment = COALESCE(u.containment, a.containment) FROM unnest($1::bigint[], \
        $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], \
        $8::text[], $9::text[], $10::text[], $11::bigint[], $12::text[]) WITH ORDINALITY AS \
        u(token, from_state, outcome, reason, message, exit_code, signal, counted_as, \
        evidence, report_digest, at, containment, ord) WHERE a.token = u.token AND a.state = \
        u.from_state RETURNING u.ord",
);

/// How an attempt ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEnd {
    pub token: Token,
    pub from: AttemptState,
    pub outcome: Outcome,
    pub reason: String,
    pub message: Option<String>,
    pub exit_code: Option<i64>,
    pub signal: Option<i64>,
    pub counted_as: CountedAs,
    pub evidence: Option<String>,
    pub report_digest: Option<String>,
    pub containment: Option<String>,
}

/// Ends attempts, from the state that was read.
pub async fn end(tx: &Tx, ends: &[AttemptEnd]) -> Result<Vec<bool>, StoreError> {
    let sets = ends
        .iter()
        .map(|e| {
            values![
                e.token,
                e.from.as_str(),
                e.outcome.as_str(),
                &e.reason,
                e.message.clone(),
                e.exit_code,
                e.signal,
                e.counted_as.as_str(),
                e.evidence.clone(),
                e.report_digest.clone(),
                tx.now(),
                e.containment.clone(),
            ]
        })
        .collect();
    Ok(tx.execute_many(&ATTEMPT_END, sets).await?.into_iter().map(|n| n == 1).collect())
}

const ATTEMPT_STOP: Stmt = Stmt::same(
    "attempt_stop",
    "UPDATE attempt SET state = 'stopping', stop_reason = $2, stop_by = $3, stop_at = $4,
        stop_mark = $5 WHERE token = $1 AND state = 'running'",
);
const ATTEMPT_HARDEN_STOP: Stmt = Stmt::same(
    "attempt_harden_stop",
    "UPDATE attempt SET stop_reason = $2, stop_by = $3, stop_mark = $4
     WHERE token = $1 AND state = 'stopping'",
);

/// A stop that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopRequest<'a> {
    pub reason: StopReason,
    pub by: &'a str,
    pub mark: Option<&'a str>,
}

/// running -> stopping.
pub async fn stop(tx: &Tx, tokens: &[Token], request: &StopRequest<'_>) -> Result<(), StoreError> {
    let sets = tokens
        .iter()
        .map(|t| values![*t, request.reason.as_str(), request.by, tx.now(), request.mark])
        .collect();
    tx.execute_many(&ATTEMPT_STOP, sets).await.map(drop)
}

/// Changes the reason of a stop under way: a cancel goes before a clear.
pub async fn change_stop(
    tx: &Tx,
    tokens: &[Token],
    request: &StopRequest<'_>,
) -> Result<(), StoreError> {
    let sets = tokens
        .iter()
        .map(|t| values![*t, request.reason.as_str(), request.by, request.mark])
        .collect();
    tx.execute_many(&ATTEMPT_HARDEN_STOP, sets).await.map(drop)
}

const ATTEMPT_OPEN: Stmt = Stmt::same(
    "attempt_open",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE job_id = $1
            AND state IN ('claimed', 'running', 'stopping', 'lost_open')
            AND token > $2 ORDER BY token LIMIT $3"
    ),
)
.locking(" FOR UPDATE");

/// Attempts that a job claimed and that have not ended, by page.
pub async fn open_of(
    tx: &Tx,
    job_id: JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_OPEN, values![job_id, after, limit]).await?)
}

const ATTEMPT_UNCLAIMED: Stmt = Stmt::same(
    "attempt_unclaimed",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE state = 'queued' AND ramp = '' AND queued_until <= $1
          ORDER BY queue, priority DESC, token LIMIT $2"
    ),
);

/// Queued attempts that nobody claimed in time. What waits for a ramp is not late.
pub async fn unclaimed(tx: &Tx, limit: u32) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_UNCLAIMED, values![tx.now(), limit]).await?)
}

// In the order of its own index: by token, SQLite would walk the whole table.
const ATTEMPT_UNSTARTED: Stmt = Stmt::same(
    "attempt_unstarted",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE state = 'claimed' AND claimed_at <= $1 ORDER BY claimed_at LIMIT $2"
    ),
);

/// Claims that were not started since an instant.
pub async fn unstarted(
    tx: &Tx,
    claimed_before: Timestamp,
    limit: u32,
) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_UNSTARTED, values![claimed_before, limit]).await?)
}

// Through the holds, which every active attempt has and no other: they stay few.
const ATTEMPT_ACTIVE: Stmt = Stmt::same(
    "attempt_active",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE token IN (SELECT h.token FROM hold h WHERE h.token > $1)
            AND state IN ('claimed', 'running', 'stopping', 'lost_open')
          ORDER BY token LIMIT $2"
    ),
);

/// Attempts in somebody's hands, by page.
pub async fn active(tx: &Tx, after: i64, limit: u32) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_ACTIVE, values![after, limit]).await?)
}

const ATTEMPT_IN_HANDS: Stmt = Stmt::same(
    "attempt_in_hands",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE state IN ('claimed', 'running', 'stopping', 'lost_open')
            AND (job_id, token) > ($1, $2) ORDER BY job_id, token LIMIT $3"
    ),
);

/// Attempts that some job had in its hands and that are not ended, lost ones too; by page, in the order
/// of their jobs.
pub async fn in_hands(tx: &Tx, after: (&str, i64), limit: u32) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_IN_HANDS, values![after.0, after.1, limit]).await?)
}

const ATTEMPT_OF_RUN: Stmt = Stmt::same(
    "attempt_of_run",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE run_pk = $1 AND token > $2 ORDER BY token LIMIT $3"
    ),
);

/// Every attempt of a run, by page.
pub async fn of_run(
    tx: &Tx,
    run_pk: i64,
    after: i64,
    limit: u32,
) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_OF_RUN, values![run_pk, after, limit]).await?)
}

const ATTEMPT_IN_HAND: Stmt = Stmt::same(
    "attempt_in_hand",
    concat!(
        "SELECT ",
        columns!(),
        " FROM attempt WHERE token IN (
            SELECT token FROM hold WHERE run_pk = $1) ORDER BY token LIMIT 100000"
    ),
);

const ATTEMPT_LOCK_IN_HAND: Stmt = Stmt::split(
    "attempt_lock_in_hand",
    "SELECT $1 - $1",
    "SELECT COUNT(*) FROM (SELECT 1 FROM attempt WHERE token IN (
        SELECT token FROM hold WHERE run_pk = $1) ORDER BY token FOR UPDATE) locked",
);

/// Locks the attempts that [`in_hand`] answers. Their instances are to be locked before.
pub async fn lock_in_hand(tx: &Tx, run_pk: i64) -> Result<(), StoreError> {
    tx.query(&ATTEMPT_LOCK_IN_HAND, values![run_pk]).await.map(drop)
}

/// Attempts of a run that hold slots: queued, claimed or running ones.
pub async fn in_hand(tx: &Tx, run_pk: i64) -> Result<Vec<Attempt>, StoreError> {
    decode_all(tx.query(&ATTEMPT_IN_HAND, values![run_pk]).await?)
}

const ATTEMPT_ANY_QUEUED: Stmt = Stmt::same(
    "attempt_any_queued",
    "SELECT token FROM attempt WHERE state = 'queued' AND ramp = '' AND queue = $1
     ORDER BY priority DESC, token LIMIT 1",
);

/// Whether anything waits in a queue that no ramp holds back.
pub async fn any_queued(tx: &Tx, queue: &str) -> Result<bool, StoreError> {
    Ok(tx.query_opt(&ATTEMPT_ANY_QUEUED, values![queue]).await?.is_some())
}
