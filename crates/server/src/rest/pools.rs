//! Pools.

use super::answer::{Answer, Done};
use super::call::Call;
use super::cursor;
use super::dag_view::narrow;
use super::runs::check_text;
use fencepost_api::rest::{ListQuery, Pool, PoolPut};
use fencepost_engine::error::Refusal;
use fencepost_engine::operations::pools::{self, PoolChange};
use fencepost_store::query::listing::pools::{PoolUse, get, page};

pub(super) async fn list(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let [after] = cursor::read("pools", query.cursor.as_deref())?.unwrap_or_default();
    let tx = call.read().await?;
    let found = page(&tx, &after, limit + 1).await?;
    let (found, next) = cursor::cut(found, limit, |pool| cursor::write("pools", &[&pool.name]));
    Answer::ok(&cursor::page(found.into_iter().map(wire).collect(), next))
}

pub(super) async fn show(call: &Call) -> Done {
    let tx = call.read().await?;
    let found = get(&tx, call.arg(0)).await?;
    let found = found.ok_or_else(|| Refusal::NoPool(call.arg(0).into()))?;
    Answer::ok(&wire(found))
}

pub(super) async fn put(call: &Call) -> Done {
    let body: PoolPut = call.body()?;
    check_text("/description", body.description.as_deref())?;
    let change = PoolChange { slots: body.slots, description: body.description };
    let pool = pools::set(call.cx(), call.arg(0), &change, call.by()).await?;
    Answer::ok(&wire(pool))
}

pub(super) async fn delete(call: &Call) -> Done {
    pools::delete(call.cx(), call.arg(0), call.by()).await?;
    Ok(Answer::nothing())
}

fn wire(pool: PoolUse) -> Pool {
    Pool {
        name: pool.name,
        slots: narrow(pool.slots),
        description: pool.description,
        used_slots: narrow(pool.held),
        waiting: narrow(pool.waiting),
    }
}
