//! The transition log: append-only, read by page.

use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;
use fencepost_core::time::Timestamp;

/// An event to be written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Event {
    pub kind: &'static str,
    pub dag_id: Option<String>,
    pub run_pk: Option<i64>,
    pub task_id: Option<String>,
    pub map_index: Option<i32>,
    pub token: Option<Token>,
    pub actor: String,
    pub from: Option<&'static str>,
    pub to: Option<&'static str>,
    pub reason: Option<String>,
    pub evidence: Option<serde_json::Value>,
}

const EVENT_INSERT: Stmt = Stmt::same(
    "event_insert",
    "INSERT INTO event (at, kind, dag_id, run_pk, task_id, map_index, token, actor, from_state,
                        to_state, reason, evidence)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
);

/// Appends events.
pub async fn append(tx: &Tx, events: Vec<Event>) -> Result<(), StoreError> {
    let now = tx.now();
    let sets = events
        .into_iter()
        .map(|e| {
            values![
                now,
                e.kind,
                e.dag_id,
                e.run_pk,
                e.task_id,
                e.map_index,
                e.token.map_or(0, Token::as_i64),
                e.actor,
                e.from,
                e.to,
                e.reason,
                e.evidence.map(|json| json.to_string()),
            ]
        })
        .collect();
    tx.execute_many(&EVENT_INSERT, sets).await.map(drop)
}

/// An event as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Logged {
    pub seq: i64,
    pub at: Timestamp,
    pub kind: String,
    pub dag_id: Option<String>,
    pub run_id: Option<String>,
    pub task_id: Option<String>,
    pub map_index: Option<i32>,
    pub token: Option<Token>,
    pub actor: String,
    pub from: Option<String>,
    pub to: Option<String>,
    pub reason: Option<String>,
    pub evidence: Option<serde_json::Value>,
}

macro_rules! select {
    ($where:literal) => {
        concat!(
            "SELECT e.seq, e.at, e.kind, e.dag_id, r.run_id, e.task_id, e.map_index, e.token, \
             e.actor, e.from_state, e.to_state, e.reason, e.evidence \
             FROM event e LEFT JOIN run r ON r.run_pk = e.run_pk WHERE ",
            $where,
            " ORDER BY e.seq LIMIT $3"
        )
    };
}

const EVENT_OF_RUN: Stmt = Stmt::same("event_of_run", select!("e.run_pk = $1 AND e.seq > $2"));
const EVENT_OF_ATTEMPT: Stmt =
    Stmt::same("event_of_attempt", select!("e.token = $1 AND e.token > 0 AND e.seq > $2"));
const EVENT_ALL: Stmt = Stmt::same("event_all", select!("$1 = 0 AND e.seq > $2"));

/// Which events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventsOf {
    All,
    Run(i64),
    Attempt(Token),
}

/// Events after a sequence number, oldest first.
pub async fn page(
    tx: &Tx,
    of: EventsOf,
    after: i64,
    limit: u32,
) -> Result<Vec<Logged>, StoreError> {
    let (stmt, key) = match of {
        EventsOf::All => (&EVENT_ALL, 0),
        EventsOf::Run(run_pk) => (&EVENT_OF_RUN, run_pk),
        EventsOf::Attempt(token) => (&EVENT_OF_ATTEMPT, token.as_i64()),
    };
    let rows = tx.query(stmt, values![key, after, limit]).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("event");
            Ok(Logged {
                seq: c.int()?,
                at: c.time()?,
                kind: c.text()?,
                dag_id: c.opt_text()?,
                run_id: c.opt_text()?,
                task_id: c.opt_text()?,
                map_index: c.opt_number()?,
                token: c.opt_token()?,
                actor: c.text()?,
                from: c.opt_text()?,
                to: c.opt_text()?,
                reason: c.opt_text()?,
                evidence: c.opt_text()?.and_then(|text| serde_json::from_str(&text).ok()),
            })
        })
        .collect()
}

pub(super) const STATEMENTS: &[Stmt] = &[EVENT_INSERT, EVENT_OF_RUN, EVENT_OF_ATTEMPT, EVENT_ALL];
