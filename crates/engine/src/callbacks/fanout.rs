//! From an occasion to its callbacks: read and rendered without a lock, then written by the
//! transaction that takes the occasion away. Of two schedulers that rendered it, one takes it.

use crate::catalog::Version;
use crate::error::EngineError;
use crate::facts::{self, Facts, Telling};
use crate::{Cx, Report};
use fencepost_core::callback::{Callback, Occasion, kind_of};
use fencepost_core::dag::TaskIndex;
use fencepost_core::time::Timestamp;
use fencepost_store::Tx;
use fencepost_store::query::attempt;
use fencepost_store::query::callback::{self as rows, Callback as Row};
use fencepost_store::query::event::{self, Event};
use fencepost_store::query::occasion::{self, Happened};
use fencepost_store::query::run::{self, Run};
use fencepost_store::query::task_instance::{self, Ti, TiKey};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What a spec is that could not be rendered: nothing can be sent from it.
pub(crate) const UNRENDERED: &str = "unrendered";
/// Longest reason of a failure that is kept.
pub(super) const WHY_MAX: usize = 500;

/// What became of a page of occasions.
#[derive(Debug, Default)]
pub(super) struct Paged {
    /// Those that were taken away.
    pub(super) taken: usize,
    /// Behind this one are those that were not looked at, if some before it were left.
    pub(super) left_to: Option<i64>,
}

/// What becomes of an occasion.
enum Fate {
    Callbacks(Vec<Row>),
    /// There is nobody to ask about it: a line for the log.
    Dropped(Box<Event>),
    /// Its version cannot be read here. Who can, say a newer scheduler beside this one, finds it.
    Left,
}

/// Makes the callbacks of a page of occasions.
pub(super) async fn page(
    cx: &Cx,
    url: &str,
    (after, limit): (i64, u32),
    report: &mut Report,
) -> Result<Paged, EngineError> {
    let look = cx.store.read("occasions").await?;
    let found = occasion::peek(&look, after, limit).await?;
    let last = found.last().map(|(id, _)| *id);
    let (mut fates, mut is_left) = (Vec::new(), false);
    for (id, happened) in found {
        match fate(cx, &look, url, &happened, report).await? {
            Fate::Left => is_left = true,
            fate @ (Fate::Callbacks(_) | Fate::Dropped(_)) => fates.push((id, fate)),
        }
    }
    drop(look);
    let left_to = last.filter(|_| is_left);
    if fates.is_empty() {
        return Ok(Paged { taken: 0, left_to });
    }
    let tx = cx.store.begin("fan_out").await?;
    let ids: Vec<i64> = fates.iter().map(|(id, _)| *id).collect();
    let taken = occasion::remove(&tx, &ids).await?;
    let mine = fates.into_iter().zip(taken).filter(|(_, taken)| *taken);
    let (mut callbacks, mut lines, mut count) = (Vec::new(), Vec::new(), 0);
    for ((_, fate), _) in mine {
        count += 1;
        match fate {
            Fate::Callbacks(made) => callbacks.extend(made),
            Fate::Dropped(line) => lines.push(*line),
            Fate::Left => {}
        }
    }
    lines.extend(callbacks.iter().filter(|row| row.state == "dead").map(dead_line));
    rows::insert(&tx, &callbacks).await?;
    event::append(&tx, lines).await?;
    tx.commit().await?;
    if count > 0 {
        cx.wakes.engine();
    }
    Ok(Paged { taken: count, left_to })
}

/// The line of the log of a callback that nobody tries to deliver any more.
pub(super) fn dead_line(row: &Row) -> Event {
    Event { reason: row.last_error.clone(), ..line(row, "callback_dead") }
}

/// A line of the log about a callback.
pub(super) fn line(row: &Row, kind: &'static str) -> Event {
    Event {
        kind,
        dag_id: Some(row.dag_id.clone()),
        run_pk: Some(row.run_pk),
        task_id: row.task_id.clone(),
        map_index: row.task_id.as_ref().map(|_| row.map_index),
        token: row.token,
        actor: "callbacks".into(),
        evidence: Some(json!({
            "callback": row.id, "kind": row.kind, "occasion": row.occasion.as_str(),
        })),
        ..Event::default()
    }
}

/// What becomes of one occasion.
async fn fate(
    cx: &Cx,
    look: &Tx,
    url: &str,
    happened: &Happened,
    report: &mut Report,
) -> Result<Fate, EngineError> {
    let dropped = |why: &str| {
        Fate::Dropped(Box::new(Event {
            kind: "callbacks_dropped",
            run_pk: Some(happened.run_pk),
            token: happened.token,
            actor: "callbacks".into(),
            reason: Some(why.into()),
            ..Event::default()
        }))
    };
    let Some(run) = run::by_pks(look, &[happened.run_pk]).await?.into_iter().next() else {
        return Ok(dropped("the run was deleted before its callbacks were made"));
    };
    let version = match cx.catalog.version(look, run.version_pk).await {
        Ok(version) => version,
        Err(error) => {
            let why = error.of_one_version()?;
            report.troubles.push(format!("callbacks of {}: {why}", run.run_id));
            return Ok(Fate::Left);
        }
    };
    let Some(facts) = facts_of(cx, look, url, (&version, run), happened).await? else {
        return Ok(dropped("its task instance was removed before its callbacks were made"));
    };
    let task = happened.task_index.map(TaskIndex);
    let called = version.dag.called(task, happened.occasion);
    let told = told(&facts, happened);
    let row = |written: &&Value| made(cx, &facts, happened, (written, &told), look.now());
    Ok(Fate::Callbacks(called.iter().map(row).collect()))
}

/// What the templates see; `None`: the instance is gone.
async fn facts_of(
    cx: &Cx,
    look: &Tx,
    url: &str,
    (version, run): (&Arc<Version>, Run),
    happened: &Happened,
) -> Result<Option<Facts>, EngineError> {
    let run_url = format!("{url}/dags/{}/runs/{}", run.dag_id, run.run_id);
    let mut telling = Telling {
        occasion: happened.occasion,
        reason: happened.reason.clone().unwrap_or_else(|| happened.occasion.as_str().into()),
        run_url,
        is_of_instance: happened.task_index.is_some(),
        try_number: happened.try_number,
        attempt_id: None,
        token: happened.token,
        evidence: happened.evidence.clone().filter(|_| happened.occasion == Occasion::Lost),
    };
    let Some(task_index) = happened.task_index else {
        // Templates about a run see no instance: the first one stands in its place.
        let first = version.instances.first();
        let ti: Option<Ti> = first
            .and_then(|made| crate::scheduler::fresh_instance(version, &run, made, made.first));
        let asset_events = crate::assets::triggering(look, &run).await?;
        let facts = |ti| Facts {
            version: Arc::clone(version),
            run,
            ti,
            outputs: facts::Outputs::new(),
            // What a callback says is kept as text: nothing secret is for it.
            kept: Vec::new(),
            asset_events,
            attempt: None,
            telling: Some(telling),
        };
        return Ok(ti.map(facts));
    };
    let key = TiKey { run_pk: run.run_pk, task_index, map_index: happened.map_index };
    let Some(ti) = task_instance::get(look, &[key]).await?.into_iter().next() else {
        return Ok(None);
    };
    if let Some(token) = happened.token {
        let attempts = attempt::look(look, &[token]).await?;
        telling.attempt_id = attempts.first().map(|attempt| attempt.attempt_id.to_string());
    }
    let facts = facts::load(look, &cx.catalog, run, ti).await?;
    Ok(Some(Facts { kept: Vec::new(), telling: Some(telling), ..facts }))
}

/// What happened, as JSON.
fn told(facts: &Facts, happened: &Happened) -> Value {
    let Some(telling) = &facts.telling else { return Value::Null };
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| drop(out.insert(name.into(), value));
    put("occasion", json!(telling.occasion.as_str()));
    put("dag_id", json!(facts.run.dag_id));
    put("run_id", json!(facts.run.run_id));
    put("run_url", json!(telling.run_url));
    put("reason", json!(telling.reason));
    put("at", json!(happened.at.to_string()));
    if telling.is_of_instance {
        put("task_id", json!(facts.ti.task_id));
        put("map_index", json!(facts.ti.key.map_index));
        put("try_number", json!(telling.try_number));
        put("max_tries", json!(facts.ti.max_tries));
        put("attempt_id", json!(telling.attempt_id));
        put("token", json!(telling.token.map(|token| token.as_i64().to_string())));
        if telling.occasion == Occasion::Lost {
            put("lost_evidence", json!(telling.evidence));
        }
    }
    Value::Object(out)
}

/// One callback: due, or dead if its templates or what they give are wrong.
fn made(
    cx: &Cx,
    facts: &Facts,
    happened: &Happened,
    (written, told): (&Value, &Value),
    now: Timestamp,
) -> Row {
    let kind = kind_of(written).unwrap_or_default().to_owned();
    let rendered = render(cx, facts, happened.occasion, written);
    let read = rendered.and_then(|spec| {
        let callback = Callback::read(&spec).map_err(|error| error.to_string())?;
        Ok((spec, callback.target()))
    });
    let (spec, target, dead) = match read {
        Ok((spec, target)) => (spec, target, None),
        Err(why) => {
            let why: String = why.chars().take(WHY_MAX).collect();
            (json!({ UNRENDERED: written }), UNRENDERED.to_owned(), Some(why))
        }
    };
    let is_of_instance = happened.task_index.is_some();
    Row {
        id: cx.env.callback_id(),
        dag_id: facts.run.dag_id.clone(),
        run_id: facts.run.run_id.clone(),
        run_pk: facts.run.run_pk,
        task_id: is_of_instance.then(|| facts.ti.task_id.clone()),
        map_index: happened.map_index,
        token: happened.token,
        occasion: happened.occasion,
        kind,
        target,
        spec,
        told: told.clone(),
        state: if dead.is_some() { "dead" } else { "due" }.into(),
        tries: 0,
        created_at: now,
        since_at: now,
        due_at: now,
        ended_at: dead.is_some().then_some(now),
        last_error: dead,
    }
}

/// Every text rendered. What is a JSON value to its receiver keeps the type of an expression.
fn render(cx: &Cx, facts: &Facts, of: Occasion, written: &Value) -> Result<Value, String> {
    let Some((kind, given)) = written.as_object().and_then(|entries| entries.iter().next()) else {
        return Err("it is no callback".into());
    };
    let Some(entries) = given.as_object() else {
        let text = each(cx, facts, &format!("{}.{kind}", of.key()), given, false)?;
        return Ok(json!({ kind: text }));
    };
    let mut out = Map::new();
    for (key, value) in entries {
        let field = format!("{}.{kind}.{key}", of.key());
        let typed = (kind == "webhook" && key == "body") || key == "conf";
        out.insert(key.clone(), each(cx, facts, &field, value, typed)?);
    }
    Ok(json!({ kind: out }))
}

fn each(
    cx: &Cx,
    facts: &Facts,
    field: &str,
    written: &Value,
    typed: bool,
) -> Result<Value, String> {
    Ok(match written {
        Value::String(template) => match (cx.env.value)(field, template, facts)? {
            value if typed || value.is_string() => value,
            other => Value::String(other.to_string()),
        },
        Value::Array(items) => {
            let items = items.iter().map(|item| each(cx, facts, field, item, typed));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Object(entries) => {
            let mut out = Map::new();
            for (key, value) in entries {
                out.insert(key.clone(), each(cx, facts, field, value, typed)?);
            }
            Value::Object(out)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => written.clone(),
    })
}
