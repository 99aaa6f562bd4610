//! Mapped tasks whose elements a template gives: their instances are made when their turn comes.
//!
//! A run begins with one unmapped instance of such a task. Once its rule and its `when` are met, its
//! `expand` is evaluated and the instances take its place, in the transaction that moves them: the
//! downstreams wait for all of them, and so does the run. Cleared as a whole it is evaluated again: it
//! grows, and what is no longer mapped is `removed`, with its history kept.

use crate::Cx;
use crate::catalog::Version;
use crate::error::EngineError;
use crate::facts;
use crate::log;
use fencepost_core::dag::Elements;
use fencepost_core::lifecycle::{TiEvent, ti_next};
use fencepost_core::plan::runs::{NOT_MAPPED, expansion};
use fencepost_core::state::TiState;
use fencepost_store::Tx;
use fencepost_store::query::event;
use fencepost_store::query::run;
use fencepost_store::query::task_instance::{self, Ti, TiKey};
use serde_json::{Map, Value};

/// Instances made in one statement.
const PAGE: usize = 5_000;

/// Makes the instances of the task of a head whose turn has come; how many. A mistake fails the task,
/// and nothing else (I22).
pub(super) async fn expand(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    head: &Ti,
) -> Result<Result<usize, ()>, EngineError> {
    match elements(cx, tx, version, head).await? {
        Ok(elements) => {
            let count = elements.len();
            if count > 0 {
                make(tx, version, head, elements).await?;
            }
            Ok(Ok(count))
        }
        Err(why) => {
            let mut note = log::ti_state(head, head.state, log::SCHEDULER);
            note.kind = "template_error";
            note.reason = Some(why);
            event::append(tx, vec![note]).await?;
            Ok(Err(()))
        }
    }
}

/// What each instance is mapped over.
async fn elements(
    cx: &Cx,
    tx: &Tx,
    version: &Version,
    head: &Ti,
) -> Result<Result<Vec<Map<String, Value>>, String>, EngineError> {
    let run = run::by_pks(tx, &[head.key.run_pk]).await?.into_iter().next();
    let task = version.dag.tasks.get(head.key.task_index as usize);
    let (Some(run), Some(task)) = (run, task) else { return Ok(Err("there is no run".into())) };
    let facts = facts::load(tx, &cx.catalog, run, head.clone()).await?;
    let mut lists = Vec::new();
    for (key, elements) in &task.expand {
        let value = match elements {
            Elements::List(values) => Value::Array(values.clone()),
            Elements::Template(text) => {
                match (cx.env.value)(&format!("expand.{key}"), text, &facts) {
                    Ok(value) => value,
                    Err(why) => return Ok(Err(why)),
                }
            }
        };
        lists.push((key.clone(), value));
    }
    Ok(expansion(&lists).map_err(|error| error.to_string()))
}

async fn make(
    tx: &Tx,
    version: &Version,
    head: &Ti,
    elements: Vec<Map<String, Value>>,
) -> Result<(), EngineError> {
    let TiKey { run_pk, task_index, .. } = head.key;
    let mut texts: Vec<String> =
        elements.into_iter().map(|element| Value::Object(element).to_string()).collect();
    let is_first = head.key.map_index == NOT_MAPPED;
    let before = task_instance::width(tx, run_pk, task_index).await?;
    let known = if is_first { 0 } else { before.min(texts.len()) };
    let fresh = texts.split_off(known);
    if !is_first {
        task_instance::remap(tx, run_pk, task_index, texts).await?;
        remove(tx, TiKey { map_index: index(known), ..head.key }).await?;
    }
    let more = index(fresh.len()) - i32::from(is_first);
    for (page, texts) in (0..).zip(fresh.chunks(PAGE)) {
        let first = index(known + page * PAGE);
        task_instance::grow(tx, head.key, first, texts.to_vec()).await?;
    }
    if is_first {
        task_instance::drop_unmapped(tx, head.key).await?;
    }
    if more != 0 {
        let below = version.downstreams.get(task_index as usize);
        let below: Vec<u32> = below.into_iter().flatten().map(|down| down.0).collect();
        task_instance::add_upstreams(tx, run_pk, &below, more.into()).await?;
        run::count_down(tx, &[(run_pk, -i64::from(more))]).await?;
    }
    Ok(())
}

/// Those beyond the last element, of an expansion before.
async fn remove(tx: &Tx, from: TiKey) -> Result<(), EngineError> {
    let Ok(to) = ti_next(TiState::None, TiEvent::Remove) else { return Ok(()) };
    let removed = task_instance::remove(tx, from, to).await?;
    let line = |moved| log::moved(moved, to, "not_mapped_any_more");
    event::append(tx, removed.iter().map(line).collect()).await?;
    Ok(())
}

fn index(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
