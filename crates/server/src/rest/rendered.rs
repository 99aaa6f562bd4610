//! The templates of a task instance, each rendered by itself, so that one that fails says so and
//! hides none of the others.

use super::answer::{Answer, Done};
use super::call::Call;
use super::failure::Failure;
use super::target::At;
use crate::render::Renderer;
use fencepost_api::rest::{Rendered, RenderedField};
use fencepost_core::dag::Action;
use fencepost_dagfile::template::{Context, TemplateError, evaluate};
use fencepost_engine::facts::{AttemptFacts, Facts, Reader, kept_for, outputs_for};
use fencepost_store::Tx;
use fencepost_store::query::attempt;
use fencepost_store::query::task_instance::Ti;
use std::sync::Arc;

pub(super) async fn show(call: &Call) -> Done {
    let tx = call.read().await?;
    let at = At::of(call, &tx).await?;
    let named = at.named(call.arg(2))?;
    let ti = at.one(&tx, &named).await?;
    let facts = facts(&tx, &at, ti).await?;
    let renderer = Renderer::new(Arc::clone(&call.server.state.keyring));
    let context = renderer.context(&facts);
    let masked = renderer.masked(&facts);
    Answer::ok(&Rendered {
        task_id: facts.ti.task_id.clone(),
        map_index: facts.ti.key.map_index,
        token: facts.attempt.as_ref().map(|attempt| attempt.token.as_i64().to_string()),
        fields: fields(&facts, &context).into_iter().map(|field| hide(field, &masked)).collect(),
    })
}

/// What is secret is not shown, wherever a template put it.
fn hide(field: RenderedField, masked: &[String]) -> RenderedField {
    let hide = |text: String| masked.iter().fold(text, |text, one| text.replace(one, "***"));
    RenderedField { text: field.text.map(hide), error: field.error.map(hide), ..field }
}

async fn facts(tx: &Tx, at: &At, ti: Ti) -> Result<Facts, Failure> {
    let version = Arc::clone(&at.version);
    let (run_pk, task_index) = (at.run.run_pk, ti.key.task_index);
    let reader = Reader { version: &version, run_pk, task_index };
    let outputs = outputs_for(tx, &[reader]).await?.pop().unwrap_or_default();
    let kept = kept_for(tx, &[reader]).await?.pop().unwrap_or_default();
    let newest = match ti.token {
        Some(token) => attempt::get(tx, &[token]).await?.pop(),
        None => None,
    };
    let attempt = newest.map(|attempt| AttemptFacts {
        checkpoint: None,
        event: None,
        attempt_id: attempt.attempt_id.to_string(),
        token: attempt.token,
        number: attempt.attempt_number,
        prev_outcome: attempt.prev_outcome,
    });
    let asset_events = fencepost_engine::assets::triggering(tx, &at.run).await?;
    let run = at.run.clone();
    Ok(Facts { version, run, ti, outputs, kept, asset_events, attempt, telling: None })
}

/// Every field of the task that may hold a template, in the order of the documentation.
fn fields(facts: &Facts, context: &Context) -> Vec<RenderedField> {
    let index = usize::try_from(facts.ti.key.task_index).unwrap_or(usize::MAX);
    let Some(task) = facts.version.dag.tasks.get(index) else { return Vec::new() };
    let mut out = Vec::new();
    match &task.action {
        Action::Run(script) => out.push(text("run".into(), "run", script, context)),
        Action::Command(words) => {
            for (n, word) in words.iter().enumerate() {
                out.push(text(format!("command[{n}]"), "command", word, context));
            }
        }
        Action::TriggerDag(of) => {
            let name = "trigger_dag.dag_id";
            out.push(text(name.into(), name, &of.dag_id, context));
        }
        Action::Http(written) | Action::Wait(written) => {
            let of = if matches!(task.action, Action::Http(_)) { "http" } else { "wait" };
            out.push(text(of.into(), of, &written.to_string(), context));
        }
        Action::Python(_) | Action::Noop => {}
    }
    if let Some(when) = &task.when {
        let value = evaluate(when, context).map(|holds| holds.to_string());
        out.push(field("when".into(), value));
    }
    for (name, template) in facts.version.dag.env.iter().chain(&task.env) {
        let place = format!("env.{name}");
        out.retain(|field| field.field != place);
        out.push(text(place.clone(), &place, template, context));
    }
    for (name, template) in
        [("working_dir", &task.working_dir), ("map_index_template", &task.map_index_template)]
    {
        out.extend(template.as_ref().map(|template| text(name.into(), name, template, context)));
    }
    out
}

/// `place` is what is shown; `kind` decides the syntax.
fn text(place: String, kind: &str, template: &str, context: &Context) -> RenderedField {
    field(place, fencepost_dagfile::template::render(kind, template, context))
}

fn field(place: String, rendered: Result<String, TemplateError>) -> RenderedField {
    match rendered {
        Ok(text) => RenderedField { field: place, text: Some(text), error: None },
        Err(error) => RenderedField { field: place, text: None, error: Some(error.to_string()) },
    }
}
