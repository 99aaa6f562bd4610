//! The instances of a task whose `expand` became known: its one unmapped instance makes way for them;
//! what was expanded before grows, or loses those that are no longer mapped.

use super::{Moved, TiKey};
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::callback::Occasions;
use fencepost_core::state::TiState;

const TI_WIDTH: Stmt = Stmt::same(
    "ti_width",
    "SELECT COUNT(*) FROM task_instance WHERE run_pk = $1 AND task_index = $2",
);

/// How many instances of a task there are.
pub async fn width(tx: &Tx, run_pk: i64, task_index: u32) -> Result<usize, StoreError> {
    let Some(row) = tx.query_opt(&TI_WIDTH, values![run_pk, task_index]).await? else {
        return Ok(0);
    };
    Ok(usize::try_from(row.columns("task_instance").int()?).unwrap_or(0))
}

// What nothing has happened to yet is like its head, but for what it is mapped over.
const TI_GROW: Stmt = Stmt::same(
    "ti_grow",
    "INSERT INTO task_instance (run_pk, task_index, map_index, task_id, dag_id, state, max_tries,
        pool, pool_slots, priority, up_total, up_success, up_failed, up_skipped,
        up_upstream_failed, up_removed, forward_due, recheck, mapped, calls)
     SELECT run_pk, task_index, $4, task_id, dag_id, 'none', max_tries, pool, pool_slots, priority,
        up_total, up_success, up_failed, up_skipped, up_upstream_failed, up_removed, 0, 0, $5,
        calls
     FROM task_instance WHERE run_pk = $1 AND task_index = $2 AND map_index = $3",
)
.batched(
    4,
    "WITH u AS (SELECT t.*, w.grown, w.element, w.ord FROM unnest($1::bigint[], $2::bigint[], \
        $3::bigint[], $4::bigint[], $5::text[]) WITH ORDINALITY AS w(run_pk, task_index, \
        map_index, grown, element, ord) JOIN task_instance t ON t.run_pk = w.run_pk AND \
        t.task_index = w.task_index AND t.map_index = w.map_index), made AS (INSERT INTO \
        task_instance (run_pk, task_index, map_index, task_id, dag_id, state, max_tries, pool, \
        pool_slots, priority, up_total, up_success, up_failed, up_skipped, up_upstream_failed, \
        up_removed, forward_due, recheck, mapped, calls) SELECT run_pk, task_index, grown, task_id, \
        dag_id, 'none', max_tries, pool, pool_slots, priority, up_total, up_success, up_failed, \
        up_skipped, up_upstream_failed, up_removed, 0, 0, element, calls FROM u) SELECT ord FROM u",
);

/// Makes instances like `head`, from the map index `first` on, each mapped over its element (JSON).
pub async fn grow(
    tx: &Tx,
    head: TiKey,
    first: i32,
    elements: Vec<String>,
) -> Result<(), StoreError> {
    let set = |(at, element)| {
        let TiKey { run_pk, task_index, map_index } = head;
        values![run_pk, task_index, map_index, at, element]
    };
    tx.execute_many(&TI_GROW, (first..).zip(elements).map(set).collect()).await.map(drop)
}

const TI_DROP: Stmt = Stmt::same(
    "ti_drop",
    "DELETE FROM task_instance
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND state = 'none' AND attempts = 0",
);

/// Takes an instance away that nothing has happened to.
pub async fn drop_unmapped(tx: &Tx, key: TiKey) -> Result<bool, StoreError> {
    let values = values![key.run_pk, key.task_index, key.map_index];
    Ok(tx.execute(&TI_DROP, values).await? == 1)
}

const TI_REMAP: Stmt = Stmt::same(
    "ti_remap",
    "UPDATE task_instance SET mapped = $4
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND state = 'none'",
)
.batched(
    3,
    "UPDATE task_instance t SET mapped = u.mapped FROM unnest($1::bigint[], $2::bigint[], \
        $3::bigint[], $4::text[]) WITH ORDINALITY AS u(run_pk, task_index, map_index, mapped, ord) \
        WHERE t.run_pk = u.run_pk AND t.task_index = u.task_index AND t.map_index = u.map_index \
        AND t.state = 'none' RETURNING u.ord",
);

/// Gives instances that have not moved, from the map index 0 on, the elements that they are mapped
/// over now.
pub async fn remap(
    tx: &Tx,
    run_pk: i64,
    task_index: u32,
    elements: Vec<String>,
) -> Result<(), StoreError> {
    let set = |(at, element): (i32, String)| values![run_pk, task_index, at, element];
    tx.execute_many(&TI_REMAP, (0..).zip(elements).map(set).collect()).await.map(drop)
}

const TI_REMOVE: Stmt = Stmt::same(
    "ti_remove",
    "UPDATE task_instance SET state = $4, reason = 'not_mapped_any_more', forward_due = 1,
        recheck = 0, ended_at = $5
     WHERE run_pk = $1 AND task_index = $2 AND map_index >= $3 AND state = 'none'
     RETURNING map_index, task_id, dag_id, calls",
);

/// Removes the instances that have not moved from a map index on; those.
pub async fn remove(tx: &Tx, from: TiKey, to: TiState) -> Result<Vec<Moved>, StoreError> {
    let TiKey { run_pk, task_index, map_index } = from;
    let values = values![run_pk, task_index, map_index, to.as_str(), tx.now()];
    let rows = tx.query(&TI_REMOVE, values).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("task_instance");
            let key = TiKey { run_pk, task_index, map_index: c.number()? };
            let (task_id, dag_id) = (c.text()?, c.text()?);
            Ok(Moved { key, task_id, dag_id, calls: Occasions::from_bits(c.int()?) })
        })
        .collect()
}

const TI_ADD_UPSTREAMS: Stmt = Stmt::same(
    "ti_add_upstreams",
    "UPDATE task_instance SET up_total = up_total + $3 WHERE run_pk = $1 AND task_index = $2",
);

/// Tasks of a run have so many upstream instances more.
pub async fn add_upstreams(
    tx: &Tx,
    run_pk: i64,
    tasks: &[u32],
    more: i64,
) -> Result<(), StoreError> {
    for task in tasks {
        tx.execute(&TI_ADD_UPSTREAMS, values![run_pk, *task, more]).await?;
    }
    Ok(())
}

pub(in crate::query) const STATEMENTS: &[Stmt] =
    &[TI_WIDTH, TI_GROW, TI_DROP, TI_REMAP, TI_REMOVE, TI_ADD_UPSTREAMS];
