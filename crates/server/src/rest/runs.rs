//! Runs: trigger, list, show, stop, pause, note, delete.

use super::answer::{Answer, Done};
use super::call::{Call, instant, states};
use super::failure::Failure;
use super::{cursor, run_view};
use fencepost_api::problem::FieldError;
use fencepost_api::rest::routes::RUN_SHOW;
use fencepost_api::rest::{Action, Run, RunPatch, RunQuery, TriggerRun};
use fencepost_core::params;
use fencepost_core::state::{RunState, RunType};
use fencepost_core::time::Timestamp;
use fencepost_engine::Cx;
use fencepost_engine::error::Refusal;
use fencepost_engine::operations::find_run;
use fencepost_engine::operations::run_control;
use fencepost_engine::operations::trigger::{self, LogicalDate, TriggerRequest};
use fencepost_store::Tx;
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::listing::runs::{self, Place, RunFilter};
use fencepost_store::query::run;
use serde_json::{Map, Value};

/// Longest reason and note.
const TEXT_MAX: usize = 10_000;

pub(super) async fn trigger(call: &Call) -> Done {
    let body: TriggerRun = call.body()?;
    let logical_date = logical_date(body.logical_date.as_deref())?;
    if !matches!(body.conf, Value::Null | Value::Object(_)) {
        return Err(Failure::field("/conf", "must be an object"));
    }
    check_text("/note", body.note.as_deref())?;
    check_params(call, &body.params).await?;
    let request = TriggerRequest {
        dag_id: call.arg(0).into(),
        run_id: call.run_id.clone().or(body.run_id),
        logical_date,
        params: body.params,
        conf: body.conf,
        note: body.note,
        by: call.by().into(),
    };
    let made = trigger::trigger(call.cx(), request).await?;
    accepted(call, &made.run_id).await
}

fn logical_date(text: Option<&str>) -> Result<LogicalDate, Failure> {
    match text {
        None => Ok(LogicalDate::Now),
        Some("none") => Ok(LogicalDate::None),
        Some(text) => text
            .parse()
            .map(LogicalDate::At)
            .map_err(|error| Failure::field("/logical_date", format!("{error}, or none"))),
    }
}

/// Refuses long texts before they come into the store.
pub(super) fn check_text(pointer: &str, text: Option<&str>) -> Result<(), Failure> {
    if text.is_some_and(|text| text.len() > TEXT_MAX) {
        return Err(Failure::field(pointer, format!("at most {TEXT_MAX} bytes")));
    }
    Ok(())
}

/// Every mistake in the params, each at its place; the engine checks again in its transaction.
async fn check_params(call: &Call, given: &Map<String, Value>) -> Result<(), Failure> {
    if given.is_empty() {
        return Ok(());
    }
    let tx = call.read().await?;
    let row = super::dags::find(&tx, call.arg(0)).await?;
    let version = call.cx().catalog.version(&tx, row.version_pk).await?;
    let known = &version.dag.params;
    let names: Vec<&str> = known.iter().map(|param| param.name.as_str()).collect();
    let mut errors = Vec::new();
    for (name, value) in given {
        let pointer = format!("/params/{}", name.replace('~', "~0").replace('/', "~1"));
        let (message, suggestion) = match known.iter().find(|param| param.name == *name) {
            None if names.is_empty() => (format!("unknown: `{}` has no params", row.dag_id), None),
            None => ("unknown".into(), Some(format!("it has {}", names.join(", ")))),
            Some(param) => match params::check(value, &param.schema) {
                Ok(()) => continue,
                Err(misfit) => (misfit.to_string(), None),
            },
        };
        errors.push(FieldError { pointer, message, suggestion });
    }
    if errors.is_empty() { Ok(()) } else { Err(Failure::fields(errors)) }
}

/// The id of a run that nobody named.
pub(super) fn new_run_id(cx: &Cx) -> String {
    let random = (cx.env.random)();
    let letter = |i: u32| char::from(b'a' + u8::try_from((random >> (i * 8)) % 26).unwrap_or(0));
    let letters: String = (0..4).map(letter).collect();
    format!("manual__{}_{letters}", cx.store.clock().now())
}

/// 202 with a run that was made.
pub(super) async fn accepted(call: &Call, run_id: &str) -> Done {
    let run = wire(call, call.arg(0), run_id).await?;
    let location = Some(RUN_SHOW.url(&[&run.dag_id, &run.run_id]));
    Ok(Answer { location, ..Answer::with_status(202, &run)? })
}

/// Where the run in a kept answer is.
pub(super) fn location_of(body: &str) -> Option<String> {
    let run: Value = serde_json::from_str(body).ok()?;
    Some(RUN_SHOW.url(&[run["dag_id"].as_str()?, run["run_id"].as_str()?]))
}

async fn wire(call: &Call, dag_id: &str, run_id: &str) -> Result<Run, Failure> {
    let tx = call.read().await?;
    let found = find_run(&tx, dag_id, run_id).await?;
    let no_run = || Refusal::NoRun { dag_id: dag_id.into(), run_id: run_id.into() };
    Ok(run_view::runs(call, &tx, vec![found]).await?.pop().ok_or_else(no_run)?)
}

pub(super) async fn show(call: &Call) -> Done {
    Answer::ok(&wire(call, call.arg(0), call.arg(1)).await?)
}

fn filter(query: &RunQuery) -> Result<RunFilter, Failure> {
    let from = instant("from", query.from.as_deref())?;
    let to = instant("to", query.to.as_deref())?;
    let run_type = query.run_type.clone().unwrap_or_default();
    if !run_type.is_empty() && RunType::parse(&run_type).is_none() {
        return Err(Failure::field("?run_type", format!("`{run_type}` is not a type of run")));
    }
    let ever = |at: Option<Timestamp>, end| at.unwrap_or(Timestamp::from_micros(end));
    let dates =
        (from.is_some() || to.is_some()).then(|| (ever(from, i64::MIN), ever(to, i64::MAX)));
    Ok(RunFilter {
        states: states("state", query.state.as_deref(), RunState::parse)?,
        run_type,
        prefix: query.run_id_prefix.clone().unwrap_or_default(),
        dates,
    })
}

pub(super) async fn list(call: &Call) -> Done {
    let query: RunQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let before = place("runs", query.cursor.as_deref())?;
    let filter = filter(&query)?;
    let tx = call.read().await?;
    let row = super::dags::find(&tx, call.arg(0)).await?;
    let found = runs::page_of_dag(&tx, &row.dag_id, before, &filter, limit + 1).await?;
    page(call, &tx, ("runs", limit), found).await
}

pub(super) async fn list_all(call: &Call) -> Done {
    let query: RunQuery = call.query()?;
    let limit = cursor::limit(query.limit);
    let (_, before) = place("all-runs", query.cursor.as_deref())?;
    let filter = filter(&query)?;
    let tx = call.read().await?;
    let found = runs::page(&tx, before, &filter, limit + 1).await?;
    page(call, &tx, ("all-runs", limit), found).await
}

fn place(list: &str, text: Option<&str>) -> Result<Place, Failure> {
    Ok(match cursor::read::<2>(list, text)? {
        Some([at, key]) => (Timestamp::from_micros(cursor::number(&at)?), cursor::number(&key)?),
        None => (Timestamp::from_micros(i64::MAX), i64::MAX),
    })
}

async fn page(call: &Call, tx: &Tx, (list, limit): (&str, u32), found: Vec<Place>) -> Done {
    let (found, next) = cursor::cut(found, limit, |(at, key)| {
        cursor::write(list, &[&at.as_micros().to_string(), &key.to_string()])
    });
    let keys: Vec<i64> = found.into_iter().map(|(_, key)| key).collect();
    let rows = run::by_pks(tx, &keys).await?;
    Answer::ok(&cursor::page(run_view::runs(call, tx, rows).await?, next))
}

pub(super) async fn patch(call: &Call) -> Done {
    let patch: RunPatch = call.body()?;
    check_text("/note", patch.note.as_deref())?;
    if let Some(note) = &patch.note {
        run_control::note_run(call.cx(), call.arg(0), call.arg(1), note).await?;
    }
    show(call).await
}

pub(super) async fn delete(call: &Call) -> Done {
    let (dag_id, run_id) = (call.arg(0), call.arg(1));
    let found = {
        let tx = call.read().await?;
        find_run(&tx, dag_id, run_id).await?
    };
    // The engine refuses what runs; a queued run is cancelled first, so that nobody misses it.
    if found.state == RunState::Queued {
        let what = format!("run `{run_id}`");
        return Err(Refusal::StillActive { what, state: found.state.to_string() }.into());
    }
    run_control::delete_run(call.cx(), dag_id, run_id, call.by()).await?;
    Ok(Answer::nothing())
}

pub(super) async fn cancel(call: &Call, kill: bool) -> Done {
    let action: Action = call.body()?;
    check_text("/reason", action.reason.as_deref())?;
    let (dag_id, run_id) = (call.arg(0), call.arg(1));
    let run = run_control::cancel(call.cx(), dag_id, run_id, kill, call.by()).await?;
    // The order to stop is committed: a worker that waits for one need not wait longer.
    call.cx().wakes.workers();
    keep_reason(call, of_run(&run), action.reason).await?;
    show(call).await
}

pub(super) async fn pause(call: &Call, paused: bool) -> Done {
    let action: Action = call.body()?;
    check_text("/reason", action.reason.as_deref())?;
    let (dag_id, run_id) = (call.arg(0), call.arg(1));
    let run = run_control::pause_run(call.cx(), dag_id, run_id, paused, call.by()).await?;
    keep_reason(call, of_run(&run), action.reason).await?;
    show(call).await
}

/// An event about a run.
pub(super) fn of_run(run: &run::Run) -> Event {
    Event { dag_id: Some(run.dag_id.clone()), run_pk: Some(run.run_pk), ..Event::default() }
}

/// Writes why a person did something, beside the events of what they did.
pub(super) async fn keep_reason(
    call: &Call,
    about: Event,
    reason: Option<String>,
) -> Result<(), Failure> {
    let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) else { return Ok(()) };
    let tx = call.cx().store.begin("keep_reason").await?;
    let line = Event {
        kind: "reason_given",
        actor: call.by().into(),
        evidence: Some(serde_json::json!({ "action": call.route.name })),
        reason: Some(reason),
        ..about
    };
    event::append(&tx, vec![line]).await?;
    tx.commit().await?;
    Ok(())
}
