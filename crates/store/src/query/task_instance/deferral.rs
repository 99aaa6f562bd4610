//! What an instance keeps of its deferrals, and the instances whose timers have fallen due.

use super::{Ti, TiKey, decode_all};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;
use fencepost_core::time::Timestamp;

// The lock is of the instance: whoever decides about a trigger has its instance in hand.
const TI_TIMER_DUE: Stmt = Stmt::same(
    "ti_timer_due",
    concat!(
        "SELECT ",
        columns!("t."),
        " FROM trigger g JOIN task_instance t ON t.run_pk = g.run_pk
            AND t.task_index = g.task_index AND t.map_index = g.map_index AND t.token = g.token
          WHERE g.due_at <= $1 ORDER BY g.due_at, g.token LIMIT $2"
    ),
)
.locking(" FOR UPDATE OF t SKIP LOCKED");

/// Deferred instances with a timer that has fallen due, the oldest first.
pub async fn timer_due(tx: &Tx, limit: u32) -> Result<Vec<Ti>, StoreError> {
    decode_all(tx.query(&TI_TIMER_DUE, values![tx.now(), limit]).await?)
}

/// The try of an instance, as its deferrals are counted: it rises with every retry and clear.
pub const fn era(ti: &Ti) -> i64 {
    ti.try_number as i64 + ti.clears as i64
}

const TI_DEFERRED_SINCE: Stmt = Stmt::same(
    "ti_deferred_since",
    "SELECT deferred_since FROM task_instance WHERE run_pk = $1 AND task_index = $2
        AND map_index = $3 AND deferred_era = $4 AND deferred_since IS NOT NULL",
);

/// When this try was deferred first.
pub async fn deferred_since(tx: &Tx, ti: &Ti) -> Result<Option<Timestamp>, StoreError> {
    let k = ti.key;
    let values = values![k.run_pk, k.task_index, k.map_index, era(ti)];
    let Some(row) = tx.query_opt(&TI_DEFERRED_SINCE, values).await? else { return Ok(None) };
    row.columns("task_instance").opt_time()
}

const TI_DEFER: Stmt = Stmt::same(
    "ti_defer",
    "UPDATE task_instance SET deferred_since = $4, deferred_era = $5, trigger_event = NULL
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3",
);

/// This try is deferred since then; what an earlier deferral brought is forgotten.
pub async fn defer(tx: &Tx, ti: &Ti, since: Timestamp) -> Result<(), StoreError> {
    let k = ti.key;
    let values = values![k.run_pk, k.task_index, k.map_index, since, era(ti)];
    tx.execute(&TI_DEFER, values).await.map(drop)
}

const TI_EVENT_SET: Stmt = Stmt::same(
    "ti_event_set",
    "UPDATE task_instance SET trigger_event = $5
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND token = $4",
)
.batched(
    3,
    "UPDATE task_instance t SET trigger_event = u.event FROM unnest($1::bigint[], $2::bigint[], \
        $3::bigint[], $4::bigint[], $5::text[]) WITH ORDINALITY \
        AS u(run_pk, task_index, map_index, token, event, ord) \
        WHERE t.run_pk = u.run_pk AND t.task_index = u.task_index \
        AND t.map_index = u.map_index AND t.token = u.token RETURNING u.ord",
);

/// What instances that resume are told.
pub async fn set_events(tx: &Tx, events: &[(TiKey, Token, String)]) -> Result<(), StoreError> {
    let sets = events
        .iter()
        .map(|(k, token, event)| values![k.run_pk, k.task_index, k.map_index, *token, event])
        .collect();
    tx.execute_many(&TI_EVENT_SET, sets).await.map(drop)
}

const TI_EVENT_GET: Stmt = Stmt::same(
    "ti_event_get",
    "SELECT trigger_event FROM task_instance WHERE run_pk = $1 AND task_index = $2
        AND map_index = $3 AND deferred_era = $4 AND trigger_event IS NOT NULL",
);

/// What the process of this try is told when it resumes. It stays until the try is over or deferred again, so that
/// whatever replaces a resumed attempt knows it too.
pub async fn event(tx: &Tx, ti: &Ti) -> Result<Option<serde_json::Value>, StoreError> {
    let k = ti.key;
    let values = values![k.run_pk, k.task_index, k.map_index, era(ti)];
    let row = tx.query_opt(&TI_EVENT_GET, values).await?;
    row.map(|row| row.columns("task_instance").json()).transpose()
}

pub(crate) const STATEMENTS: &[Stmt] =
    &[TI_TIMER_DUE, TI_DEFERRED_SINCE, TI_DEFER, TI_EVENT_SET, TI_EVENT_GET];
