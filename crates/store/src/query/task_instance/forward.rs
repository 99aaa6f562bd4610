//! What the scheduler's forward step reads and writes: ends, the counts and marks of heads, and the
//! moves out of `none`.

use super::{Ti, TiKey, decode_all};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::callback::Occasions;
use fencepost_core::state::TiState;
use fencepost_core::trigger_rule::UpstreamCounts;
use std::collections::{BTreeMap, BTreeSet};

/// An end that is not counted downstream yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueEnd {
    pub key: TiKey,
    pub state: TiState,
}

const TI_FORWARD_DUE: Stmt = Stmt::same(
    "ti_forward_due",
    "SELECT run_pk, task_index, map_index, state FROM task_instance WHERE forward_due = 1
        AND (run_pk, task_index, map_index) > ($1, $2, $3)
     ORDER BY run_pk, task_index, map_index LIMIT $4",
);

/// Ends that are to be counted, by run, after a place in that order. Without locks: who counts them has
/// their run's, and [`forwarded`] tells which were still to be counted.
pub async fn forward_due(tx: &Tx, after: TiKey, limit: u32) -> Result<Vec<DueEnd>, StoreError> {
    let values = values![after.run_pk, after.task_index, after.map_index, limit];
    let rows = tx.query(&TI_FORWARD_DUE, values).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("task_instance");
            let key = TiKey { run_pk: c.int()?, task_index: c.number()?, map_index: c.number()? };
            Ok(DueEnd { key, state: c.named(TiState::parse)? })
        })
        .collect()
}

const TI_FORWARDED: Stmt = Stmt::same(
    "ti_forwarded",
    "UPDATE task_instance SET forward_due = 0
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND forward_due = 1
        AND state = $4",
)
.batched(
    3,
    "UPDATE task_instance t SET forward_due = 0 FROM unnest($1::bigint[], $2::bigint[], \
        $3::bigint[], $4::text[]) WITH ORDINALITY AS u(run_pk, task_index, map_index, state, ord) \
        WHERE t.run_pk = u.run_pk AND t.task_index = u.task_index AND t.map_index = u.map_index \
        AND t.forward_due = 1 AND t.state = u.state RETURNING u.ord",
);

/// Marks ends as counted; for each whether it still was to be: it is counted by nobody else.
pub async fn forwarded(tx: &Tx, ends: &[DueEnd]) -> Result<Vec<bool>, StoreError> {
    let sets = ends
        .iter()
        .map(|e| values![e.key.run_pk, e.key.task_index, e.key.map_index, e.state.as_str()])
        .collect();
    Ok(tx.execute_many(&TI_FORWARDED, sets).await?.into_iter().map(|n| n == 1).collect())
}

const TI_HEAD: Stmt = Stmt::same(
    "ti_head",
    concat!(
        "SELECT ",
        columns!("t."),
        " FROM task_instance t WHERE t.run_pk = $1 AND t.task_index = $2
          ORDER BY t.map_index LIMIT 1"
    ),
)
.locking(" FOR UPDATE OF t")
.batched(
    0,
    concat!(
        "SELECT u.ord, ",
        columns!("t."),
        " FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS u(run_pk, task_index, ord)
          JOIN task_instance t ON t.run_pk = u.run_pk AND t.task_index = u.task_index
            AND t.map_index = (SELECT m.map_index FROM task_instance m
                WHERE m.run_pk = u.run_pk AND m.task_index = u.task_index
                ORDER BY m.map_index LIMIT 1)
          ORDER BY u.ord"
    ),
);

/// The heads of tasks, (run, task), as they are given; locked in a transaction that may write, in
/// the order of their keys.
pub async fn heads(tx: &Tx, tasks: &[(i64, u32)]) -> Result<Vec<Ti>, StoreError> {
    let sorted: BTreeSet<(i64, u32)> = tasks.iter().copied().collect();
    let sets = sorted.iter().map(|(run_pk, task)| values![*run_pk, *task]).collect();
    let found = decode_all(tx.query_many(&TI_HEAD, sets).await?)?;
    let place = |ti: &Ti| (ti.key.run_pk, ti.key.task_index);
    let found: BTreeMap<(i64, u32), Ti> = found.into_iter().map(|ti| (place(&ti), ti)).collect();
    Ok(tasks.iter().filter_map(|task| found.get(task).cloned()).collect())
}

const TI_SET_COUNTS: Stmt = Stmt::same(
    "ti_set_counts",
    "UPDATE task_instance SET up_success = $4, up_failed = $5, up_skipped = $6,
        up_upstream_failed = $7, up_removed = $8
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3",
)
.batched(
    3,
    "UPDATE task_instance t SET up_success = u.up_success, up_failed = u.up_failed, \
        up_skipped = u.up_skipped, up_upstream_failed = u.up_upstream_failed, up_removed = \
        u.up_removed FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], \
        $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[]) WITH ORDINALITY AS u(run_pk, \
        task_index, map_index, up_success, up_failed, up_skipped, up_upstream_failed, \
        up_removed, ord) WHERE t.run_pk = u.run_pk AND t.task_index = u.task_index AND \
        t.map_index = u.map_index RETURNING u.ord",
);

/// Sets the counts of heads.
pub async fn set_counts(tx: &Tx, counts: &[(TiKey, UpstreamCounts)]) -> Result<(), StoreError> {
    let sets = counts
        .iter()
        .map(|(k, c)| {
            values![
                k.run_pk,
                k.task_index,
                k.map_index,
                c.success,
                c.failed,
                c.skipped,
                c.upstream_failed,
                c.removed
            ]
        })
        .collect();
    tx.execute_many(&TI_SET_COUNTS, sets).await.map(drop)
}

/// All instances of a task that have not moved yet, and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskMove {
    pub run_pk: i64,
    pub task_index: u32,
    pub to: TiState,
    pub reason: String,
}

const TI_MOVE: Stmt = Stmt::same(
    "ti_move",
    "UPDATE task_instance SET state = $3, reason = $4, forward_due = $5, recheck = 0,
        scheduled_at = $6, ended_at = $7
     WHERE run_pk = $1 AND task_index = $2 AND state = 'none'
     RETURNING run_pk, task_index, map_index, task_id, dag_id, calls",
)
.batched(
    2,
    "UPDATE task_instance t SET state = u.state, reason = u.reason, forward_due = u.due, \
        recheck = 0, scheduled_at = u.scheduled_at, ended_at = u.ended_at \
        FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::bigint[], \
        $6::bigint[], $7::bigint[]) WITH ORDINALITY \
        AS u(run_pk, task_index, state, reason, due, scheduled_at, ended_at, ord) \
        WHERE t.run_pk = u.run_pk AND t.task_index = u.task_index AND t.state = 'none' \
        RETURNING u.ord, t.run_pk, t.task_index, t.map_index, t.task_id, t.dag_id, t.calls",
);

/// An instance that was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub key: TiKey,
    pub task_id: String,
    pub dag_id: String,
    /// The occasions on which somebody is called about it.
    pub calls: Occasions,
}

/// Moves instances out of `none`; those that moved, in the order of their keys.
pub async fn move_tasks(tx: &Tx, moves: &[TaskMove]) -> Result<Vec<Moved>, StoreError> {
    let sets = moves
        .iter()
        .map(|m| {
            let finished = m.to.is_finished();
            let now = tx.now();
            values![
                m.run_pk,
                m.task_index,
                m.to.as_str(),
                &m.reason,
                finished,
                (!finished).then_some(now),
                finished.then_some(now)
            ]
        })
        .collect();
    let rows = tx.query_many(&TI_MOVE, sets).await?.into_iter();
    let moved = rows.map(|row| {
        let mut c = row.columns("task_instance");
        let key = TiKey { run_pk: c.int()?, task_index: c.number()?, map_index: c.number()? };
        let (task_id, dag_id) = (c.text()?, c.text()?);
        Ok(Moved { key, task_id, dag_id, calls: Occasions::from_bits(c.int()?) })
    });
    let mut moved: Vec<Moved> = moved.collect::<Result<_, StoreError>>()?;
    moved.sort_unstable_by_key(|moved| moved.key);
    Ok(moved)
}

// Of running runs only: the marks of a run that waits for its turn must not hide the others. Not a
// join, which SQLite may begin at the runs: it would walk all instances of those that are running.
const TI_RECHECK: Stmt = Stmt::same(
    "ti_recheck",
    concat!(
        "SELECT ",
        columns!("t."),
        " FROM task_instance t
          WHERE t.recheck > 0 AND t.recheck <= $1
            AND (t.recheck, t.run_pk, t.task_index) > ($2, $3, $4)
            AND (SELECT r.state FROM run r WHERE r.run_pk = t.run_pk) = 'running'
          ORDER BY t.recheck, t.run_pk, t.task_index LIMIT $5"
    ),
)
.locking(" FOR UPDATE OF t SKIP LOCKED");

/// Heads that are to be decided again, after a place in the order of (mark, run, task); up to 2:
/// also those that wait for the previous run.
pub async fn recheck(
    tx: &Tx,
    up_to: u32,
    after: (u32, i64, i64),
    limit: u32,
) -> Result<Vec<Ti>, StoreError> {
    let (mark, run_pk, task_index) = after;
    decode_all(tx.query(&TI_RECHECK, values![up_to, mark, run_pk, task_index, limit]).await?)
}

const TI_SET_RECHECK: Stmt = Stmt::same(
    "ti_set_recheck",
    "UPDATE task_instance SET recheck = $4
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3",
)
.batched(
    3,
    "UPDATE task_instance t SET recheck = u.mark FROM unnest($1::bigint[], $2::bigint[], \
        $3::bigint[], $4::bigint[]) WITH ORDINALITY AS u(run_pk, task_index, map_index, \
        mark, ord) WHERE t.run_pk = u.run_pk AND t.task_index = u.task_index AND t.map_index \
        = u.map_index RETURNING u.ord",
);

/// Sets the recheck marks of heads.
pub async fn set_recheck(tx: &Tx, marks: &[(TiKey, u32)]) -> Result<(), StoreError> {
    let sets =
        marks.iter().map(|(k, mark)| values![k.run_pk, k.task_index, k.map_index, *mark]).collect();
    tx.execute_many(&TI_SET_RECHECK, sets).await.map(drop)
}

/// How many instances of a task are in a state, and how many of them are not counted yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateCount {
    pub run_pk: i64,
    pub task_index: u32,
    pub state: TiState,
    pub count: u32,
    pub uncounted: u32,
}

const TI_STATES: Stmt = Stmt::same(
    "ti_states",
    "SELECT run_pk, task_index, state, COUNT(*), CAST(SUM(forward_due) AS BIGINT)
     FROM task_instance WHERE run_pk = $1
     GROUP BY run_pk, task_index, state ORDER BY task_index, state LIMIT 1000000",
)
.batched(
    0,
    "SELECT u.ord, t.run_pk, t.task_index, t.state, COUNT(*), \
        CAST(SUM(t.forward_due) AS BIGINT) FROM unnest($1::bigint[]) WITH ORDINALITY \
        AS u(wanted, ord) JOIN task_instance t ON t.run_pk = u.wanted \
        GROUP BY u.ord, t.run_pk, t.task_index, t.state ORDER BY u.ord, t.task_index, t.state",
);

/// The states of the instances of runs, by task.
pub async fn states(tx: &Tx, run_pks: &[i64]) -> Result<Vec<StateCount>, StoreError> {
    let sets = run_pks.iter().map(|pk| values![*pk]).collect();
    let rows = tx.query_many(&TI_STATES, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("task_instance");
            Ok(StateCount {
                run_pk: c.int()?,
                task_index: c.number()?,
                state: c.named(TiState::parse)?,
                count: c.number()?,
                uncounted: c.number()?,
            })
        })
        .collect()
}

pub(in crate::query) const STATEMENTS: &[Stmt] = &[
    TI_FORWARD_DUE,
    TI_FORWARDED,
    TI_HEAD,
    TI_SET_COUNTS,
    TI_MOVE,
    TI_RECHECK,
    TI_SET_RECHECK,
    TI_STATES,
];
