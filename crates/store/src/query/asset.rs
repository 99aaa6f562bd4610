//! Assets: their events, and the queue of each DAG that waits for them.
//!
//! An event is written by the transaction in which its task succeeds, and queued there for every DAG whose schedule
//! names the asset. A run of such a DAG takes what was found queued for it, of each asset the oldest so many: a
//! row of the queue that has a run never gets another one. Who takes them has the DAG's lock.

pub mod uses;
pub mod view;

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::time::Timestamp;

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct AssetEvent {
    pub event_pk: i64,
    pub asset: String,
    pub at: Timestamp,
    /// Its task; the texts are empty if no task emitted it.
    pub dag_id: String,
    pub run_id: String,
    pub task_id: String,
    pub map_index: i32,
    pub emitted_by: String,
    pub extra: serde_json::Value,
}

macro_rules! columns {
    () => {
        "e.event_pk, e.asset, e.at, e.dag_id, e.run_id, e.task_id, e.map_index, e.emitted_by, e.extra"
    };
}
// After its definition, for the module below.
pub(in crate::query) use columns;

pub(super) fn decode_all(rows: Vec<Row>) -> Result<Vec<AssetEvent>, StoreError> {
    let decode = |row: Row| {
        let mut c = row.columns("asset_event");
        Ok(AssetEvent {
            event_pk: c.int()?,
            asset: c.text()?,
            at: c.time()?,
            dag_id: c.text()?,
            run_id: c.text()?,
            task_id: c.text()?,
            map_index: c.number()?,
            emitted_by: c.text()?,
            extra: c.json()?,
        })
    };
    rows.into_iter().map(decode).collect()
}

/// What an event is made of, but for what its run says.
#[derive(Debug, Clone, PartialEq)]
pub struct NewEvent {
    pub asset: String,
    /// `None`: a person emits it.
    pub run_pk: Option<i64>,
    pub task_id: String,
    pub map_index: i32,
    /// Of the attempt; 0 if there was none.
    pub token: i64,
    pub emitted_by: String,
    pub extra: serde_json::Value,
}

const ASSET_EMIT: Stmt = Stmt::same(
    "asset_emit",
    "INSERT INTO asset_event (asset, at, dag_id, run_id, task_id, map_index, token, emitted_by, extra,
        interval_start, interval_end)
     SELECT $2, $3, r.dag_id, r.run_id, $4, $5, $6, $7, $8,
        COALESCE(r.interval_start, CAST($3 AS BIGINT)), COALESCE(r.interval_end, CAST($3 AS BIGINT))
     FROM run r WHERE r.run_pk = $1 RETURNING event_pk",
);
const ASSET_EMIT_BY_HAND: Stmt = Stmt::same(
    "asset_emit_by_hand",
    "INSERT INTO asset_event (asset, at, dag_id, run_id, task_id, map_index, token, emitted_by, extra,
        interval_start, interval_end)
     VALUES ($1, $2, '', '', '', -1, 0, $3, $4, $2, $2) RETURNING event_pk",
);
const ASSET_FAN_OUT: Stmt = Stmt::same(
    "asset_fan_out",
    "INSERT INTO asset_queue (event_pk, dag_id, asset)
     SELECT e.event_pk, u.dag_id, e.asset FROM asset_event e
        JOIN asset_use u ON u.asset = e.asset AND u.role = 'consumer'
     WHERE e.event_pk = $1",
);

/// Writes events and queues each for those who wait for its asset; their keys.
pub async fn emit(tx: &Tx, events: &[NewEvent]) -> Result<Vec<i64>, StoreError> {
    let now = tx.now();
    let (mut of_tasks, mut by_hand) = (Vec::new(), Vec::new());
    for e in events {
        match e.run_pk {
            Some(run_pk) => of_tasks.push(values![
                run_pk,
                &e.asset,
                now,
                &e.task_id,
                e.map_index,
                e.token,
                &e.emitted_by,
                &e.extra
            ]),
            None => by_hand.push(values![&e.asset, now, &e.emitted_by, &e.extra]),
        }
    }
    let mut rows = tx.query_many(&ASSET_EMIT, of_tasks).await?;
    rows.extend(tx.query_many(&ASSET_EMIT_BY_HAND, by_hand).await?);
    let key = |row: Row| row.columns("asset_event").int();
    let keys: Vec<i64> = rows.into_iter().map(key).collect::<Result<_, _>>()?;
    tx.execute_many(&ASSET_FAN_OUT, keys.iter().map(|key| values![*key]).collect()).await?;
    Ok(keys)
}

// By the uses and not by the queue: a long queue of one asset is looked at once.
const ASSET_WAITING: Stmt = Stmt::same(
    "asset_waiting",
    "SELECT u.dag_id, u.asset FROM asset_use u JOIN dag d ON d.dag_id = u.dag_id
     WHERE u.role = 'consumer' AND d.is_active = 1 AND d.is_paused = 0
        AND (u.dag_id, u.asset) > ($1, $2)
        AND EXISTS (SELECT 1 FROM asset_queue q WHERE q.dag_id = u.dag_id AND q.asset = u.asset
            AND q.run_pk IS NULL)
     ORDER BY u.dag_id, u.asset LIMIT $3",
);

/// The assets with queued events of DAGs that may run, (DAG, asset), after such a place.
pub async fn waiting(
    tx: &Tx,
    after: (&str, &str),
    limit: u32,
) -> Result<Vec<(String, String)>, StoreError> {
    let rows = tx.query(&ASSET_WAITING, values![after.0, after.1, limit]).await?;
    let decode = |row: Row| {
        let mut c = row.columns("asset_use");
        Ok((c.text()?, c.text()?))
    };
    rows.into_iter().map(decode).collect()
}

/// Events of one asset that one run takes at most: what a transaction can do. The rest is for the next run.
pub const TAKEN_AT_ONCE: u32 = 20_000;

/// The oldest events of one asset that are queued for a DAG.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queued {
    pub asset: String,
    /// At most [`TAKEN_AT_ONCE`].
    pub count: i64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
    pub interval_start: Timestamp,
    pub interval_end: Timestamp,
    /// The newest of them.
    pub last_pk: i64,
}

const ASSET_QUEUED: Stmt = Stmt::same(
    "asset_queued",
    "SELECT CAST($2 AS TEXT), COUNT(*), MIN(e.at), MAX(e.at), MIN(e.interval_start),
        MAX(e.interval_end), MAX(e.event_pk)
     FROM (SELECT event_pk FROM asset_queue WHERE dag_id = $1 AND asset = $2 AND run_pk IS NULL
        ORDER BY event_pk LIMIT $3) q
     JOIN asset_event e ON e.event_pk = q.event_pk HAVING COUNT(*) > 0",
);

/// What is queued for a DAG, by asset: of those that its schedule names.
pub async fn queued(tx: &Tx, dag_id: &str) -> Result<Vec<Queued>, StoreError> {
    let decode = |row: Row| {
        let mut c = row.columns("asset_queue");
        Ok(Queued {
            asset: c.text()?,
            count: c.int()?,
            first_at: c.time()?,
            last_at: c.time()?,
            interval_start: c.time()?,
            interval_end: c.time()?,
            last_pk: c.int()?,
        })
    };
    let names = uses::consumed(tx, dag_id).await?;
    let sets = names.iter().map(|name| values![dag_id, name, TAKEN_AT_ONCE]).collect();
    tx.query_many(&ASSET_QUEUED, sets).await?.into_iter().map(decode).collect()
}

const ASSET_TAKE: Stmt = Stmt::same(
    "asset_take",
    "UPDATE asset_queue SET run_pk = $2
     WHERE dag_id = $1 AND asset = $3 AND event_pk <= $4 AND run_pk IS NULL",
);

/// Gives a run what was found queued for its DAG; how many events. The caller has the DAG's lock.
pub async fn take(
    tx: &Tx,
    dag_id: &str,
    run_pk: i64,
    queued: &[Queued],
) -> Result<u64, StoreError> {
    let set = |one: &Queued| values![dag_id, run_pk, &one.asset, one.last_pk];
    let taken = tx.execute_many(&ASSET_TAKE, queued.iter().map(set).collect()).await?;
    Ok(taken.into_iter().sum())
}

const ASSET_OF_RUN: Stmt = Stmt::same(
    "asset_of_run",
    concat!(
        "SELECT ",
        columns!(),
        " FROM asset_queue q JOIN asset_event e ON e.event_pk = q.event_pk
          WHERE q.run_pk = $1 AND q.run_pk IS NOT NULL ORDER BY q.event_pk DESC LIMIT $2"
    ),
);

/// The events that a run took, oldest first: the newest so many of them.
pub async fn of_run(tx: &Tx, run_pk: i64, limit: u32) -> Result<Vec<AssetEvent>, StoreError> {
    let mut found = decode_all(tx.query(&ASSET_OF_RUN, values![run_pk, limit]).await?)?;
    found.reverse();
    Ok(found)
}

const ASSET_SINCE: Stmt = Stmt::same(
    "asset_since",
    concat!(
        "SELECT ",
        columns!(),
        " FROM asset_event e WHERE e.asset = $1 AND e.at >= $2 ORDER BY e.at, e.event_pk LIMIT 1"
    ),
);

/// The first event of an asset since an instant.
pub async fn since(tx: &Tx, asset: &str, at: Timestamp) -> Result<Option<AssetEvent>, StoreError> {
    Ok(decode_all(tx.query(&ASSET_SINCE, values![asset, at]).await?)?.pop())
}

const OWN: &[Stmt] = &[
    ASSET_EMIT,
    ASSET_EMIT_BY_HAND,
    ASSET_FAN_OUT,
    ASSET_WAITING,
    ASSET_QUEUED,
    ASSET_TAKE,
    ASSET_OF_RUN,
    ASSET_SINCE,
];

/// Of this module and of those below it.
pub(super) fn statements() -> Vec<Stmt> {
    [OWN, uses::STATEMENTS, view::STATEMENTS].concat()
}
