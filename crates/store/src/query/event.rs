//! The transition log: append-only; it is read by [`super::listing::events`].

use super::occasion::{self, Listening};
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
    /// Who wants to hear of it.
    pub listening: Listening,
}

const EVENT_INSERT: Stmt = Stmt::same(
    "event_insert",
    "INSERT INTO event (at, kind, dag_id, run_pk, task_id, map_index, token, actor, from_state,
                        to_state, reason, evidence)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
)
.batched(
    0,
    "INSERT INTO event (at, kind, dag_id, run_pk, task_id, map_index, token, actor, \
        from_state, to_state, reason, evidence) SELECT * FROM unnest($1::bigint[], \
        $2::text[], $3::text[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], \
        $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])",
);

/// Appends events, and the occasions that they are for those who listen: whoever changes a state
/// writes its line, so nobody can forget a callback.
pub async fn append(tx: &Tx, events: Vec<Event>) -> Result<(), StoreError> {
    tx.note(&events);
    occasion::of_events(tx, &events).await?;
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

pub(super) const STATEMENTS: &[Stmt] = &[EVENT_INSERT];
