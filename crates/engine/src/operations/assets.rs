//! A person or a system outside emits an event of an asset.

use crate::Cx;
use crate::error::{EngineError, Refusal};
use fencepost_core::asset::EXTRA_MAX;
use fencepost_store::query::asset::{self, NewEvent, view};
use fencepost_store::query::event::{self, Event};
use serde_json::Value;

/// What is emitted.
#[derive(Debug, Clone, PartialEq)]
pub struct Emit {
    pub asset: String,
    pub extra: Value,
    pub by: String,
}

/// Emits an event; its key. An asset that no DAG names is refused: its name is a mistake.
pub async fn emit(cx: &Cx, request: Emit) -> Result<i64, EngineError> {
    if request.extra.to_string().len() > EXTRA_MAX {
        let text = format!("the extra of an event is at most {EXTRA_MAX} bytes");
        return Err(Refusal::Invalid(text).into());
    }
    let tx = cx.store.begin("emit_asset_event").await?;
    if view::get(&tx, &request.asset).await?.is_none() {
        return Err(Refusal::NoAsset(request.asset).into());
    }
    let new = NewEvent {
        asset: request.asset.clone(),
        run_pk: None,
        task_id: String::new(),
        map_index: -1,
        token: 0,
        emitted_by: request.by.clone(),
        extra: request.extra,
    };
    let keys = asset::emit(&tx, &[new]).await?;
    let line = Event {
        kind: "asset_event",
        actor: request.by,
        reason: Some(request.asset),
        ..Event::default()
    };
    event::append(&tx, vec![line]).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(keys.first().copied().unwrap_or_default())
}
