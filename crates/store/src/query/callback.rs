//! Callbacks: what is told to the outside. A row from the transaction that takes its occasion, kept
//! after its end: delivered, or dead until a person asks for another round.

use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::callback::Occasion;
use fencepost_core::id::Token;
use fencepost_core::time::{Span, Timestamp};
use serde_json::Value;

/// A callback's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Callback {
    /// What the receiver knows it by.
    pub id: String,
    pub dag_id: String,
    pub run_id: String,
    pub run_pk: i64,
    /// `None`: about the run.
    pub task_id: Option<String>,
    pub map_index: i32,
    pub token: Option<Token>,
    pub occasion: Occasion,
    /// `webhook`, `slack`, ...
    pub kind: String,
    /// Whose slowness it shares.
    pub target: String,
    pub spec: Value,
    /// What happened.
    pub told: Value,
    /// `due`, `delivered` or `dead`.
    pub state: String,
    /// Attempts that have failed, and the one that did not.
    pub tries: u32,
    pub created_at: Timestamp,
    /// From when on its age counts.
    pub since_at: Timestamp,
    pub due_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub last_error: Option<String>,
}

macro_rules! columns {
    () => {
        "c.id, c.dag_id, c.run_id, c.run_pk, c.task_id, c.map_index, c.token, c.occasion, c.kind, \
         c.target, c.spec, c.told, c.state, c.tries, c.created_at, c.since_at, c.due_at, \
         c.ended_at, c.last_error"
    };
}

fn decode(row: Row) -> Result<Callback, StoreError> {
    let mut c = row.columns("callback");
    Ok(Callback {
        id: c.text()?,
        dag_id: c.text()?,
        run_id: c.text()?,
        run_pk: c.int()?,
        task_id: c.opt_text()?,
        map_index: c.number()?,
        token: c.opt_token()?,
        occasion: c.named(Occasion::parse)?,
        kind: c.text()?,
        target: c.text()?,
        spec: c.json()?,
        told: c.json()?,
        state: c.text()?,
        tries: c.number()?,
        created_at: c.time()?,
        since_at: c.time()?,
        due_at: c.time()?,
        ended_at: c.opt_time()?,
        last_error: c.opt_text()?,
    })
}

fn decode_all(rows: Vec<Row>) -> Result<Vec<Callback>, StoreError> {
    rows.into_iter().map(decode).collect()
}

const CALLBACK_INSERT: Stmt = Stmt::same(
    "callback_insert",
    "INSERT INTO callback (id, dag_id, run_id, run_pk, task_id, map_index, token, occasion, kind,
        target, spec, told, state, created_at, since_at, due_at, ended_at, last_error)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
)
.batched(
    0,
    "INSERT INTO callback (id, dag_id, run_id, run_pk, task_id, map_index, token, occasion, \
        kind, target, spec, told, state, created_at, since_at, due_at, ended_at, last_error) \
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], \
        $6::bigint[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], \
        $12::text[], $13::text[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], \
        $18::text[])",
);

/// Makes callbacks, in the state that they carry.
pub async fn insert(tx: &Tx, callbacks: &[Callback]) -> Result<(), StoreError> {
    let sets = callbacks
        .iter()
        .map(|c| {
            values![
                &c.id,
                &c.dag_id,
                &c.run_id,
                c.run_pk,
                c.task_id.clone(),
                c.map_index,
                c.token.map_or(0, Token::as_i64),
                c.occasion.as_str(),
                &c.kind,
                &c.target,
                &c.spec,
                &c.told,
                &c.state,
                c.created_at,
                c.since_at,
                c.due_at,
                c.ended_at,
                c.last_error.clone(),
            ]
        })
        .collect();
    tx.execute_many(&CALLBACK_INSERT, sets).await.map(drop)
}

// From one target to the next by the index: however much waits for a slow one, the others are found.
const CALLBACK_TARGETS: Stmt = Stmt::same(
    "callback_targets",
    "WITH RECURSIVE t(target) AS (
        SELECT MIN(c.target) FROM callback c WHERE c.state = 'due' AND c.target > $1
        UNION ALL
        SELECT (SELECT MIN(c.target) FROM callback c WHERE c.state = 'due' AND c.target > t.target)
        FROM t WHERE t.target IS NOT NULL)
     SELECT t.target FROM t WHERE t.target IS NOT NULL AND EXISTS (SELECT 1 FROM callback d
        WHERE d.state = 'due' AND d.target = t.target AND d.due_at <= $2) LIMIT $3",
);

/// Targets for which callbacks are due, after a name.
pub async fn targets(tx: &Tx, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
    let rows = tx.query(&CALLBACK_TARGETS, values![after, tx.now(), limit]).await?;
    rows.into_iter().map(|row| row.columns("callback").text()).collect()
}

const CALLBACK_DUE: Stmt = Stmt::same(
    "callback_due",
    concat!(
        "SELECT ",
        columns!(),
        " FROM callback c WHERE c.state = 'due' AND c.target = $1 AND c.due_at <= $2
            ORDER BY c.due_at, c.id LIMIT $3"
    ),
);

/// Callbacks that are due for a target, oldest first.
pub async fn due(tx: &Tx, target: &str, limit: u32) -> Result<Vec<Callback>, StoreError> {
    decode_all(tx.query(&CALLBACK_DUE, values![target, tx.now(), limit]).await?)
}

const CALLBACK_TAKE: Stmt = Stmt::same(
    "callback_take",
    "UPDATE callback SET due_at = $2 WHERE id = $1 AND state = 'due' AND due_at = $3",
);

/// Takes a callback as it was seen: for a while it is due for nobody else, then again, if whoever took
/// it did not tell. False: somebody else has it.
pub async fn take(tx: &Tx, seen: &Callback, hold: Span) -> Result<bool, StoreError> {
    let values = values![&seen.id, tx.now().plus(hold), seen.due_at];
    Ok(tx.execute(&CALLBACK_TAKE, values).await? == 1)
}

const CALLBACK_DELIVERED: Stmt = Stmt::same(
    "callback_delivered",
    "UPDATE callback SET state = 'delivered', tries = tries + 1, ended_at = $2, last_error = NULL
     WHERE id = $1 AND state <> 'delivered'",
);

/// A callback has arrived, whoever else has it in hand. False: it was known.
pub async fn delivered(tx: &Tx, id: &str) -> Result<bool, StoreError> {
    Ok(tx.execute(&CALLBACK_DELIVERED, values![id, tx.now()]).await? == 1)
}

const CALLBACK_FAILED: Stmt = Stmt::same(
    "callback_failed",
    "UPDATE callback SET state = $3, tries = tries + 1, due_at = $4, ended_at = $5, last_error = $6
     WHERE id = $1 AND state = 'due' AND tries = $2",
);

/// A callback did not arrive: due again at an instant, or dead (`None`). False: it has moved on since.
pub async fn failed(
    tx: &Tx,
    seen: &Callback,
    again_at: Option<Timestamp>,
    why: &str,
) -> Result<bool, StoreError> {
    let state = if again_at.is_some() { "due" } else { "dead" };
    let now = tx.now();
    let ended_at = again_at.is_none().then_some(now);
    let values =
        values![&seen.id, seen.tries, state, again_at.unwrap_or(now), ended_at, why.to_owned()];
    Ok(tx.execute(&CALLBACK_FAILED, values).await? == 1)
}

const CALLBACK_RETRY: Stmt = Stmt::same(
    "callback_retry",
    "UPDATE callback SET state = 'due', tries = 0, since_at = $2, due_at = $2, ended_at = NULL
     WHERE id = $1 AND state = 'dead'",
);

/// Another round for a dead callback. False: it is not dead.
pub async fn retry(tx: &Tx, id: &str) -> Result<bool, StoreError> {
    Ok(tx.execute(&CALLBACK_RETRY, values![id, tx.now()]).await? == 1)
}

const CALLBACK_NEXT: Stmt =
    Stmt::same("callback_next", "SELECT MIN(due_at) FROM callback WHERE state = 'due'");

/// When the next callback is due; it may be past.
pub async fn next_due(tx: &Tx) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = tx.query_opt(&CALLBACK_NEXT, vec![]).await? else { return Ok(None) };
    row.columns("callback").opt_time()
}

const CALLBACK_GET: Stmt =
    Stmt::same("callback_get", concat!("SELECT ", columns!(), " FROM callback c WHERE c.id = $1"));

/// A callback.
pub async fn get(tx: &Tx, id: &str) -> Result<Option<Callback>, StoreError> {
    tx.query_opt(&CALLBACK_GET, values![id]).await?.map(decode).transpose()
}

const CALLBACK_PAGE: Stmt = Stmt::same(
    "callback_page",
    concat!(
        "SELECT ",
        columns!(),
        " FROM callback c WHERE c.id > $1 AND ($2 = '' OR c.state = $2)
            AND ($3 = '' OR c.dag_id = $3) ORDER BY c.id LIMIT $4"
    ),
);

/// Callbacks by age after one, of a state and a DAG (empty: any).
pub async fn page(
    tx: &Tx,
    after: &str,
    (state, dag_id): (&str, &str),
    limit: u32,
) -> Result<Vec<Callback>, StoreError> {
    decode_all(tx.query(&CALLBACK_PAGE, values![after, state, dag_id, limit]).await?)
}

/// How many there are that have not arrived.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub due: i64,
    /// Those of them that have failed at least once.
    pub failing: i64,
    pub dead: i64,
    /// When the oldest of those that are due was made.
    pub oldest_at: Option<Timestamp>,
}

const CALLBACK_COUNTS: Stmt = Stmt::same(
    "callback_counts",
    "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN tries > 0 THEN 1 ELSE 0 END), 0) AS BIGINT),
        (SELECT COUNT(*) FROM callback WHERE state = 'dead'), MIN(created_at)
     FROM callback WHERE state = 'due'",
);

/// Counts what has not arrived.
pub async fn counts(tx: &Tx) -> Result<Counts, StoreError> {
    let row = tx.query_opt(&CALLBACK_COUNTS, vec![]).await?.unwrap_or(Row(vec![]));
    let mut c = row.columns("callback");
    Ok(Counts { due: c.int()?, failing: c.int()?, dead: c.int()?, oldest_at: c.opt_time()? })
}

const CALLBACK_COUNT_ENDED: Stmt = Stmt::same(
    "callback_count_ended",
    "SELECT COUNT(*) FROM callback WHERE ended_at IS NOT NULL AND ended_at < $1",
);

/// How many callbacks ended before an instant.
pub async fn count_ended(tx: &Tx, before: Timestamp) -> Result<u64, StoreError> {
    let row = tx.query_opt(&CALLBACK_COUNT_ENDED, values![before]).await?.unwrap_or(Row(vec![]));
    Ok(u64::try_from(row.columns("callback").int()?).unwrap_or(0))
}

const CALLBACK_PRUNE: Stmt = Stmt::same(
    "callback_prune",
    "DELETE FROM callback WHERE id IN (
        SELECT id FROM callback WHERE ended_at IS NOT NULL AND ended_at < $1
        ORDER BY ended_at, id LIMIT $2)",
);

/// Forgets callbacks that ended before an instant, a page of them; how many.
pub async fn prune(tx: &Tx, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
    tx.execute(&CALLBACK_PRUNE, values![before, limit]).await
}

pub(super) const STATEMENTS: &[Stmt] = &[
    CALLBACK_INSERT,
    CALLBACK_TARGETS,
    CALLBACK_DUE,
    CALLBACK_TAKE,
    CALLBACK_DELIVERED,
    CALLBACK_FAILED,
    CALLBACK_RETRY,
    CALLBACK_NEXT,
    CALLBACK_GET,
    CALLBACK_PAGE,
    CALLBACK_COUNTS,
    CALLBACK_COUNT_ENDED,
    CALLBACK_PRUNE,
];
