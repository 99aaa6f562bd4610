//! Assets: list, show, events, emit.

use super::answer::{Answer, Done};
use super::call::Call;
use super::cursor;
use super::dag_view::{narrow, time};
use super::failure::Failure;
use fencepost_api::rest::{
    Asset, AssetConsumer, AssetDetail, AssetEmit, AssetEvent, AssetEventsQuery, AssetSource,
    AssetTaker, AssetTask, ListQuery,
};
use fencepost_engine::error::Refusal;
use fencepost_engine::operations::assets::{self, Emit};
use fencepost_store::Tx;
use fencepost_store::query::asset::{self, uses, view};
use serde_json::{Value, json};

/// Uses of one asset that are shown.
const USES: u32 = 1_000;

pub(super) async fn list(call: &Call) -> Done {
    let query: ListQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let [after] = cursor::read("assets", query.cursor.as_deref())?.unwrap_or_default();
    let tx = call.read().await?;
    let found = view::page(&tx, &after, limit + 1).await?;
    let (found, next) = cursor::cut(found, limit, |one| cursor::write("assets", &[&one.name]));
    Answer::ok(&cursor::page(found.into_iter().map(wire).collect(), next))
}

fn wire(of: view::Asset) -> Asset {
    Asset {
        name: of.name,
        producers: narrow(of.producers),
        consumers: narrow(of.consumers),
        last_event_at: time(of.last_event_at),
    }
}

pub(super) async fn show(call: &Call) -> Done {
    let name = call.arg(0);
    let tx = call.read().await?;
    let found = view::get(&tx, name).await?.ok_or_else(|| Refusal::NoAsset(name.into()))?;
    let (mut producers, mut inlets, mut consumers) = (Vec::new(), Vec::new(), Vec::new());
    for of in uses::of_asset(&tx, name, USES).await? {
        match of.role.as_str() {
            "consumer" => consumers.push(consumer(&tx, name, of.dag_id).await?),
            "inlet" => inlets.push(AssetTask { dag_id: of.dag_id, task_id: of.task_id }),
            _ => producers.push(AssetTask { dag_id: of.dag_id, task_id: of.task_id }),
        }
    }
    let last_event_at = time(found.last_event_at);
    Answer::ok(&AssetDetail { name: found.name, producers, consumers, inlets, last_event_at })
}

async fn consumer(tx: &Tx, name: &str, dag_id: String) -> Result<AssetConsumer, Failure> {
    let queued = asset::queued(tx, &dag_id).await?;
    let queued = queued.iter().find(|one| one.asset == name).map_or(0, |one| one.count);
    Ok(AssetConsumer { dag_id, queued: u64::try_from(queued).unwrap_or(0) })
}

pub(super) async fn events(call: &Call) -> Done {
    let query: AssetEventsQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let before = match cursor::read::<1>("asset_events", query.cursor.as_deref())? {
        Some([key]) => cursor::number(&key)?,
        None => i64::MAX,
    };
    let of = query.asset.as_deref().filter(|asset| !asset.is_empty());
    let tx = call.read().await?;
    let found = view::events(&tx, of, before, limit + 1).await?;
    let place =
        |one: &asset::AssetEvent| cursor::write("asset_events", &[&one.event_pk.to_string()]);
    let (found, next) = cursor::cut(found, limit, place);
    Answer::ok(&cursor::page(wire_events(&tx, found).await?, next))
}

async fn wire_events(tx: &Tx, found: Vec<asset::AssetEvent>) -> Result<Vec<AssetEvent>, Failure> {
    let keys: Vec<i64> = found.iter().map(|one| one.event_pk).collect();
    let takers = view::takers(tx, &keys).await?;
    let of_event = |one: asset::AssetEvent| {
        let own = takers.iter().filter(|(key, ..)| *key == one.event_pk);
        let queued_for = own.map(|(_, dag_id, run_id)| AssetTaker {
            dag_id: dag_id.clone(),
            run_id: Some(run_id.clone()).filter(|id| !id.is_empty()),
        });
        let source = AssetSource {
            dag_id: one.dag_id,
            run_id: one.run_id,
            task_id: one.task_id,
            map_index: one.map_index,
        };
        AssetEvent {
            id: u64::try_from(one.event_pk).unwrap_or(0),
            asset: one.asset,
            at: one.at.to_string(),
            source: Some(source).filter(|source| !source.dag_id.is_empty()),
            emitted_by: one.emitted_by,
            extra: one.extra,
            queued_for: queued_for.collect(),
        }
    };
    Ok(found.into_iter().map(of_event).collect())
}

pub(super) async fn emit(call: &Call) -> Done {
    let body: AssetEmit = call.body()?;
    let extra = match body.extra {
        Value::Null => json!({}),
        Value::Object(_) => body.extra,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err(Failure::field("/extra", "must be an object"));
        }
    };
    let request = Emit { asset: call.arg(0).into(), extra, by: call.by().into() };
    let key = assets::emit(call.cx(), request).await?;
    let tx = call.read().await?;
    let found = view::events(&tx, None, key.saturating_add(1), 1).await?;
    let made = wire_events(&tx, found).await?.into_iter().next();
    Answer::with_status(201, &made)
}
