//! Backfills, what they did with their slots, and the runs that count in their limits.

use crate::db::Columns;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::state::{BackfillState, Reprocess, RunState, RunType, SlotAction};
use fencepost_core::time::Timestamp;

/// A backfill's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Backfill {
    pub backfill_pk: i64,
    pub dag_id: String,
    pub version_pk: i64,
    pub state: BackfillState,
    pub paused: bool,
    pub from_date: Timestamp,
    pub to_date: Timestamp,
    pub reprocess: Reprocess,
    pub max_active_runs: i64,
    pub backwards: bool,
    pub params: serde_json::Value,
    pub conf: serde_json::Value,
    /// How many slots it has.
    pub slots: i64,
    /// When the last slot that was handled was due.
    pub place: Option<Timestamp>,
    /// Every slot was handled.
    pub planned: bool,
    pub created_at: Timestamp,
    pub created_by: String,
    pub stopped_by: Option<String>,
    pub ended_at: Option<Timestamp>,
    /// Of its runs.
    pub queued: i64,
    pub running: i64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT b.backfill_pk, b.dag_id, b.version_pk, b.state, b.paused, b.from_date, b.to_date,
                b.reprocess, b.max_active_runs, b.backwards, b.params, b.conf, b.slots, b.place,
                b.planned, b.created_at, b.created_by, b.stopped_by, b.ended_at,
                (SELECT COUNT(*) FROM run q WHERE q.backfill_pk = b.backfill_pk
                    AND q.state = 'queued'),
                (SELECT COUNT(*) FROM run a WHERE a.backfill_pk = b.backfill_pk
                    AND a.state = 'running')
             FROM backfill b WHERE ",
            $rest
        )
    };
}

fn decode(row: Row) -> Result<Backfill, StoreError> {
    let mut c: Columns = row.columns("backfill");
    Ok(Backfill {
        backfill_pk: c.int()?,
        dag_id: c.text()?,
        version_pk: c.int()?,
        state: c.named(BackfillState::parse)?,
        paused: c.flag()?,
        from_date: c.time()?,
        to_date: c.time()?,
        reprocess: c.named(Reprocess::parse)?,
        max_active_runs: c.int()?,
        backwards: c.flag()?,
        params: c.json()?,
        conf: c.json()?,
        slots: c.int()?,
        place: c.opt_time()?,
        planned: c.flag()?,
        created_at: c.time()?,
        created_by: c.text()?,
        stopped_by: c.opt_text()?,
        ended_at: c.opt_time()?,
        queued: c.int()?,
        running: c.int()?,
    })
}

/// A backfill to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewBackfill {
    pub dag_id: String,
    pub version_pk: i64,
    pub from_date: Timestamp,
    pub to_date: Timestamp,
    pub reprocess: Reprocess,
    pub max_active_runs: i64,
    pub backwards: bool,
    pub params: serde_json::Value,
    pub conf: serde_json::Value,
    pub slots: i64,
    pub by: String,
}

const BACKFILL_INSERT: Stmt = Stmt::same(
    "backfill_insert",
    "INSERT INTO backfill (dag_id, version_pk, state, from_date, to_date, reprocess,
        max_active_runs, backwards, params, conf, slots, created_at, created_by)
     VALUES ($1, $2, 'running', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     ON CONFLICT DO NOTHING RETURNING backfill_pk",
);

/// Makes a backfill; `None`: another one of the DAG is under way.
pub async fn insert(tx: &Tx, new: &NewBackfill) -> Result<Option<i64>, StoreError> {
    let values = values![
        &new.dag_id,
        new.version_pk,
        new.from_date,
        new.to_date,
        new.reprocess.as_str(),
        new.max_active_runs,
        new.backwards,
        &new.params,
        &new.conf,
        new.slots,
        tx.now(),
        &new.by,
    ];
    let row = tx.query_opt(&BACKFILL_INSERT, values).await?;
    row.map(|row| row.columns("backfill").int()).transpose()
}

const BACKFILL_GET: Stmt =
    Stmt::same("backfill_get", select!("b.backfill_pk = $1")).locking(" FOR UPDATE OF b");
const BACKFILL_TAKE: Stmt = Stmt::same("backfill_take", select!("b.backfill_pk = $1"))
    .locking(" FOR UPDATE OF b SKIP LOCKED");

/// One of them; locked in a transaction that may write.
pub async fn get(tx: &Tx, backfill_pk: i64) -> Result<Option<Backfill>, StoreError> {
    tx.query_opt(&BACKFILL_GET, values![backfill_pk]).await?.map(decode).transpose()
}

/// Locks one, unless somebody else has it in hand: its place and its limit are its lock's.
pub async fn take(tx: &Tx, backfill_pk: i64) -> Result<Option<Backfill>, StoreError> {
    tx.query_opt(&BACKFILL_TAKE, values![backfill_pk]).await?.map(decode).transpose()
}

const BACKFILL_UNDER_WAY: Stmt = Stmt::same(
    "backfill_under_way",
    select!(
        "b.state IN ('running', 'cancelling') AND b.backfill_pk > $1 ORDER BY b.backfill_pk LIMIT $2"
    ),
);

/// Those that are under way, after one.
pub async fn under_way(tx: &Tx, after: i64, limit: u32) -> Result<Vec<Backfill>, StoreError> {
    let rows = tx.query(&BACKFILL_UNDER_WAY, values![after, limit]).await?;
    rows.into_iter().map(decode).collect()
}

const BACKFILL_PAGE: Stmt = Stmt::same(
    "backfill_page",
    select!(
        "b.backfill_pk < $1 AND ($2 = '' OR b.dag_id = $2)
            AND ($3 = CAST(0 AS BIGINT) OR b.state IN ('running', 'cancelling'))
         ORDER BY b.backfill_pk DESC LIMIT $4"
    ),
);

/// Backfills, the newest first, before one; of one DAG unless its name is empty.
pub async fn page(
    tx: &Tx,
    before: i64,
    (dag_id, under_way): (&str, bool),
    limit: u32,
) -> Result<Vec<Backfill>, StoreError> {
    let rows = tx.query(&BACKFILL_PAGE, values![before, dag_id, under_way, limit]).await?;
    rows.into_iter().map(decode).collect()
}

const BACKFILL_MOVE: Stmt = Stmt::same(
    "backfill_move",
    "UPDATE backfill SET place = $2, planned = $3 WHERE backfill_pk = $1 AND state = 'running'",
);

/// Moves its place on. The caller has its lock.
pub async fn move_on(
    tx: &Tx,
    backfill_pk: i64,
    place: Option<Timestamp>,
    planned: bool,
) -> Result<(), StoreError> {
    tx.execute(&BACKFILL_MOVE, values![backfill_pk, place, planned]).await.map(drop)
}

const BACKFILL_PAUSE: Stmt =
    Stmt::same("backfill_pause", "UPDATE backfill SET paused = $2 WHERE backfill_pk = $1");

/// Pauses or resumes one.
pub async fn pause(tx: &Tx, backfill_pk: i64, paused: bool) -> Result<(), StoreError> {
    tx.execute(&BACKFILL_PAUSE, values![backfill_pk, paused]).await.map(drop)
}

const BACKFILL_STATE: Stmt = Stmt::same(
    "backfill_state",
    "UPDATE backfill SET state = $3, ended_at = $4, stopped_by = COALESCE($5, stopped_by)
     WHERE backfill_pk = $1 AND state = $2",
);

/// Moves one from a state to the next; whether it was in it.
pub async fn set_state(
    tx: &Tx,
    backfill_pk: i64,
    (from, to): (BackfillState, BackfillState),
    by: Option<&str>,
) -> Result<bool, StoreError> {
    let is_over = matches!(to, BackfillState::Completed | BackfillState::Cancelled);
    let ended_at = is_over.then(|| tx.now());
    let values = values![backfill_pk, from.as_str(), to.as_str(), ended_at, by];
    Ok(tx.execute(&BACKFILL_STATE, values).await? == 1)
}

const BACKFILL_FOUND: Stmt = Stmt::same(
    "backfill_found",
    "SELECT r.logical_date, r.run_pk, r.run_id, r.run_type, r.state FROM run r WHERE r.run_pk =
        (SELECT MAX(o.run_pk) FROM run o WHERE o.dag_id = $1 AND o.logical_date = $2
            AND o.state <> 'missed')",
)
.batched(
    0,
    "SELECT u.ord, r.logical_date, r.run_pk, r.run_id, r.run_type, r.state \
        FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS u(dag_id, logical_date, ord) \
        JOIN run r ON r.run_pk = (SELECT MAX(o.run_pk) FROM run o WHERE o.dag_id = u.dag_id \
            AND o.logical_date = u.logical_date AND o.state <> 'missed') ORDER BY u.ord",
);

/// The newest run of a logical date that was not missed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub logical_date: Timestamp,
    pub run_pk: i64,
    pub run_id: String,
    pub run_type: RunType,
    pub state: RunState,
}

/// The runs that are there for some logical dates of a DAG.
pub async fn found(tx: &Tx, dag_id: &str, dates: &[Timestamp]) -> Result<Vec<Found>, StoreError> {
    let sets = dates.iter().map(|date| values![dag_id, *date]).collect();
    let rows = tx.query_many(&BACKFILL_FOUND, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("run");
            Ok(Found {
                logical_date: c.time()?,
                run_pk: c.int()?,
                run_id: c.text()?,
                run_type: c.named(RunType::parse)?,
                state: c.named(RunState::parse)?,
            })
        })
        .collect()
}

const BACKFILL_SLOT_INSERT: Stmt = Stmt::same(
    "backfill_slot_insert",
    "INSERT INTO backfill_slot (backfill_pk, logical_date, action, run_pk)
     VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
);

/// Writes what was done with slots: (logical date, what, the run).
pub async fn insert_slots(
    tx: &Tx,
    backfill_pk: i64,
    slots: &[(Timestamp, SlotAction, i64)],
) -> Result<(), StoreError> {
    let set = |(date, action, run_pk): &(Timestamp, SlotAction, i64)| {
        values![backfill_pk, *date, action.as_str(), *run_pk]
    };
    tx.execute_many(&BACKFILL_SLOT_INSERT, slots.iter().map(set).collect()).await.map(drop)
}

const BACKFILL_SLOT_COUNTS: Stmt = Stmt::same(
    "backfill_slot_counts",
    "SELECT s.action, r.state, COUNT(*) FROM backfill_slot s
        LEFT JOIN run r ON r.run_pk = s.run_pk WHERE s.backfill_pk = $1
     GROUP BY s.action, r.state ORDER BY s.action, r.state",
);

/// How many slots were done so, whose runs are in that state now (`None`: gone).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotCount {
    pub action: SlotAction,
    pub state: Option<RunState>,
    pub count: i64,
}

/// The slots of a backfill that were handled, counted.
pub async fn counts(tx: &Tx, backfill_pk: i64) -> Result<Vec<SlotCount>, StoreError> {
    let rows = tx.query(&BACKFILL_SLOT_COUNTS, values![backfill_pk]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("backfill_slot");
            Ok(SlotCount {
                action: c.named(SlotAction::parse)?,
                state: c.opt_named(RunState::parse)?,
                count: c.int()?,
            })
        })
        .collect()
}

const BACKFILL_ADOPT: Stmt = Stmt::same(
    "backfill_adopt",
    "UPDATE run SET backfill_pk = $2 WHERE run_pk = $1 AND state = 'queued'",
);

/// Lets queued runs count in a backfill's limit.
pub async fn adopt(tx: &Tx, backfill_pk: i64, run_pks: &[i64]) -> Result<(), StoreError> {
    let sets = run_pks.iter().map(|run_pk| values![*run_pk, backfill_pk]).collect();
    tx.execute_many(&BACKFILL_ADOPT, sets).await.map(drop)
}

pub(super) const STATEMENTS: &[Stmt] = &[
    BACKFILL_INSERT,
    BACKFILL_GET,
    BACKFILL_TAKE,
    BACKFILL_UNDER_WAY,
    BACKFILL_PAGE,
    BACKFILL_MOVE,
    BACKFILL_PAUSE,
    BACKFILL_STATE,
    BACKFILL_FOUND,
    BACKFILL_SLOT_INSERT,
    BACKFILL_SLOT_COUNTS,
    BACKFILL_ADOPT,
];
