//! Heads of instances that went back to `none`.

use crate::error::EngineError;
use crate::scheduler::MARK_NOW;
use fencepost_store::Tx;
use fencepost_store::query::task_instance::{self, TiKey};
use std::collections::BTreeSet;

/// Marks the heads of instances that went back to `none`.
pub(crate) async fn mark_heads(tx: &Tx, keys: &[TiKey]) -> Result<(), EngineError> {
    let tasks: BTreeSet<(i64, u32)> = keys.iter().map(|key| (key.run_pk, key.task_index)).collect();
    let tasks: Vec<(i64, u32)> = tasks.into_iter().collect();
    let heads = task_instance::heads(tx, &tasks).await?;
    let marks: Vec<(TiKey, u32)> = heads.iter().map(|head| (head.key, MARK_NOW)).collect();
    task_instance::set_recheck(tx, &marks).await?;
    Ok(())
}
