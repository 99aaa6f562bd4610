//! DAG runs.

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::callback::Occasions;
use fencepost_core::id::Token;
use fencepost_core::state::{RunState, RunType, StopReason};
use fencepost_core::time::{Span, Timestamp};
use std::collections::BTreeMap;

/// A run's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub run_pk: i64,
    pub dag_id: String,
    pub run_id: String,
    pub version_pk: i64,
    pub run_type: RunType,
    pub state: RunState,
    pub paused: bool,
    pub logical_date: Option<Timestamp>,
    pub interval_start: Option<Timestamp>,
    pub interval_end: Option<Timestamp>,
    pub run_after: Timestamp,
    pub conf: serde_json::Value,
    pub params: serde_json::Value,
    pub note: Option<String>,
    pub triggered_by: String,
    pub unfinished: i64,
    /// Its task instances exist.
    pub made: bool,
    /// The backfill in whose limit it counts; `None`: in its DAG's.
    pub backfill_pk: Option<i64>,
    pub deadline_at: Option<Timestamp>,
    pub stop_reason: Option<StopReason>,
    pub stop_by: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub reason: Option<String>,
    /// The occasions on which somebody is called about it.
    pub calls: Occasions,
}

macro_rules! columns {
    () => {
        "run_pk, dag_id, run_id, version_pk, run_type, state, paused, logical_date, \
         interval_start, interval_end, run_after, conf, params, note, triggered_by, unfinished, \
         made, backfill_pk, deadline_at, stop_reason, stop_by, created_at, started_at, ended_at, reason, calls"
    };
}

// After the macro, which it uses.
mod alert;
mod delete;
mod of_backfill;
mod places;
mod previous;
mod waiting;

pub use alert::{alerts, next_alert};
pub use delete::delete;
pub use of_backfill::{open_of, queued_of, unstopped_of};
pub use places::{Places, Startable, count_active, older_than_waiting, places, startable};
pub use previous::{dated, previous};
pub use waiting::{count_waiting, count_waiting_for_assets, oldest_slot, slot_edges, slots_before};

fn decode(row: Row) -> Result<Run, StoreError> {
    let mut c: Columns = row.columns("run");
    Ok(Run {
        run_pk: c.int()?,
        dag_id: c.text()?,
        run_id: c.text()?,
        version_pk: c.int()?,
        run_type: c.named(RunType::parse)?,
        state: c.named(RunState::parse)?,
        paused: c.flag()?,
        logical_date: c.opt_time()?,
        interval_start: c.opt_time()?,
        interval_end: c.opt_time()?,
        run_after: c.time()?,
        conf: c.json()?,
        params: c.json()?,
        note: c.opt_text()?,
        triggered_by: c.text()?,
        unfinished: c.int()?,
        made: c.flag()?,
        backfill_pk: c.opt_int()?,
        deadline_at: c.opt_time()?,
        stop_reason: c.opt_named(StopReason::parse)?,
        stop_by: c.opt_text()?,
        created_at: c.time()?,
        started_at: c.opt_time()?,
        ended_at: c.opt_time()?,
        reason: c.opt_text()?,
        calls: Occasions::from_bits(c.int()?),
    })
}

fn decode_all(rows: Vec<Row>) -> Result<Vec<Run>, StoreError> {
    rows.into_iter().map(decode).collect()
}

/// A run to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    pub dag_id: String,
    pub run_id: String,
    pub version_pk: i64,
    pub run_type: RunType,
    pub logical_date: Option<Timestamp>,
    pub interval: Option<(Timestamp, Timestamp)>,
    pub run_after: Timestamp,
    pub conf: serde_json::Value,
    pub params: serde_json::Value,
    pub note: Option<String>,
    pub triggered_by: String,
    pub calls: Occasions,
    /// When somebody is told that it has not finished.
    pub alert_at: Option<Timestamp>,
}

const RUN_INSERT: Stmt = Stmt::same(
    "run_insert",
    "INSERT INTO run (dag_id, run_id, version_pk, run_type, state, logical_date, interval_start,
                      interval_end, run_after, conf, params, note, triggered_by, created_at,
                      calls, alert_at)
     VALUES ($1, $2, $3, $4, 'queued', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
     ON CONFLICT (dag_id, run_id) DO NOTHING",
);

/// Makes runs; for each whether it is new. One per (DAG, run id), whoever comes first.
pub async fn insert(tx: &Tx, runs: &[NewRun]) -> Result<Vec<bool>, StoreError> {
    let sets = runs
        .iter()
        .map(|r| {
            values![
                &r.dag_id,
                &r.run_id,
                r.version_pk,
                r.run_type.as_str(),
                r.logical_date,
                r.interval.map(|i| i.0),
                r.interval.map(|i| i.1),
                r.run_after,
                &r.conf,
                &r.params,
                r.note.clone(),
                &r.triggered_by,
                tx.now(),
                r.calls.bits(),
                r.alert_at,
            ]
        })
        .collect();
    Ok(tx.execute_many(&RUN_INSERT, sets).await?.into_iter().map(|n| n == 1).collect())
}

const RUN_GET: Stmt = Stmt::same(
    "run_get",
    concat!("SELECT ", columns!(), " FROM run WHERE dag_id = $1 AND run_id = $2"),
)
.locking(" FOR UPDATE");
const RUN_BY_PK: Stmt =
    Stmt::same("run_by_pk", concat!("SELECT ", columns!(), " FROM run WHERE run_pk = $1")).batched(
        0,
        concat!(
            "SELECT u.ord, ",
            columns!(),
            " FROM unnest($1::bigint[]) WITH ORDINALITY AS u(wanted, ord)
                JOIN run ON run.run_pk = u.wanted ORDER BY u.ord"
        ),
    );

const RUN_TAKE: Stmt =
    Stmt::same("run_take", concat!("SELECT ", columns!(), " FROM run WHERE run_pk = $1"))
        .locking(" FOR UPDATE OF run SKIP LOCKED")
        .batched(
            0,
            concat!(
                "SELECT u.ord, ",
                columns!(),
                " FROM unnest($1::bigint[]) WITH ORDINALITY AS u(wanted, ord)
                    JOIN run ON run.run_pk = u.wanted ORDER BY u.ord"
            ),
        );

/// The run of that name; locked in a transaction that may write: its state, its counts and the moves of
/// its instances out of `none` are its lock's.
pub async fn get(tx: &Tx, dag_id: &str, run_id: &str) -> Result<Option<Run>, StoreError> {
    tx.query_opt(&RUN_GET, values![dag_id, run_id]).await?.map(decode).transpose()
}

/// Locks those runs that nobody else has in hand (and that are not gone).
pub async fn take(tx: &Tx, run_pks: &[i64]) -> Result<Vec<Run>, StoreError> {
    let sets = run_pks.iter().map(|pk| values![*pk]).collect();
    decode_all(tx.query_many(&RUN_TAKE, sets).await?)
}

/// The runs of those keys that exist.
pub async fn by_pks(tx: &Tx, run_pks: &[i64]) -> Result<Vec<Run>, StoreError> {
    let sets = run_pks.iter().map(|pk| values![*pk]).collect();
    decode_all(tx.query_many(&RUN_BY_PK, sets).await?)
}

const RUN_VERSION: Stmt = Stmt::same(
    "run_version",
    "SELECT r.run_pk, r.version_pk FROM attempt a JOIN run r ON r.run_pk = a.run_pk
     WHERE a.token = $1",
)
.batched(
    0,
    "SELECT u.ord, r.run_pk, r.version_pk FROM unnest($1::bigint[]) WITH ORDINALITY \
        AS u(wanted, ord) JOIN attempt a ON a.token = u.wanted \
        JOIN run r ON r.run_pk = a.run_pk ORDER BY u.ord",
);

/// The versions of the runs that attempts are of: run -> version.
pub async fn versions_of(tx: &Tx, attempts: &[Token]) -> Result<BTreeMap<i64, i64>, StoreError> {
    let sets = attempts.iter().map(|token| values![*token]).collect();
    let rows = tx.query_many(&RUN_VERSION, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("run");
            Ok((c.int()?, c.int()?))
        })
        .collect()
}

const RUN_QUEUED: Stmt = Stmt::same(
    "run_queued",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND state = 'queued' AND paused = 0
            AND backfill_pk IS NULL AND (run_after, run_pk) > ($2, $3)
          ORDER BY run_after, run_pk LIMIT $4"
    ),
)
.locking(" FOR UPDATE SKIP LOCKED");

/// Queued runs of a DAG, oldest first, after a place in that order.
pub async fn queued(
    tx: &Tx,
    dag_id: &str,
    after: (Timestamp, i64),
    limit: u32,
) -> Result<Vec<Run>, StoreError> {
    decode_all(tx.query(&RUN_QUEUED, values![dag_id, after.0, after.1, limit]).await?)
}

const RUN_START: Stmt = Stmt::same(
    "run_start",
    "UPDATE run SET state = 'running', started_at = COALESCE(started_at, $2), made = 1,
        unfinished = $3, deadline_at = $4, ended_at = NULL, reason = NULL
     WHERE run_pk = $1 AND state = 'queued'",
)
.batched(
    1,
    "UPDATE run r SET state = 'running', started_at = COALESCE(r.started_at, u.at), made = 1, \
        unfinished = u.unfinished, deadline_at = u.deadline_at, ended_at = NULL, reason = NULL \
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) WITH ORDINALITY \
        AS u(run_pk, at, unfinished, deadline_at, ord) \
        WHERE r.run_pk = u.run_pk AND r.state = 'queued' RETURNING u.ord",
);

/// A queued run that starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunStart {
    pub run_pk: i64,
    /// Instances to finish.
    pub unfinished: i64,
    pub timeout: Option<Span>,
}

/// Starts queued runs; for each whether it still was queued.
pub async fn start(tx: &Tx, starts: &[RunStart]) -> Result<Vec<bool>, StoreError> {
    let deadline = |start: &RunStart| start.timeout.map(|span| tx.now().plus(span));
    let sets = starts.iter().map(|s| values![s.run_pk, tx.now(), s.unfinished, deadline(s)]);
    Ok(tx.execute_many(&RUN_START, sets.collect()).await?.into_iter().map(|n| n == 1).collect())
}

const RUN_COUNT_DOWN: Stmt = Stmt::same(
    "run_count_down",
    "UPDATE run SET unfinished = unfinished - $2 WHERE run_pk = $1 AND state = 'running'
     RETURNING run_pk, unfinished",
)
.batched(
    1,
    "UPDATE run r SET unfinished = r.unfinished - u.ended \
        FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS u(run_pk, ended, ord) \
        WHERE r.run_pk = u.run_pk AND r.state = 'running' RETURNING u.ord, r.run_pk, r.unfinished",
);

/// Takes counted ends off: (run, how many) -> what is left.
pub async fn count_down(tx: &Tx, ends: &[(i64, i64)]) -> Result<Vec<(i64, i64)>, StoreError> {
    let sets = ends.iter().map(|(pk, n)| values![*pk, *n]).collect();
    let rows = tx.query_many(&RUN_COUNT_DOWN, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("run");
            Ok((c.int()?, c.int()?))
        })
        .collect()
}

const RUN_END: Stmt = Stmt::same(
    "run_end",
    "UPDATE run SET state = $2, ended_at = $3, reason = $4, deadline_at = NULL,
        alert_at = NULL
     WHERE run_pk = $1 AND state = $5",
)
.batched(
    1,
    "UPDATE run r SET state = u.state, ended_at = u.at, reason = u.reason, deadline_at = NULL, \
        alert_at = NULL \
        FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[]) \
        WITH ORDINALITY AS u(run_pk, state, at, reason, from_state, ord) \
        WHERE r.run_pk = u.run_pk AND r.state = u.from_state RETURNING u.ord",
);

/// The end of a run, from the state that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd<'a> {
    pub run_pk: i64,
    pub from: RunState,
    pub to: RunState,
    pub reason: &'a str,
}

/// Ends runs; for each whether it was still so.
pub async fn end(tx: &Tx, ends: &[RunEnd<'_>]) -> Result<Vec<bool>, StoreError> {
    let sets = ends
        .iter()
        .map(|e| values![e.run_pk, e.to.as_str(), tx.now(), e.reason, e.from.as_str()])
        .collect();
    Ok(tx.execute_many(&RUN_END, sets).await?.into_iter().map(|n| n == 1).collect())
}

const RUN_STOP: Stmt = Stmt::same(
    "run_stop",
    "UPDATE run SET stop_reason = $2, stop_by = $3 WHERE run_pk = $1
        AND state = 'running' AND stop_reason IS NULL",
);

/// Writes that a running run is to be stopped; the first reason stays.
pub async fn stop(tx: &Tx, run_pk: i64, reason: StopReason, by: &str) -> Result<bool, StoreError> {
    Ok(tx.execute(&RUN_STOP, values![run_pk, reason.as_str(), by]).await? == 1)
}

const RUN_REOPEN: Stmt = Stmt::same(
    "run_reopen",
    "UPDATE run SET state = 'queued', ended_at = NULL, reason = NULL, stop_reason = NULL,
        stop_by = NULL, deadline_at = NULL, backfill_pk = NULL
     WHERE run_pk = $1 AND state IN ('success', 'failed', 'cancelled')",
);

/// Queues a finished run again; it counts in the limit of its DAG.
pub async fn reopen(tx: &Tx, run_pk: i64) -> Result<bool, StoreError> {
    Ok(tx.execute(&RUN_REOPEN, values![run_pk]).await? == 1)
}

const RUN_SET_UNFINISHED: Stmt =
    Stmt::same("run_set_unfinished", "UPDATE run SET unfinished = $2 WHERE run_pk = $1");

/// Sets the number of instances whose end is not counted.
pub async fn set_unfinished(tx: &Tx, run_pk: i64, unfinished: i64) -> Result<(), StoreError> {
    tx.execute(&RUN_SET_UNFINISHED, values![run_pk, unfinished]).await.map(drop)
}

const RUN_OVERDUE: Stmt = Stmt::same(
    "run_overdue",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE state = 'running' AND deadline_at IS NOT NULL AND deadline_at <= $1
            AND stop_reason IS NULL ORDER BY deadline_at LIMIT $2"
    ),
)
.locking(" FOR UPDATE SKIP LOCKED");

/// Runs past their `dagrun_timeout`.
pub async fn overdue(tx: &Tx, limit: u32) -> Result<Vec<Run>, StoreError> {
    decode_all(tx.query(&RUN_OVERDUE, values![tx.now(), limit]).await?)
}

const RUN_NEXT_DEADLINE: Stmt = Stmt::same(
    "run_next_deadline",
    "SELECT MIN(deadline_at) FROM run WHERE state = 'running' AND deadline_at IS NOT NULL
        AND stop_reason IS NULL",
);

/// When the next run times out.
pub async fn next_deadline(tx: &Tx) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = tx.query_opt(&RUN_NEXT_DEADLINE, vec![]).await? else { return Ok(None) };
    row.columns("run").opt_time()
}

const RUN_LIST: Stmt = Stmt::same(
    "run_list",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND (run_after < $2 OR (run_after = $2 AND run_pk < $3))
          ORDER BY run_after DESC, run_pk DESC LIMIT $4"
    ),
);

/// Runs of a DAG, newest first, before a place in that order.
pub async fn list(
    tx: &Tx,
    dag_id: &str,
    before: (Timestamp, i64),
    limit: u32,
) -> Result<Vec<Run>, StoreError> {
    decode_all(tx.query(&RUN_LIST, values![dag_id, before.0, before.1, limit]).await?)
}

const RUN_ACTIVE: Stmt = Stmt::same(
    "run_active",
    concat!(
        "SELECT ",
        columns!(),
        " FROM run WHERE dag_id = $1 AND state = 'running' AND backfill_pk IS NULL
            ORDER BY run_after LIMIT $2"
    ),
);

/// Running runs that count in the limit of their DAG, oldest first.
pub async fn active(tx: &Tx, dag_id: &str, limit: u32) -> Result<Vec<Run>, StoreError> {
    decode_all(tx.query(&RUN_ACTIVE, values![dag_id, limit]).await?)
}

const RUN_PAUSE: Stmt = Stmt::same("run_pause", "UPDATE run SET paused = $2 WHERE run_pk = $1");
const RUN_NOTE: Stmt = Stmt::same("run_note", "UPDATE run SET note = $2 WHERE run_pk = $1");

/// Pauses or resumes a run.
pub async fn pause(tx: &Tx, run_pk: i64, paused: bool) -> Result<(), StoreError> {
    tx.execute(&RUN_PAUSE, values![run_pk, paused]).await.map(drop)
}

/// Writes a person's note.
pub async fn note(tx: &Tx, run_pk: i64, note: &str) -> Result<(), StoreError> {
    tx.execute(&RUN_NOTE, values![run_pk, note]).await.map(drop)
}

pub(super) const STATEMENTS: &[Stmt] = &[
    RUN_INSERT,
    RUN_GET,
    RUN_TAKE,
    RUN_BY_PK,
    RUN_VERSION,
    places::RUN_STARTABLE_DAGS,
    places::RUN_ACTIVE_COUNT,
    RUN_QUEUED,
    waiting::RUN_COUNT,
    waiting::RUN_COUNT_OF_ASSETS,
    RUN_START,
    RUN_COUNT_DOWN,
    RUN_END,
    RUN_STOP,
    RUN_REOPEN,
    RUN_SET_UNFINISHED,
    RUN_OVERDUE,
    RUN_NEXT_DEADLINE,
    alert::RUN_ALERTS,
    alert::RUN_NEXT_ALERT,
    previous::RUN_PREVIOUS,
    previous::RUN_DATED_BEFORE,
    previous::RUN_DATED_AFTER,
    RUN_LIST,
    RUN_ACTIVE,
    RUN_PAUSE,
    RUN_NOTE,
    places::RUN_PLACES,
    places::RUN_OLDER_THAN_WAITING,
    of_backfill::RUN_OF_BACKFILL,
    of_backfill::RUN_OF_BACKFILL_BACK,
    of_backfill::RUN_UNSTOPPED_OF,
    waiting::RUN_SLOTS_BEFORE,
    waiting::RUN_SLOT_EDGES,
    waiting::RUN_OLDEST_SLOT,
    delete::RUN_DELETE[0],
    delete::RUN_DELETE[1],
    delete::RUN_DELETE[2],
    delete::RUN_DELETE[3],
    delete::RUN_DELETE[4],
    delete::RUN_DELETE[5],
];
