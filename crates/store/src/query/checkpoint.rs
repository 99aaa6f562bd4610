//! Checkpoints: what an attempt leaves for the one that follows it.

use crate::query::task_instance::TiKey;
use crate::{Stmt, StoreError, Tx, values};
use fencepost_core::id::Token;

/// Every statement of this module.
pub(super) const STATEMENTS: &[Stmt] = &[TI_CHECKPOINT_SET, TI_CHECKPOINT_GET];

const TI_CHECKPOINT_SET: Stmt = Stmt::same(
    "ti_checkpoint_set",
    "UPDATE task_instance SET checkpoint = $5
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND token = $4
        AND state IN ('running', 'restarting')",
);

/// Keeps checkpoints of attempts that are current; a late one changes nothing.
pub async fn set(tx: &Tx, checkpoints: &[(TiKey, Token, String)]) -> Result<(), StoreError> {
    let sets = checkpoints
        .iter()
        .map(|(k, token, text)| values![k.run_pk, k.task_index, k.map_index, *token, text])
        .collect();
    tx.execute_many(&TI_CHECKPOINT_SET, sets).await.map(drop)
}

const TI_CHECKPOINT_GET: Stmt = Stmt::same(
    "ti_checkpoint_get",
    "SELECT run_pk, task_index, map_index, checkpoint FROM task_instance
     WHERE run_pk = $1 AND task_index = $2 AND map_index = $3 AND checkpoint IS NOT NULL",
)
.batched(
    0,
    "SELECT u.ord, t.run_pk, t.task_index, t.map_index, t.checkpoint \
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
            WITH ORDINALITY AS u(run_pk, task_index, map_index, ord) \
        JOIN task_instance t ON t.run_pk = u.run_pk AND t.task_index = u.task_index \
            AND t.map_index = u.map_index WHERE t.checkpoint IS NOT NULL ORDER BY u.ord",
);

/// The last checkpoints of instances, of those that have one.
pub async fn get(tx: &Tx, keys: &[TiKey]) -> Result<Vec<(TiKey, String)>, StoreError> {
    let sets = keys.iter().map(|key| values![key.run_pk, key.task_index, key.map_index]).collect();
    let rows = tx.query_many(&TI_CHECKPOINT_GET, sets).await?;
    rows.into_iter()
        .map(|row| {
            let mut c = row.columns("task_instance");
            let key = TiKey { run_pk: c.int()?, task_index: c.number()?, map_index: c.number()? };
            Ok((key, c.text()?))
        })
        .collect()
}
