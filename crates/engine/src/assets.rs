//! Events of assets: who emits them, and what a run that they made is told.
//!
//! A task instance that succeeds by itself emits one event of each of its outlets, in the transaction of its success:
//! whatever crashes, there is one of each for every accepted success (I7). A success that a person marks is
//! nobody's product and emits nothing. The scheduler makes the runs (`scheduler/assets.rs`).

use crate::Cx;
use crate::catalog::Version;
use crate::error::EngineError;
use fencepost_core::asset::{EXTRA_MAX, EXTRA_OUTPUT};
use fencepost_core::id::Token;
use fencepost_core::state::{RunType, TiState};
use fencepost_store::Tx;
use fencepost_store::query::asset::{self, AssetEvent, NewEvent, uses};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{Ti, TiChange, TiKey};
use serde_json::{Map, Value, json};

/// Events that a run's tasks are told of at most, and the bytes of what they say: the newest.
const TOLD: u32 = 1_000;
const TOLD_BYTES: usize = 256 << 10;

/// Successes of one transaction, and what they produced.
#[derive(Debug, Default)]
pub(crate) struct Emissions {
    events: Vec<NewEvent>,
    lines: Vec<Event>,
    /// Those of runs whose version cannot be read here.
    unread: Vec<Unread>,
}

/// A success whose version this process cannot read: an older one beside a newer one, mostly.
#[derive(Debug)]
struct Unread {
    key: TiKey,
    dag_id: String,
    task_id: String,
    token: Option<Token>,
    extra: Value,
    actor: String,
}

/// Which instance succeeded.
pub(crate) struct Producer<'a> {
    pub(crate) key: TiKey,
    pub(crate) dag_id: &'a str,
    pub(crate) task_id: &'a str,
    pub(crate) token: Option<Token>,
}

impl<'a> Producer<'a> {
    pub(crate) fn of(ti: &'a Ti) -> Self {
        Self { key: ti.key, dag_id: &ti.dag_id, task_id: &ti.task_id, token: ti.token }
    }
}

impl Emissions {
    /// An instance has succeeded: one event for each of its outlets.
    pub(crate) fn succeeded(
        &mut self,
        version: Option<&Version>,
        of: &Producer<'_>,
        outputs: &[(String, Value)],
        actor: &str,
    ) {
        match version {
            Some(version) => {
                let task = version.dag.tasks.get(of.key.task_index as usize);
                let outlets = task.map_or(&[][..], |task| &task.outlets);
                self.emit(outlets, of, &extra(outputs), actor);
            }
            None => self.unread.push(Unread {
                key: of.key,
                dag_id: of.dag_id.into(),
                task_id: of.task_id.into(),
                token: of.token,
                extra: extra(outputs),
                actor: actor.into(),
            }),
        }
    }

    fn emit(&mut self, outlets: &[String], of: &Producer<'_>, extra: &Value, actor: &str) {
        for name in outlets {
            let token = of.token.map_or(0, Token::as_i64);
            self.events.push(NewEvent {
                asset: name.clone(),
                run_pk: Some(of.key.run_pk),
                task_id: of.task_id.into(),
                map_index: of.key.map_index,
                token,
                emitted_by: actor.into(),
                extra: extra.clone(),
            });
            self.lines.push(Event {
                kind: "asset_event",
                dag_id: Some(of.dag_id.into()),
                run_pk: Some(of.key.run_pk),
                task_id: Some(of.task_id.into()),
                map_index: Some(of.key.map_index),
                token: of.token,
                actor: actor.into(),
                reason: Some(name.clone()),
                ..Event::default()
            });
        }
    }

    /// Writes the events. What a version that cannot be read names is taken from what its DAG's newest one
    /// names: an event too few would hold up others for ever.
    pub(crate) async fn write(mut self, tx: &Tx) -> Result<(), EngineError> {
        for one in std::mem::take(&mut self.unread) {
            let outlets = uses::outlets(tx, &one.dag_id, &one.task_id).await?;
            let Unread { key, dag_id, task_id, token, extra, actor } = &one;
            let of = Producer { key: *key, dag_id, task_id, token: *token };
            self.emit(&outlets, &of, extra, actor);
        }
        if self.events.is_empty() {
            return Ok(());
        }
        asset::emit(tx, &self.events).await?;
        event::append(tx, self.lines).await?;
        Ok(())
    }
}

/// What the task says about what it wrote: its output of that name.
fn extra(outputs: &[(String, Value)]) -> Value {
    let given = outputs.iter().rfind(|(name, _)| name == EXTRA_OUTPUT).map(|(_, value)| value);
    match given {
        None => json!({}),
        Some(value) => {
            let size = value.to_string().len();
            let left_out = || json!({ "left_out": format!("{size} bytes; at most {EXTRA_MAX}") });
            if size > EXTRA_MAX { left_out() } else { value.clone() }
        }
    }
}

/// Emits for instances that nobody's process ended: waits.
pub(crate) async fn emit_for(
    cx: &Cx,
    tx: &Tx,
    changes: &[&TiChange],
    actor: &str,
) -> Result<(), EngineError> {
    let done: Vec<&Ti> =
        changes.iter().map(|change| &change.to).filter(|ti| ti.state == TiState::Success).collect();
    let mut pks: Vec<i64> = done.iter().map(|ti| ti.key.run_pk).collect();
    pks.sort_unstable();
    pks.dedup();
    let mut emissions = Emissions::default();
    for run in run::by_pks(tx, &pks).await? {
        let version = match cx.catalog.version(tx, run.version_pk).await {
            Ok(version) => Some(version),
            Err(error) => {
                error.of_one_version()?;
                None
            }
        };
        for ti in done.iter().filter(|ti| ti.key.run_pk == run.run_pk) {
            emissions.succeeded(version.as_deref(), &Producer::of(ti), &[], actor);
        }
    }
    emissions.write(tx).await
}

/// What made a run, as its tasks are told: by asset a list of events, oldest first (Airflow's
/// `triggering_asset_events`). Empty unless events made it.
pub async fn triggering(tx: &Tx, run: &Run) -> Result<Map<String, Value>, EngineError> {
    let mut told = Map::new();
    if run.run_type != RunType::AssetTriggered {
        return Ok(told);
    }
    let (mut bytes, mut newest) = (0, Vec::new());
    for one in asset::of_run(tx, run.run_pk, TOLD).await?.into_iter().rev() {
        let shown = shown(&one);
        bytes += shown.to_string().len();
        if bytes > TOLD_BYTES && !newest.is_empty() {
            break;
        }
        newest.push((one.asset, shown));
    }
    for (asset, shown) in newest.into_iter().rev() {
        let list = told.entry(asset).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(shown);
        }
    }
    Ok(told)
}

/// An event as tasks see it, in Airflow's words.
pub(crate) fn shown(one: &AssetEvent) -> Value {
    let mut out = Map::from_iter([
        ("asset".to_owned(), json!(one.asset)),
        ("timestamp".to_owned(), json!(one.at.to_string())),
        ("extra".to_owned(), one.extra.clone()),
    ]);
    if one.dag_id.is_empty() {
        out.insert("emitted_by".into(), json!(one.emitted_by));
    } else {
        out.insert("source_dag_id".into(), json!(one.dag_id));
        out.insert("source_run_id".into(), json!(one.run_id));
        out.insert("source_task_id".into(), json!(one.task_id));
        out.insert("source_map_index".into(), json!(one.map_index));
    }
    Value::Object(out)
}
