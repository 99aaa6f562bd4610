//! Triggers: what deferred instances wait for. Whoever writes one away has its instance's lock.
//!
//! A row is made by the transaction that defers its instance, and goes with the change that takes the
//! instance out of `deferred` ([`super::task_instance::change`]), whoever makes it: so a trigger
//! whose instance was cancelled, cleared or marked can wake nobody (I13).

use crate::query::task_instance::TiKey;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;
use fencepost_core::time::Timestamp;

/// A trigger's row.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    pub token: Token,
    pub ti: TiKey,
    pub dag_id: String,
    pub kind: String,
    pub wait: serde_json::Value,
    pub memory: serde_json::Value,
    pub resumes: bool,
    pub created_at: Timestamp,
    pub due_at: Option<Timestamp>,
    pub deadline_at: Option<Timestamp>,
    pub next_at: Option<Timestamp>,
    /// Its triggerer; empty: none yet, or it needs none.
    pub job_id: String,
}

macro_rules! columns {
    () => {
        "g.token, g.run_pk, g.task_index, g.map_index, g.dag_id, g.kind, g.wait, g.memory, \
         g.resumes, g.created_at, g.due_at, g.deadline_at, g.next_at, g.job_id"
    };
}

fn decode(row: Row) -> Result<Trigger, StoreError> {
    let mut c = row.columns("trigger");
    Ok(Trigger {
        token: c.token()?,
        ti: TiKey { run_pk: c.int()?, task_index: c.number()?, map_index: c.number()? },
        dag_id: c.text()?,
        kind: c.text()?,
        wait: c.json()?,
        memory: c.json()?,
        resumes: c.flag()?,
        created_at: c.time()?,
        due_at: c.opt_time()?,
        deadline_at: c.opt_time()?,
        next_at: c.opt_time()?,
        job_id: c.text()?,
    })
}

fn decode_all(rows: Vec<Row>) -> Result<Vec<Trigger>, StoreError> {
    rows.into_iter().map(decode).collect()
}

const TRIGGER_INSERT: Stmt = Stmt::same(
    "trigger_insert",
    "INSERT INTO trigger (token, run_pk, task_index, map_index, dag_id, kind, wait, memory,
        resumes, created_at, due_at, deadline_at, next_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
)
.batched(
    0,
    "INSERT INTO trigger (token, run_pk, task_index, map_index, dag_id, kind, wait, memory, \
        resumes, created_at, due_at, deadline_at, next_at) SELECT * FROM unnest($1::bigint[], \
        $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], \
        $8::text[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[])",
);

/// Makes triggers; nobody looks after them yet.
pub async fn insert(tx: &Tx, triggers: &[Trigger]) -> Result<(), StoreError> {
    let sets = triggers
        .iter()
        .map(|g| {
            values![
                g.token,
                g.ti.run_pk,
                g.ti.task_index,
                g.ti.map_index,
                &g.dag_id,
                &g.kind,
                &g.wait,
                &g.memory,
                g.resumes,
                g.created_at,
                g.due_at,
                g.deadline_at,
                g.next_at,
            ]
        })
        .collect();
    tx.execute_many(&TRIGGER_INSERT, sets).await.map(drop)
}

const TRIGGER_GET: Stmt =
    Stmt::same("trigger_get", concat!("SELECT ", columns!(), " FROM trigger g WHERE g.token = $1"))
        .batched(
            0,
            concat!(
                "SELECT u.ord, ",
                columns!(),
                " FROM unnest($1::bigint[]) WITH ORDINALITY AS u(wanted, ord)
          JOIN trigger g ON g.token = u.wanted ORDER BY u.ord"
            ),
        );

/// The triggers of those attempts that still exist.
pub async fn get(tx: &Tx, tokens: &[Token]) -> Result<Vec<Trigger>, StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    decode_all(tx.query_many(&TRIGGER_GET, sets).await?)
}

const TRIGGER_DELETE: Stmt = Stmt::same("trigger_delete", "DELETE FROM trigger WHERE token = $1")
    .batched(
        1,
        "DELETE FROM trigger g USING unnest($1::bigint[]) WITH ORDINALITY AS u(token, ord) \
            WHERE g.token = u.token RETURNING u.ord",
    );

/// Triggers whose instances are not deferred any more.
pub(super) async fn delete(tx: &Tx, tokens: &[Token]) -> Result<(), StoreError> {
    let sets = tokens.iter().map(|token| values![*token]).collect();
    tx.execute_many(&TRIGGER_DELETE, sets).await.map(drop)
}

const TRIGGER_DELETE_OF_RUN: Stmt =
    Stmt::same("trigger_delete_of_run", "DELETE FROM trigger WHERE run_pk = $1");

/// All triggers of a run none of whose instances stays deferred.
pub(super) async fn delete_of_run(tx: &Tx, run_pk: i64) -> Result<(), StoreError> {
    tx.execute(&TRIGGER_DELETE_OF_RUN, values![run_pk]).await.map(drop)
}

const TRIGGER_CLAIM: Stmt = Stmt::split(
    "trigger_claim",
    "UPDATE trigger SET job_id = $1 WHERE token IN (
        SELECT g.token FROM trigger g WHERE g.next_at IS NOT NULL AND (g.job_id = ''
            OR NOT EXISTS (SELECT 1 FROM job j WHERE j.job_id = g.job_id
                AND j.state IN ('running', 'draining')))
        ORDER BY g.token LIMIT $2)",
    "UPDATE trigger SET job_id = $1 WHERE token IN (
        SELECT g.token FROM trigger g WHERE g.next_at IS NOT NULL AND (g.job_id = ''
            OR NOT EXISTS (SELECT 1 FROM job j WHERE j.job_id = g.job_id
                AND j.state IN ('running', 'draining')))
        ORDER BY g.token LIMIT $2 FOR UPDATE OF g SKIP LOCKED)",
);

/// Takes triggers that nobody alive looks after; how many.
pub async fn claim(tx: &Tx, job: &str, limit: u32) -> Result<u64, StoreError> {
    tx.execute(&TRIGGER_CLAIM, values![job, limit]).await
}

const TRIGGER_LOADS: Stmt = Stmt::same(
    "trigger_loads",
    "SELECT CAST(COALESCE(SUM(CASE WHEN job_id = $1 THEN 1 ELSE 0 END), 0) AS BIGINT), COUNT(*),
        (SELECT COUNT(*) FROM job WHERE kind = 'triggerer' AND state = 'running')
     FROM trigger WHERE next_at IS NOT NULL",
);

/// How the looking is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loads {
    /// Triggers that this job looks after.
    pub own: u64,
    /// All that have to be looked after.
    pub all: u64,
    /// Live triggerers.
    pub triggerers: u64,
}

/// How the looking is spread.
pub async fn loads(tx: &Tx, job: &str) -> Result<Loads, StoreError> {
    let row = tx.query_opt(&TRIGGER_LOADS, values![job]).await?.unwrap_or(Row(vec![]));
    let mut c = row.columns("trigger");
    let mut count = || Ok::<_, StoreError>(u64::try_from(c.int()?).unwrap_or(0));
    Ok(Loads { own: count()?, all: count()?, triggerers: count()? })
}

const TRIGGER_NEXT_TIMER: Stmt =
    Stmt::same("trigger_next_timer", "SELECT MIN(due_at) FROM trigger WHERE due_at IS NOT NULL");

/// When the next timer falls due; it may be past.
pub async fn next_timer(tx: &Tx) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = tx.query_opt(&TRIGGER_NEXT_TIMER, vec![]).await? else { return Ok(None) };
    row.columns("trigger").opt_time()
}

const TRIGGER_TO_LOOK: Stmt = Stmt::same(
    "trigger_to_look",
    concat!(
        "SELECT ",
        columns!(),
        " FROM trigger g WHERE g.job_id = $1 AND g.next_at <= $2 ORDER BY g.next_at LIMIT $3"
    ),
);

/// Triggers of a triggerer that are to be looked at now.
pub async fn to_look(tx: &Tx, job: &str, limit: u32) -> Result<Vec<Trigger>, StoreError> {
    decode_all(tx.query(&TRIGGER_TO_LOOK, values![job, tx.now(), limit]).await?)
}

const TRIGGER_NEXT_LOOK: Stmt = Stmt::same(
    "trigger_next_look",
    "SELECT MIN(next_at) FROM trigger WHERE job_id = $1 AND next_at IS NOT NULL",
);

/// When a triggerer has to look next.
pub async fn next_look(tx: &Tx, job: &str) -> Result<Option<Timestamp>, StoreError> {
    let Some(row) = tx.query_opt(&TRIGGER_NEXT_LOOK, values![job]).await? else {
        return Ok(None);
    };
    row.columns("trigger").opt_time()
}

const TRIGGER_LOOKED: Stmt = Stmt::same(
    "trigger_looked",
    "UPDATE trigger SET next_at = $3, memory = $4 WHERE token = $1 AND job_id = $2",
)
.batched(
    1,
    "UPDATE trigger g SET next_at = u.next_at, memory = u.memory FROM unnest($1::bigint[], \
        $2::text[], $3::bigint[], $4::text[]) WITH ORDINALITY AS u(token, job_id, next_at, memory, ord) \
        WHERE g.token = u.token AND g.job_id = u.job_id RETURNING u.ord",
);

/// What a look left, of triggers that are still this triggerer's.
pub async fn looked(
    tx: &Tx,
    job: &str,
    looks: &[(Token, Timestamp, serde_json::Value)],
) -> Result<(), StoreError> {
    let sets = looks.iter().map(|(token, at, memory)| values![*token, job, *at, memory]).collect();
    tx.execute_many(&TRIGGER_LOOKED, sets).await.map(drop)
}

const TRIGGER_LIST: Stmt = Stmt::same(
    "trigger_list",
    concat!("SELECT ", columns!(), " FROM trigger g WHERE g.token > $1 ORDER BY g.token LIMIT $2"),
);

/// Every trigger, by page after a token.
pub async fn list(tx: &Tx, after: i64, limit: u32) -> Result<Vec<Trigger>, StoreError> {
    decode_all(tx.query(&TRIGGER_LIST, values![after, limit]).await?)
}

pub(super) const STATEMENTS: &[Stmt] = &[
    TRIGGER_INSERT,
    TRIGGER_GET,
    TRIGGER_DELETE,
    TRIGGER_DELETE_OF_RUN,
    TRIGGER_CLAIM,
    TRIGGER_LOADS,
    TRIGGER_NEXT_TIMER,
    TRIGGER_TO_LOOK,
    TRIGGER_NEXT_LOOK,
    TRIGGER_LOOKED,
    TRIGGER_LIST,
];
