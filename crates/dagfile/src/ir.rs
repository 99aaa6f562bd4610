//! The stored form of a DAG (its intermediate representation): JSON in the words of the DAG file.
//!
//! Every default is written out, so a version that was stored keeps its meaning when a later
//! release has other defaults: the defaults of tasks once under `default_args`, and at a task only
//! what differs. The order of keys is part of it (the order of tasks is the order of their
//! indexes), so it is kept as text. `from_ir` reads it with the validation of files; templates were
//! checked when the file was.

mod callbacks;
mod groups;
mod timing;

use crate::diagnostic::Findings;
use crate::yaml::Node;
use fencepost_core::dag::{
    Access, Action, Containment, Dag, Elements, OnDisconnect, OnLost, OutputType, Param, Part,
    Replace, Task, TaskIndex, TriggerDag, WeightRule,
};
use fencepost_core::id::TaskId;
use fencepost_core::kept::SecretSource;
use fencepost_core::retry::{RetryAction, RetryRule};
use fencepost_core::time::Span;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A stored form that gives no DAG: it was not made by `ir`, or by a release too new.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the stored DAG cannot be read: {0}")]
pub struct IrError(String);

/// The stored form of a DAG.
pub fn ir(dag: &Dag) -> Value {
    let mut out = Map::new();
    out.insert("schema".into(), json!(1));
    out.insert("dag_id".into(), json!(dag.dag_id.as_str()));
    out.insert("description".into(), json!(dag.description));
    out.insert("doc_md".into(), json!(dag.doc_md));
    out.insert("owner".into(), json!(dag.owner));
    out.insert("tags".into(), json!(dag.tags));
    timing::write(&dag.timing, &mut out);
    timing::write_slots(&dag.slots, &mut out);
    out.insert("is_paused_upon_creation".into(), json!(dag.is_paused_upon_creation));
    out.insert("max_active_runs".into(), json!(dag.limits.max_active_runs));
    out.insert("max_active_tasks".into(), json!(dag.limits.max_active_tasks));
    put_span("dagrun_timeout", dag.dagrun_timeout, &mut out);
    out.insert("fail_fast".into(), json!(dag.fail_fast));
    if dag.is_airflow_compatible {
        out.insert("compat".into(), json!("airflow"));
    }
    put_span("retention", dag.retention, &mut out);
    callbacks::write(&dag.callbacks, &mut out);
    callbacks::write_deadline(dag.deadline.as_ref(), &mut out);
    out.insert("params".into(), dag.params.iter().map(param).collect());
    out.insert("env".into(), env(&dag.env));
    put_access(&dag.access, &mut out);
    let defaults = defaults();
    let tasks: Map<String, Value> = dag
        .tasks
        .iter()
        .map(|item| (item.task_id.as_str().to_owned(), task(item, &defaults, dag)))
        .collect();
    out.insert("default_args".into(), Value::Object(defaults));
    out.insert("tasks".into(), Value::Object(tasks));
    groups::write(dag, &mut out);
    Value::Object(out)
}

/// The DAG of a stored form.
pub fn from_ir(stored: &Value) -> Result<Dag, IrError> {
    let mut findings = Findings::default();
    let (stored, stored_groups) = groups::split(stored);
    let root = Node::from_json(&stored).ok_or_else(|| IrError("it is too large".into()))?;
    let reading = crate::read::read(&root, "", &mut findings);
    let dag = reading.and_then(|reading| reading.into_dag(&mut findings));
    let dag = dag.ok_or_else(|| {
        let first = findings.finish().into_iter().next();
        IrError(first.map_or_else(|| "no DAG".into(), |d| format!("{} ({})", d.message, d.hint)))
    })?;
    match stored_groups {
        Some(stored) => groups::read(&stored, dag),
        None => Ok(dag),
    }
}

/// What names a version: SHA-256 of the stored form, in hexadecimal.
pub fn content_hash(dag: &Dag) -> String {
    let digest = Sha256::digest(ir(dag).to_string().as_bytes());
    digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn put_span(name: &str, span: Option<Span>, out: &mut Map<String, Value>) {
    if let Some(span) = span {
        out.insert(name.into(), json!(span.to_string()));
    }
}

fn env(variables: &[(String, String)]) -> Value {
    variables.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
}

/// Nothing is left out: what was stored before the keys counted keeps its hash.
fn put_access(access: &Access, out: &mut Map<String, Value>) {
    if !access.secrets.is_empty() {
        let one = |(name, source): &(String, SecretSource)| (name.clone(), source.to_string());
        let all = access.secrets.iter().map(one).map(|(name, source)| (name, json!(source)));
        out.insert("secrets".into(), all.collect());
    }
    if !access.connections.is_empty() {
        out.insert("connections".into(), json!(access.connections));
    }
}

fn param(param: &Param) -> (String, Value) {
    let mut out = param.schema.as_object().cloned().unwrap_or_default();
    if !param.description.is_empty() {
        out.insert("description".into(), json!(param.description));
    }
    if !param.default.is_null() {
        out.insert("default".into(), param.default.clone());
    }
    (param.name.clone(), Value::Object(out))
}

/// The shared keys of a task that nothing was said about.
fn defaults() -> Map<String, Value> {
    let task = TaskId::new("defaults").and_then(|id| Task::with_defaults(id, Action::Noop));
    task.map(|task| shared(&task)).unwrap_or_default()
}

fn task(task: &Task, defaults: &Map<String, Value>, dag: &Dag) -> Value {
    let mut out = Map::new();
    match &task.action {
        Action::Run(script) => out.insert("run".into(), json!(script)),
        Action::Command(words) => out.insert("command".into(), json!(words)),
        Action::Python(path) => out.insert("python".into(), json!(path)),
        Action::TriggerDag(of) => out.insert("trigger_dag".into(), trigger(of)),
        Action::Http(written) => out.insert("http".into(), written.clone()),
        Action::Wait(written) => out.insert("wait".into(), written.clone()),
        Action::Noop => out.insert("noop".into(), json!(true)),
    };
    if !task.depends_on.is_empty() {
        let name = |index: &TaskIndex| dag.task(*index).map(|task| json!(task.task_id.as_str()));
        out.insert("depends_on".into(), task.depends_on.iter().filter_map(name).collect());
    }
    for (name, text) in [("when", &task.when), ("map_index_template", &task.map_index_template)] {
        if let Some(text) = text {
            out.insert(name.into(), json!(text));
        }
    }
    match task.part {
        Part::Work => {}
        Part::Setup => drop(out.insert("setup".into(), json!(true))),
        Part::Teardown => drop(out.insert("teardown".into(), json!(true))),
    }
    if task.is_mapped() {
        out.insert("expand".into(), task.expand.iter().map(elements).collect());
    }
    out.extend(shared(task).into_iter().filter(|(name, value)| defaults.get(name) != Some(value)));
    if !task.env.is_empty() {
        out.insert("env".into(), env(&task.env));
    }
    put_access(&task.access, &mut out);
    for (name, assets) in [("inlets", &task.inlets), ("outlets", &task.outlets)] {
        if !assets.is_empty() {
            out.insert(name.into(), json!(assets));
        }
    }
    if !task.outputs.is_empty() {
        let output = |(name, of): &(String, OutputType)| (name.clone(), json!(of.as_str()));
        out.insert("outputs".into(), task.outputs.iter().map(output).collect());
    }
    Value::Object(out)
}

fn elements((name, elements): &(String, Elements)) -> (String, Value) {
    let value = match elements {
        Elements::List(values) => json!(values),
        Elements::Template(text) => json!(text),
    };
    (name.clone(), value)
}

fn trigger(of: &TriggerDag) -> Value {
    let mut out = Map::from_iter([("dag_id".to_owned(), json!(of.dag_id))]);
    for (name, text) in [("run_id", &of.run_id), ("logical_date", &of.logical_date)] {
        if let Some(text) = text {
            out.insert(name.into(), json!(text));
        }
    }
    if !of.params.is_empty() {
        out.insert("params".into(), of.params.iter().cloned().collect());
    }
    Value::Object(out)
}

/// The keys that may also stand in `default_args`, but `env`, which is laid over and not replaced.
fn shared(task: &Task) -> Map<String, Value> {
    let mut out = Map::new();
    let limits = &task.limits;
    out.insert("trigger_rule".into(), json!(task.trigger_rule.as_str()));
    out.insert("depends_on_past".into(), json!(task.depends_on_past));
    if task.wait_for_downstream {
        out.insert("wait_for_downstream".into(), json!(true));
    }
    out.insert("queue".into(), json!(limits.queue.as_str()));
    out.insert("pool".into(), json!(limits.pool.as_str()));
    out.insert("pool_slots".into(), json!(limits.pool_slots));
    out.insert("priority_weight".into(), json!(limits.priority_weight));
    out.insert("weight_rule".into(), json!(weight_rule(limits.weight_rule)));
    for (name, limit) in [
        ("max_active_tis_per_dag", limits.max_active_tis_per_dag),
        ("max_active_tis_per_dagrun", limits.max_active_tis_per_dagrun),
    ] {
        if let Some(limit) = limit {
            out.insert(name.into(), json!(limit));
        }
    }
    out.insert("retries".into(), json!(task.retry.retries));
    out.insert("retry_delay".into(), json!(task.retry.retry_delay.to_string()));
    out.insert("retry_exponential_backoff".into(), json!(task.retry.exponential_backoff));
    put_span("max_retry_delay", task.retry.max_retry_delay, &mut out);
    out.insert("retry_policy".into(), task.retry_rules.iter().map(rule).collect());
    out.insert("infra_retries".into(), json!(task.infra_retries));
    out.insert("on_lost".into(), json!(on_lost(task.on_lost)));
    // The default is left out: what was stored before the key counted keeps its hash.
    if task.replace == Replace::AfterConfirmedDead {
        out.insert("replace".into(), json!("after_confirmed_dead"));
    }
    if task.on_disconnect == OnDisconnect::Keep {
        out.insert("on_disconnect".into(), json!("keep"));
    }
    out.insert("containment".into(), json!(containment(task.containment)));
    if !task.resources.is_empty() {
        out.insert("resources".into(), task.resources.to_json());
    }
    put_span("stall_timeout", task.times.stall_timeout, &mut out);
    put_span("execution_timeout", task.times.execution_timeout, &mut out);
    out.insert("queued_timeout".into(), json!(task.times.queued_timeout.to_string()));
    put_span("kill_grace", task.times.kill_grace, &mut out);
    out.insert("graceful_exit_codes".into(), json!(task.graceful_exit_codes));
    out.insert("skip_exit_codes".into(), json!(task.skip_exit_codes));
    for (name, text) in [("working_dir", &task.working_dir), ("run_as_user", &task.run_as_user)] {
        if let Some(text) = text {
            out.insert(name.into(), json!(text));
        }
    }
    out.insert("shell".into(), json!(task.shell));
    callbacks::write(&task.callbacks, &mut out);
    out
}

fn rule(rule: &RetryRule) -> Value {
    let mut out = Map::new();
    out.insert("exit_codes".into(), json!(rule.exit_codes));
    match rule.action {
        RetryAction::Fail => drop(out.insert("action".into(), json!("fail"))),
        RetryAction::Retry { delay } => {
            out.insert("action".into(), json!("retry"));
            put_span("delay", delay, &mut out);
        }
    }
    out.insert("reason".into(), json!(rule.reason));
    Value::Object(out)
}

fn weight_rule(rule: WeightRule) -> &'static str {
    match rule {
        WeightRule::Downstream => "downstream",
        WeightRule::Upstream => "upstream",
        WeightRule::Absolute => "absolute",
    }
}

fn on_lost(on_lost: OnLost) -> &'static str {
    match on_lost {
        OnLost::Retry => "retry",
        OnLost::Hold => "hold",
        OnLost::Fail => "fail",
    }
}

fn containment(containment: Containment) -> &'static str {
    match containment {
        Containment::Auto => "auto",
        Containment::Pidns => "pidns",
        Containment::Cgroup => "cgroup",
        Containment::Group => "group",
    }
}
