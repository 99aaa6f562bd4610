//! Pools: how much of something may be used at once.

use crate::Cx;
use crate::error::{EngineError, Refusal};
use fencepost_core::id::PoolName;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::listing::pools::{self, PoolUse};
use fencepost_store::query::pool;

/// The pool of tasks that name none; it cannot be deleted.
pub const DEFAULT_POOL: &str = "default_pool";

/// What a pool is to be; `None` stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolChange {
    /// Must be there for a new pool.
    pub slots: Option<u32>,
    pub description: Option<String>,
}

/// Makes a pool or changes one.
pub async fn set(
    cx: &Cx,
    name: &str,
    change: &PoolChange,
    by: &str,
) -> Result<PoolUse, EngineError> {
    let name = PoolName::new(name).map_err(|error| Refusal::Invalid(error.to_string()))?;
    let name = name.as_str();
    let tx = cx.store.begin("set_pool").await?;
    let before = pools::get(&tx, name).await?;
    let slots = change.slots.map(i64::from).or(before.as_ref().map(|pool| pool.slots));
    let Some(slots) = slots else {
        return Err(Refusal::Invalid(format!("pool `{name}` is new: say how many slots")).into());
    };
    let kept = || before.as_ref().map(|pool| pool.description.clone()).unwrap_or_default();
    let description = change.description.clone().unwrap_or_else(kept);
    pool::set(&tx, name, slots, &description).await?;
    let was = before.as_ref().map_or_else(|| "none".into(), |pool| pool.slots.to_string());
    let text = format!("{name}: {was} -> {slots} slots");
    event::append(&tx, vec![line("pool_set", by, text)]).await?;
    let after = pools::get(&tx, name).await?;
    tx.commit().await?;
    cx.wakes.engine();
    after.ok_or_else(|| Refusal::NoPool(name.into()).into())
}

/// Removes a pool that nothing holds.
pub async fn delete(cx: &Cx, name: &str, by: &str) -> Result<(), EngineError> {
    let tx = cx.store.begin("delete_pool").await?;
    if pools::get(&tx, name).await?.is_none() {
        return Err(Refusal::NoPool(name.into()).into());
    }
    if name == DEFAULT_POOL || !pool::delete(&tx, name).await? {
        return Err(Refusal::PoolInUse(name.into()).into());
    }
    event::append(&tx, vec![line("pool_deleted", by, name.into())]).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(())
}

fn line(kind: &'static str, by: &str, reason: String) -> Event {
    Event { kind, actor: by.into(), reason: Some(reason), ..Event::default() }
}
