//! Occasions: what happened and somebody wants to hear of. Written with the line of the log that says
//! so, in the transaction in which it happened; taken away by the one that writes the callbacks.

use crate::query::event::Event;
use crate::{Row, Stmt, StoreError, Tx, values};
use fencepost_core::callback::{Occasion, Occasions, raised};
use fencepost_core::id::Token;
use fencepost_core::time::Timestamp;

/// Who wants to hear of what a line of the log says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Listening {
    pub calls: Occasions,
    /// `None`: about the run.
    pub task_index: Option<u32>,
    pub try_number: u32,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    pub at: Timestamp,
    pub occasion: Occasion,
    pub run_pk: i64,
    /// `None`: to the run.
    pub task_index: Option<u32>,
    pub map_index: i32,
    pub token: Option<Token>,
    pub try_number: u32,
    pub reason: Option<String>,
    pub evidence: Option<serde_json::Value>,
}

const OCCASION_INSERT: Stmt = Stmt::same(
    "occasion_insert",
    "INSERT INTO occasion (at, name, run_pk, task_index, map_index, token, try_number, reason,
        evidence)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
)
.batched(
    0,
    "INSERT INTO occasion (at, name, run_pk, task_index, map_index, token, try_number, reason, \
        evidence) SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], \
        $5::bigint[], $6::bigint[], $7::bigint[], $8::text[], $9::text[])",
);

/// The occasions that lines of the log are, for those who listen. No statement where nobody does.
pub(super) async fn of_events(tx: &Tx, events: &[Event]) -> Result<(), StoreError> {
    let mut sets = Vec::new();
    for event in events.iter().filter(|event| !event.listening.calls.is_empty()) {
        let Some(run_pk) = event.run_pk else { continue };
        let Listening { calls, task_index, try_number } = event.listening;
        for occasion in raised(event.kind, event.from, event.to) {
            if calls.has(occasion) {
                sets.push(values![
                    tx.now(),
                    occasion.as_str(),
                    run_pk,
                    task_index.map_or(-1, i64::from),
                    event.map_index.unwrap_or(-1),
                    event.token.map_or(0, Token::as_i64),
                    try_number,
                    event.reason.clone(),
                    event.evidence.as_ref().map(ToString::to_string),
                ]);
            }
        }
    }
    if sets.is_empty() {
        return Ok(());
    }
    tx.execute_many(&OCCASION_INSERT, sets).await.map(drop)
}

const OCCASION_PEEK: Stmt = Stmt::same(
    "occasion_peek",
    "SELECT id, at, name, run_pk, task_index, map_index, token, try_number, reason, evidence
     FROM occasion WHERE id > $1 ORDER BY id LIMIT $2",
);

/// The oldest occasions after that one.
pub async fn peek(tx: &Tx, after: i64, limit: u32) -> Result<Vec<(i64, Happened)>, StoreError> {
    tx.query(&OCCASION_PEEK, values![after, limit]).await?.into_iter().map(decode).collect()
}

const OCCASION_REMOVE: Stmt = Stmt::same("occasion_remove", "DELETE FROM occasion WHERE id = $1")
    .batched(
        1,
        "DELETE FROM occasion o USING unnest($1::bigint[]) WITH ORDINALITY AS u(id, ord) \
            WHERE o.id = u.id RETURNING u.ord",
    );

/// Takes occasions away; for each whether nobody else had.
pub async fn remove(tx: &Tx, ids: &[i64]) -> Result<Vec<bool>, StoreError> {
    let sets = ids.iter().map(|id| values![*id]).collect();
    let gone = tx.execute_many(&OCCASION_REMOVE, sets).await?;
    Ok(gone.into_iter().map(|n| n == 1).collect())
}

fn decode(row: Row) -> Result<(i64, Happened), StoreError> {
    let mut c = row.columns("occasion");
    let id = c.int()?;
    let happened = Happened {
        at: c.time()?,
        occasion: c.named(Occasion::parse)?,
        run_pk: c.int()?,
        task_index: u32::try_from(c.int()?).ok(),
        map_index: c.number()?,
        token: c.opt_token()?,
        try_number: c.number()?,
        reason: c.opt_text()?,
        evidence: c.opt_text()?.and_then(|text| serde_json::from_str(&text).ok()),
    };
    Ok((id, happened))
}

const OCCASION_ANY: Stmt = Stmt::same(
    "occasion_any",
    "SELECT CAST(CASE WHEN EXISTS (SELECT 1 FROM occasion WHERE id > $1) THEN 1 ELSE 0 END AS BIGINT)",
);

/// Whether there is any after that one.
pub async fn any(tx: &Tx, after: i64) -> Result<bool, StoreError> {
    let Some(row) = tx.query_opt(&OCCASION_ANY, values![after]).await? else { return Ok(false) };
    row.columns("occasion").flag()
}

pub(super) const STATEMENTS: &[Stmt] =
    &[OCCASION_INSERT, OCCASION_PEEK, OCCASION_REMOVE, OCCASION_ANY];
