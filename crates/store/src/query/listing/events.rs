//! The transition log with filters, oldest first.

use crate::query::event::Logged;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;

/// Which events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    /// Of this run only: found by its index.
    pub run_pk: Option<i64>,
    /// Of this attempt only: found by its index.
    pub token: Option<Token>,
    pub dag_id: String,
    pub task_id: String,
    pub map_index: Option<i32>,
    /// See [`super::words`].
    pub kinds: String,
}

macro_rules! page {
    ($key:literal) => {
        concat!(
            "SELECT e.seq, e.at, e.kind, e.dag_id, r.run_id, e.task_id, e.map_index, e.token, \
             e.actor, e.from_state, e.to_state, e.reason, e.evidence \
             FROM event e LEFT JOIN run r ON r.run_pk = e.run_pk WHERE ",
            $key,
            " AND e.seq > $2 AND ($3 = '' OR e.dag_id = $3) AND ($4 = '' OR e.task_id = $4) \
             AND ($5 = CAST(0 AS BIGINT) OR e.map_index = $6) AND ($7 = '' OR $7 LIKE '%,' || e.kind || ',%') \
             ORDER BY e.seq LIMIT $8"
        )
    };
}

const EVENT_PAGE_OF_RUN: Stmt = Stmt::same("event_page_of_run", page!("e.run_pk = $1"));
const EVENT_PAGE_OF_ATTEMPT: Stmt =
    Stmt::same("event_page_of_attempt", page!("e.token = $1 AND e.token > 0"));
const EVENT_PAGE: Stmt = Stmt::same("event_page", page!("$1 = CAST(0 AS BIGINT)"));

/// Events after a number.
pub async fn page(
    tx: &Tx,
    after: i64,
    filter: &EventFilter,
    limit: u32,
) -> Result<Vec<Logged>, StoreError> {
    let (stmt, key) = match (filter.token, filter.run_pk) {
        (Some(token), _) => (&EVENT_PAGE_OF_ATTEMPT, token.as_i64()),
        (None, Some(run_pk)) => (&EVENT_PAGE_OF_RUN, run_pk),
        (None, None) => (&EVENT_PAGE, 0),
    };
    let values = values![
        key,
        after,
        &filter.dag_id,
        &filter.task_id,
        filter.map_index.is_some(),
        filter.map_index.unwrap_or(0),
        &filter.kinds,
        limit,
    ];
    tx.query(stmt, values).await?.into_iter().map(decode).collect()
}

fn decode(row: Row) -> Result<Logged, StoreError> {
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
}

pub(in crate::query) const STATEMENTS: &[Stmt] =
    &[EVENT_PAGE_OF_RUN, EVENT_PAGE_OF_ATTEMPT, EVENT_PAGE];
