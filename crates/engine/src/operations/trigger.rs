//! A person or a system triggers a run.

use crate::Cx;
use crate::error::{EngineError, Refusal};
use crate::log;
use crate::scheduler::default_params;
use fencepost_core::dag::Dag;
use fencepost_core::id::RunId;
use fencepost_core::params;
use fencepost_core::schedule::Calendar;
use fencepost_core::state::RunType;
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::dag;
use fencepost_store::query::event;
use fencepost_store::query::run::{self, NewRun, Run};
use serde_json::{Map, Value};

/// When a triggered run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogicalDate {
    /// The instant of the trigger.
    #[default]
    Now,
    At(Timestamp),
    None,
}

/// What to trigger.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TriggerRequest {
    pub dag_id: String,
    pub run_id: Option<String>,
    pub logical_date: LogicalDate,
    pub params: Map<String, Value>,
    pub conf: Value,
    pub note: Option<String>,
    pub by: String,
}

/// Makes a queued run.
pub async fn trigger(cx: &Cx, request: TriggerRequest) -> Result<Run, EngineError> {
    let tx = cx.store.begin("trigger").await?;
    let run = make_run(cx, &tx, request).await?;
    tx.commit().await?;
    cx.wakes.engine();
    Ok(run)
}

/// Makes a queued run within a transaction; a refusal has no effect.
pub(crate) async fn make_run(
    cx: &Cx,
    tx: &Tx,
    request: TriggerRequest,
) -> Result<Run, EngineError> {
    let row = dag::get(tx, &request.dag_id)
        .await?
        .ok_or_else(|| Refusal::NoDag(request.dag_id.clone()))?;
    if !row.is_active {
        return Err(Refusal::Inactive(request.dag_id).into());
    }
    let version = cx.catalog.version(tx, row.version_pk).await?;
    let params = merge_params(&version.dag, &request.params)?;
    let now = tx.now();
    let logical_date = match request.logical_date {
        LogicalDate::Now => Some(now),
        LogicalDate::At(at) => Some(at),
        LogicalDate::None => None,
    };
    let run_id = match &request.run_id {
        Some(given) => {
            RunId::new(given.as_str()).map_err(|e| Refusal::Invalid(e.to_string()))?.to_string()
        }
        None => format!("manual__{now}_{}", letters((cx.env.random)())),
    };
    let new = NewRun {
        dag_id: request.dag_id.clone(),
        run_id: run_id.clone(),
        version_pk: row.version_pk,
        run_type: RunType::Manual,
        logical_date,
        interval: logical_date.map(|at| interval(&version.dag, at)),
        run_after: now,
        conf: if request.conf.is_null() { Value::Object(Map::new()) } else { request.conf },
        params,
        note: request.note,
        triggered_by: request.by.clone(),
        calls: version.dag.calls(),
        alert_at: version.dag.alert_at(RunType::Manual, now, now),
    };
    let made = run::insert(tx, &[new]).await?;
    let found = super::find_run(tx, &request.dag_id, &run_id).await?;
    if made != [true] {
        return Err(Refusal::RunExists { dag_id: request.dag_id, run_id }.into());
    }
    let line = log::run(&found, "run_created", "queued", &request.by, "manual");
    event::append(tx, vec![line]).await?;
    Ok(found)
}

/// The data interval that a date lies in; without a schedule it is empty.
fn interval(dag: &Dag, at: Timestamp) -> (Timestamp, Timestamp) {
    let newest = Calendar::new(&dag.timing).ok().and_then(|calendar| calendar.newest_due(at));
    newest.map_or((at, at), |slot| (slot.interval_start, slot.interval_end))
}

/// The DAG's defaults with the given values over them, each checked against its schema.
pub(super) fn merge_params(dag: &Dag, given: &Map<String, Value>) -> Result<Value, EngineError> {
    let Value::Object(mut params) = default_params(dag) else { return Ok(Value::Null) };
    for (name, value) in given {
        let Some(param) = dag.params.iter().find(|param| param.name == *name) else {
            let known: Vec<&str> = dag.params.iter().map(|p| p.name.as_str()).collect();
            let text = if known.is_empty() {
                format!("unknown param `{name}`: the DAG has none")
            } else {
                format!("unknown param `{name}`: the DAG has {}", known.join(", "))
            };
            return Err(Refusal::Invalid(text).into());
        };
        params::check(value, &param.schema)
            .map_err(|why| Refusal::Invalid(format!("param `{name}`: {why}")))?;
        params.insert(name.clone(), value.clone());
    }
    Ok(Value::Object(params))
}

/// Four letters that tell runs of one millisecond apart.
pub(crate) fn letters(random: u64) -> String {
    (0..4).map(|i| char::from(b'a' + u8::try_from((random >> (i * 8)) % 26).unwrap_or(0))).collect()
}
