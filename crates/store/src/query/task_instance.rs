//! Task instances.
//!
//! Every change of state compares and sets on (state, token). The counts of upstream ends live on
//! the head of a task: its instance with the lowest map index (see `core::plan::forward`).

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::callback::Occasions;
use fencepost_core::id::Token;
use fencepost_core::state::TiState;
use fencepost_core::time::Timestamp;
use fencepost_core::trigger_rule::UpstreamCounts;
use std::collections::{BTreeMap, BTreeSet};

/// What identifies an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TiKey {
    pub run_pk: i64,
    pub task_index: u32,
    pub map_index: i32,
}

/// An instance's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ti {
    pub key: TiKey,
    pub task_id: String,
    pub dag_id: String,
    pub state: TiState,
    pub token: Option<Token>,
    pub try_number: u32,
    pub max_tries: u32,
    /// Dispatches so far.
    pub attempts: u32,
    pub infra_losses: u32,
    pub single_deaths: u32,
    pub requeues: u32,
    pub clears: u32,
    pub generation: u32,
    pub pool: String,
    pub pool_slots: i64,
    pub priority: i32,
    pub upstream: UpstreamCounts,
    pub forward_due: bool,
    /// 0; 1: to be decided again; 2: waits for the previous run; 3: it has ended, and instances of
    /// its task that were cleared wait behind it for their upstreams.
    pub recheck: u32,
    pub retry_at: Option<Timestamp>,
    pub next_why: String,
    pub prev_outcome: String,
    pub reason: Option<String>,
    /// What it is mapped over (a JSON object), where a template gave that.
    pub mapped: Option<String>,
    pub scheduled_at: Option<Timestamp>,
    pub queued_at: Option<Timestamp>,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// The occasions on which somebody is called about it.
    pub calls: Occasions,
}

macro_rules! columns {
    ($t:literal) => {
        concat!(
            $t,
            "run_pk, ",
            $t,
            "task_index, ",
            $t,
            "map_index, ",
            $t,
            "task_id, ",
            $t,
            "dag_id, ",
            $t,
            "state, ",
            $t,
            "token, ",
            $t,
            "try_number, ",
            $t,
            "max_tries, ",
            $t,
            "attempts, ",
            $t,
            "infra_losses, ",
            $t,
            "single_deaths, ",
            $t,
            "requeues, ",
            $t,
            "clears, ",
            $t,
            "generation, ",
            $t,
            "pool, ",
            $t,
            "pool_slots, ",
            $t,
            "priority, ",
            $t,
            "up_total, ",
            $t,
            "up_success, ",
            $t,
            "up_failed, ",
            $t,
            "up_skipped, ",
            $t,
            "up_upstream_failed, ",
            $t,
            "up_removed, ",
            $t,
            "forward_due, ",
            $t,
            "recheck, ",
            $t,
            "retry_at, ",
            $t,
            "next_why, ",
            $t,
            "prev_outcome, ",
            $t,
            "reason, ",
            $t,
            "mapped, ",
            $t,
            "scheduled_at, ",
            $t,
            "queued_at, ",
            $t,
            "started_at, ",
            $t,
            "ended_at, ",
            $t,
            "calls"
        )
    };
}

// After the macro, which it uses.
mod change;
pub mod deferral;
pub(super) mod expand;
pub(super) mod forward;
mod lock;

pub use change::{TiChange, change};
pub use expand::{add_upstreams, drop_unmapped, grow, remap, remove, width};
pub use lock::{lock_tasks, lock_unfinished, of_attempts};

pub use forward::{
    DueEnd, Moved, StateCount, TaskMove, forward_due, forwarded, heads, move_tasks, recheck,
    set_counts, set_recheck, states,
};

pub(crate) fn decode_columns(c: &mut Columns) -> Result<Ti, StoreError> {
    Ok(Ti {
        key: TiKey { run_pk: c.int()?, task_index: c.number()?, map_index: c.number()? },
        task_id: c.text()?,
        dag_id: c.text()?,
        state: c.named(TiState::parse)?,
        token: c.opt_token()?,
        try_number: c.number()?,
        max_tries: c.number()?,
        attempts: c.number()?,
        infra_losses: c.number()?,
        single_deaths: c.number()?,
        requeues: c.number()?,
        clears: c.number()?,
        generation: c.number()?,
        pool: c.text()?,
        pool_slots: c.int()?,
        priority: c.number()?,
        upstream: UpstreamCounts {
            total: c.number()?,
            success: c.number()?,
            failed: c.number()?,
            skipped: c.number()?,
            upstream_failed: c.number()?,
            removed: c.number()?,
        },
        forward_due: c.flag()?,
        recheck: c.number()?,
        retry_at: c.opt_time()?,
        next_why: c.text()?,
        prev_outcome: c.text()?,
        reason: c.opt_text()?,
        mapped: c.opt_text()?,
        scheduled_at: c.opt_time()?,
        queued_at: c.opt_time()?,
        started_at: c.opt_time()?,
        ended_at: c.opt_time()?,
        calls: Occasions::from_bits(c.int()?),
    })
}

fn decode(row: Row) -> Result<Ti, StoreError> {
    decode_columns(&mut row.columns("task_instance"))
}

fn decode_all(rows: Vec<Row>) -> Result<Vec<Ti>, StoreError> {
    rows.into_iter().map(decode).collect()
}

const TI_INSERT: Stmt = Stmt::same(
    "ti_insert",
    "INSERT INTO task_instance (run_pk, task_index, map_index, task_id, dag_id, state, max_tries,
        pool, pool_slots, priority, up_total, forward_due, recheck, reason, scheduled_at, ended_at,
        calls)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
)
.batched(
    0,
    "INSERT INTO task_instance (run_pk, task_index, map_index, task_id, dag_id, state, \
        max_tries, pool, pool_slots, priority, up_total, forward_due, recheck, reason, \
        scheduled_at, ended_at, calls) SELECT * FROM unnest($1::bigint[], $2::bigint[], \
        $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], \
        $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], \
        $14::text[], $15::bigint[], $16::bigint[], $17::bigint[])",
);

/// Makes instances, in the state that they carry.
pub async fn insert(tx: &Tx, tis: &[Ti]) -> Result<(), StoreError> {
    let sets = tis
        .iter()
        .map(|t| {
            values![
                t.key.run_pk,
                t.key.task_index,
                t.key.map_index,
                &t.task_id,
                &t.dag_id,
                t.state.as_str(),
                t.max_tries,
                &t.pool,
                t.pool_slots,
                t.priority,
                t.upstream.total,
                t.forward_due,
                t.recheck,
                t.reason.clone(),
                t.scheduled_at,
                t.ended_at,
                t.calls.bits(),
            ]
        })
        .collect();
    tx.execute_many(&TI_INSERT, sets).await.map(drop)
}

const TI_GET: Stmt = Stmt::same(
    "ti_get",
    concat!(
        "SELECT ",
        columns!("t."),
        " FROM task_instance t WHERE t.run_pk = $1 AND t.task_index = $2 AND t.map_index = $3"
    ),
)
.locking(" FOR UPDATE OF t")
.batched(
    0,
    concat!(
        "SELECT u.ord, ",
        columns!("t."),
        " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
            WITH ORDINALITY AS u(run_pk, task_index, map_index, ord)
          JOIN task_instance t ON t.run_pk = u.run_pk AND t.task_index = u.task_index
            AND t.map_index = u.map_index ORDER BY u.ord"
    ),
);

/// The instances of those keys that exist, as they are given; locked in a transaction that may
/// write, in the order of the keys.
pub async fn get(tx: &Tx, keys: &[TiKey]) -> Result<Vec<Ti>, StoreError> {
    let sorted: BTreeSet<TiKey> = keys.iter().copied().collect();
    let sets = sorted.iter().map(|k| values![k.run_pk, k.task_index, k.map_index]).collect();
    let found = decode_all(tx.query_many(&TI_GET, sets).await?)?;
    let found: BTreeMap<TiKey, Ti> = found.into_iter().map(|ti| (ti.key, ti)).collect();
    Ok(keys.iter().filter_map(|key| found.get(key).cloned()).collect())
}

const TI_OF_TASK: Stmt = Stmt::same(
    "ti_of_task",
    concat!(
        "SELECT ",
        columns!(""),
        " FROM task_instance WHERE run_pk = $1 AND task_index = $2 ORDER BY map_index LIMIT 100000"
    ),
);

/// All instances of some tasks of a run.
pub async fn of_tasks(tx: &Tx, run_pk: i64, tasks: &[u32]) -> Result<Vec<Ti>, StoreError> {
    let sets = tasks.iter().map(|task| values![run_pk, *task]).collect();
    decode_all(tx.query_many(&TI_OF_TASK, sets).await?)
}

const TI_LIST: Stmt = Stmt::same(
    "ti_list",
    concat!(
        "SELECT ",
        columns!(""),
        " FROM task_instance WHERE run_pk = $1
            AND (task_index > $2 OR (task_index = $2 AND map_index > $3))
          ORDER BY task_index, map_index LIMIT $4"
    ),
);

/// Instances of a run in the order of the file, after a place in it.
pub async fn list(
    tx: &Tx,
    run_pk: i64,
    after: (i64, i64),
    limit: u32,
) -> Result<Vec<Ti>, StoreError> {
    decode_all(tx.query(&TI_LIST, values![run_pk, after.0, after.1, limit]).await?)
}

const TI_HELD: Stmt = Stmt::same(
    "ti_held",
    concat!(
        "SELECT ",
        columns!(""),
        " FROM task_instance WHERE state = 'held'
            AND (run_pk, task_index, map_index) > ($1, $2, $3)
          ORDER BY run_pk, task_index, map_index LIMIT $4"
    ),
);

/// Held instances of all runs, after one.
pub async fn held(tx: &Tx, after: TiKey, limit: u32) -> Result<Vec<Ti>, StoreError> {
    let values = values![after.run_pk, after.task_index, after.map_index, limit];
    decode_all(tx.query(&TI_HELD, values).await?)
}

const TI_RETRY_DUE: Stmt = Stmt::same(
    "ti_retry_due",
    concat!(
        "SELECT ",
        columns!(""),
        " FROM task_instance WHERE state = 'up_for_retry' AND retry_at <= $1
          ORDER BY retry_at LIMIT $2"
    ),
)
.locking(" FOR UPDATE SKIP LOCKED");

/// Instances whose retry is due, oldest first.
pub async fn retry_due(tx: &Tx, limit: u32) -> Result<Vec<Ti>, StoreError> {
    decode_all(tx.query(&TI_RETRY_DUE, values![tx.now(), limit]).await?)
}

const TI_NEXT_RETRY: Stmt = Stmt::same(
    "ti_next_retry",
    "SELECT MIN(retry_at) FROM task_instance WHERE state = 'up_for_retry'",
);

/// When the next retry is due.
pub async fn next_retry(tx: &Tx) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = tx.query_opt(&TI_NEXT_RETRY, vec![]).await? else { return Ok(None) };
    row.columns("task_instance").opt_time()
}

const TI_NEXT_PAIR: Stmt = Stmt::same(
    "ti_next_pair",
    "SELECT dag_id, pool FROM task_instance
     WHERE state = 'scheduled' AND (dag_id, pool) > ($1, $2) ORDER BY dag_id, pool LIMIT 1",
);

/// The next (DAG, pool) with scheduled instances, in order: a loose scan of the index.
pub async fn next_pair(
    tx: &Tx,
    after: &(String, String),
) -> Result<Option<(String, String)>, StoreError> {
    let Some(row) = tx.query_opt(&TI_NEXT_PAIR, values![&after.0, &after.1]).await? else {
        return Ok(None);
    };
    let mut c = row.columns("task_instance");
    Ok(Some((c.text()?, c.text()?)))
}

// Not a join: of tables that were filled and never analysed, PostgreSQL would read and sort all that is
// scheduled for the first few.
const TI_CANDIDATES: Stmt = Stmt::same(
    "ti_candidates",
    concat!(
        "SELECT ",
        columns!("t."),
        " FROM task_instance t
          WHERE t.state = 'scheduled' AND t.dag_id = $1 AND t.pool = $2 AND t.priority <= $3
            AND (t.priority < $3 OR (t.run_pk, t.task_index, t.map_index) > ($4, $5, $6))
            AND (SELECT CASE WHEN r.paused = 0 THEN r.state END FROM run r
                 WHERE r.run_pk = t.run_pk) = 'running'
          ORDER BY t.priority DESC, t.run_pk, t.task_index, t.map_index LIMIT $7"
    ),
)
.locking(" FOR UPDATE OF t SKIP LOCKED");

/// A place in the order of candidates: that of the last one, or the first of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidatePlace {
    pub priority: i32,
    pub key: TiKey,
}

impl CandidatePlace {
    /// Before all of them.
    pub const FIRST: Self = Self {
        priority: i32::MAX,
        key: TiKey { run_pk: i64::MIN, task_index: 0, map_index: i32::MIN },
    };

    /// That of an instance.
    pub const fn of(ti: &Ti) -> Self {
        Self { priority: ti.priority, key: ti.key }
    }
}

/// Scheduled instances of one DAG and pool, the highest priority first, after a place in that order.
pub async fn candidates(
    tx: &Tx,
    (dag_id, pool): &(String, String),
    after: CandidatePlace,
    limit: u32,
) -> Result<Vec<Ti>, StoreError> {
    let (priority, key) = (after.priority, after.key);
    let (run_pk, task, map) = (key.run_pk, key.task_index, key.map_index);
    let values = values![dag_id, pool, priority, run_pk, task, map, limit];
    decode_all(tx.query(&TI_CANDIDATES, values).await?)
}

const TI_CANCEL_EVENTS: Stmt = Stmt::same(
    "ti_cancel_events",
    "INSERT INTO event (at, kind, dag_id, run_pk, task_id, map_index, token, actor, from_state,
                        to_state, reason)
     SELECT $2, 'ti_state', dag_id, run_pk, task_id, map_index, token, $3, state, 'skipped', $4
     FROM task_instance
     WHERE run_pk = $1 AND state IN ('none', 'scheduled', 'deferred', 'up_for_retry', 'held')
     ORDER BY task_index, map_index",
);
const TI_CANCEL: Stmt = Stmt::same(
    "ti_cancel",
    "UPDATE task_instance SET state = 'skipped', reason = $3, forward_due = 1, recheck = 0,
        retry_at = NULL, ended_at = $2
     WHERE run_pk = $1 AND state IN ('none', 'scheduled', 'deferred', 'up_for_retry', 'held')",
);

/// Cancels every instance of a run that has no attempt in hand; with its events.
pub async fn cancel_unstarted(
    tx: &Tx,
    run_pk: i64,
    reason: &str,
    actor: &str,
) -> Result<u64, StoreError> {
    tx.execute(&TI_CANCEL_EVENTS, values![run_pk, tx.now(), actor, reason]).await?;
    super::trigger::delete_of_run(tx, run_pk).await?;
    tx.execute(&TI_CANCEL, values![run_pk, tx.now(), reason]).await
}

pub(super) const STATEMENTS: &[Stmt] = &[
    TI_INSERT,
    TI_GET,
    lock::TI_OF_ATTEMPT,
    lock::TI_LOCK_TASK,
    lock::TI_LOCK_UNFINISHED,
    TI_OF_TASK,
    TI_LIST,
    TI_HELD,
    TI_RETRY_DUE,
    TI_NEXT_RETRY,
    TI_NEXT_PAIR,
    TI_CANDIDATES,
    change::TI_CHANGE,
    TI_CANCEL_EVENTS,
    TI_CANCEL,
];
