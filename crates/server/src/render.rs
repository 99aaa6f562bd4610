//! From the facts of an attempt to what its worker runs: templates rendered, environment made.

mod http;
mod kept;

use crate::auth::hex;
use crate::vault::Keyring;
use fencepost_api::execution::{Resources, Work};
use fencepost_core::dag::{Action, Containment, OnDisconnect, Task};
use fencepost_core::plan::runs::map_element;
use fencepost_core::state::RunType;
use fencepost_core::time::{Span, Timestamp};
use fencepost_dagfile::template::{
    AttemptFacts, Context, Happened, HappenedTo, Kept, ShortDates, TemplateError, evaluate, render,
    value_of,
};
use fencepost_engine::facts::{Facts, Telling};
use fencepost_store::query::task_instance::Ti;
use kept::{Given, Opened};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// The interpreter of `run` where the file names none.
const SHELL: [&str; 4] = ["bash", "-euo", "pipefail", "--"];
/// The interpreter of `python`, where the worker names none.
const PYTHON: &str = "python3";
/// What it runs: it calls the function.
const CALL: &str = include_str!("render/task.py");
/// The worker's own program, seen from the process that becomes the task's.
const OWN: &str = "/proc/self/exe";
/// What it does then; no verb.
const HTTP_TASK: &str = "http-task";
/// Values larger than this are only in the file of inputs or params.
const VARIABLE_MAX: usize = 8 << 10;

/// Renders what tasks say, with what the installation keeps for them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Renderer {
    keyring: Arc<Keyring>,
}

/// The engine's functions for conditions, values and texts.
pub type Functions = (
    Arc<dyn Fn(&str, &Facts) -> Result<bool, String> + Send + Sync>,
    Arc<dyn Fn(&str, &str, &Facts) -> Result<Value, String> + Send + Sync>,
    Arc<dyn Fn(&str, &Facts) -> Result<String, String> + Send + Sync>,
);

impl Renderer {
    /// One that opens what is kept by these keys.
    pub const fn new(keyring: Arc<Keyring>) -> Self {
        Self { keyring }
    }

    /// One that opens nothing.
    pub fn without_keys() -> Self {
        Self::new(Arc::new(Keyring::none()))
    }

    /// What an engine is given of it.
    pub fn functions(&self) -> Functions {
        let (one, two, three) = (self.clone(), self.clone(), self.clone());
        let text = |error: TemplateError| error.to_string();
        (
            Arc::new(move |when, facts| evaluate(when, &one.context(facts)).map_err(text)),
            Arc::new(move |field, template, facts| {
                value_of(field, template, &two.context(facts)).map_err(text)
            }),
            Arc::new(move |template, facts| {
                render("wait", template, &three.context(facts)).map_err(text)
            }),
        )
    }

    /// The template context of a task instance.
    pub fn context(&self, facts: &Facts) -> Context {
        context(facts, Opened::of(facts, &self.keyring).kept)
    }

    /// Renders everything that the worker needs.
    pub fn work(&self, facts: &Facts) -> Result<Work, TemplateError> {
        let opened = Opened::of(facts, &self.keyring);
        let given = opened.given(&facts.version.dag, task_of(facts))?;
        work(facts, &context(facts, opened.kept), given)
    }

    /// What is not to be shown of what was rendered for a task instance.
    pub fn masked(&self, facts: &Facts) -> Vec<String> {
        Opened::of(facts, &self.keyring).masked()
    }
}

fn task_of(facts: &Facts) -> &Task {
    &facts.version.dag.tasks[facts.ti.key.task_index as usize]
}

fn context(facts: &Facts, kept: Kept) -> Context {
    let (dag, run, ti) = (&facts.version.dag, &facts.run, &facts.ti);
    let object = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let task = dag.tasks.get(ti.key.task_index as usize);
    let attempt = facts.attempt.as_ref().map(|attempt| AttemptFacts {
        attempt_id: attempt.attempt_id.clone(),
        fencing_token: attempt.token.as_i64().to_string(),
        idempotency_key: idempotency_key(facts),
        try_number: ti.try_number,
        max_tries: ti.max_tries,
        attempt_number: attempt.number,
        prev_outcome: attempt.prev_outcome.clone(),
    });
    Context {
        dag_id: run.dag_id.clone(),
        task_id: ti.task_id.clone(),
        run_id: run.run_id.clone(),
        run_type: run.run_type.as_str().into(),
        timezone: dag.timing.timezone.clone(),
        map_index: ti.key.map_index.into(),
        logical_date: run.logical_date,
        data_interval_start: run.interval_start,
        data_interval_end: run.interval_end,
        run_started_at: run.started_at,
        params: object(&run.params),
        conf: object(&run.conf),
        outputs: facts.outputs.clone(),
        asset_events: facts.asset_events.clone(),
        mapped: task.map(|task| mapped(task, ti)).unwrap_or_default(),
        attempt,
        kept,
        happened: facts.telling.as_ref().map(|telling| happened(telling, ti)),
    }
}

fn happened(telling: &Telling, ti: &Ti) -> Happened {
    let instance = telling.is_of_instance.then(|| HappenedTo {
        try_number: telling.try_number,
        max_tries: ti.max_tries,
        attempt_id: telling.attempt_id.clone(),
        fencing_token: telling.token.map(|token| token.as_i64().to_string()),
        lost_evidence: telling.evidence.clone(),
    });
    Happened {
        occasion: telling.occasion.as_str().into(),
        reason: telling.reason.clone(),
        run_url: telling.run_url.clone(),
        instance,
    }
}

fn mapped(task: &Task, ti: &Ti) -> Vec<(String, Value)> {
    let given = ti.mapped.as_deref().and_then(|text| serde_json::from_str(text).ok());
    given.unwrap_or_else(|| map_element(task, ti.key.map_index)).into_iter().collect()
}

/// The key that stays the same over attempts and tries: a hash of what the work is.
pub fn idempotency_key(facts: &Facts) -> String {
    let date = facts.run.logical_date.map(|at| at.to_string());
    let what = format!(
        "{}\n{}\n{}\n{}\n{}",
        facts.run.dag_id,
        facts.ti.task_id,
        facts.ti.key.map_index,
        date.as_deref().unwrap_or(&facts.run.run_id),
        facts.ti.generation,
    );
    hex(&Sha256::digest(what.as_bytes())[..16])
}

fn work(facts: &Facts, context: &Context, given: Given) -> Result<Work, TemplateError> {
    let task = task_of(facts);
    let (argv, script) = action(task, context)?;
    let mut env = Vec::new();
    for (name, template) in facts.version.dag.env.iter().chain(&task.env) {
        env.push((name.clone(), render(&format!("env.{name}"), template, context)?));
    }
    // Ours come last and win: a task can rely on them whatever the file says.
    env.extend(variables(facts, context));
    let working_dir = task.working_dir.as_deref();
    let python = match &task.action {
        Action::Python(path) => Some(path.clone()),
        Action::Run(_)
        | Action::Command(_)
        | Action::TriggerDag(_)
        | Action::Http(_)
        | Action::Wait(_)
        | Action::Noop => None,
    };
    Ok(Work {
        argv,
        python,
        script,
        env,
        params: facts.run.params.clone(),
        inputs: serde_json::to_value(&facts.outputs).unwrap_or_default(),
        asset_events: (facts.run.run_type == RunType::AssetTriggered)
            .then(|| Value::Object(facts.asset_events.clone())),
        working_dir: working_dir.map(|dir| render("working_dir", dir, context)).transpose()?,
        run_as_user: task.run_as_user.clone(),
        containment: containment(task.containment).into(),
        resources: (!task.resources.is_empty()).then_some(Resources {
            cpu_millis: task.resources.cpu_millis,
            memory: task.resources.memory,
        }),
        execution_timeout_ms: task.times.execution_timeout.map(Span::as_millis),
        stall_timeout_ms: task.times.stall_timeout.map(Span::as_millis),
        kill_grace_ms: task.times.kill_grace.map(Span::as_millis),
        keeps: task.on_disconnect == OnDisconnect::Keep,
        graceful_exit_codes: task.graceful_exit_codes.clone(),
        checkpoint: facts.attempt.as_ref().and_then(|attempt| attempt.checkpoint.clone()),
        defer_event: facts.attempt.as_ref().and_then(|attempt| attempt.event.clone()),
        secrets: given.secrets,
        connections: given.connections,
        masked: given.masked,
        outputs: task.outputs.iter().map(|(name, of)| (name.clone(), of.as_str().into())).collect(),
    })
}

fn containment(of: Containment) -> &'static str {
    match of {
        Containment::Auto => "auto",
        Containment::Pidns => "pidns",
        Containment::Cgroup => "cgroup",
        Containment::Group => "group",
    }
}

type Rendered = (Vec<String>, Option<String>);

fn action(task: &Task, context: &Context) -> Result<Rendered, TemplateError> {
    match &task.action {
        Action::Run(script) => {
            let shell = if task.shell.is_empty() {
                SHELL.iter().map(ToString::to_string).collect()
            } else {
                task.shell.clone()
            };
            Ok((shell, Some(render("run", script, context)?)))
        }
        Action::Command(argv) => {
            let one = |arg: &String| render("command", arg, context);
            Ok((argv.iter().map(one).collect::<Result<_, _>>()?, None))
        }
        Action::Python(_) => Ok((vec![PYTHON.into(), "-u".into()], Some(CALL.into()))),
        Action::Http(written) => {
            let request = http::rendered(written, context)?;
            Ok((vec![OWN.into(), HTTP_TASK.into()], Some(request.to_string())))
        }
        // A wait has no process: its attempt ends where it is made.
        Action::TriggerDag(_) | Action::Wait(_) | Action::Noop => Ok((vec!["true".into()], None)),
    }
}

/// The variables of 2-interfaces section 5 that the store knows.
fn variables(facts: &Facts, context: &Context) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| out.push((format!("FENCEPOST_{name}"), value));
    set("DAG_ID", context.dag_id.clone());
    set("TASK_ID", context.task_id.clone());
    set("RUN_ID", context.run_id.clone());
    set("MAP_INDEX", context.map_index.to_string());
    set("RUN_TYPE", context.run_type.clone());
    let dates = [
        ("LOGICAL_DATE", context.logical_date),
        ("DATA_INTERVAL_START", context.data_interval_start),
        ("DATA_INTERVAL_END", context.data_interval_end),
    ];
    for (name, at) in dates.into_iter().filter_map(|(name, at)| Some((name, at?))) {
        set(name, rfc3339(at));
    }
    if let Some(at) = context.logical_date {
        let short = ShortDates::of(at, &context.timezone);
        set("DS", short.ds);
        set("DS_NODASH", short.ds_nodash);
        set("TS", short.ts);
        set("TS_NODASH", short.ts_nodash);
    }
    if let Some(attempt) = &context.attempt {
        set("TRY_NUMBER", attempt.try_number.to_string());
        set("MAX_TRIES", attempt.max_tries.to_string());
        set("ATTEMPT_NUMBER", attempt.attempt_number.to_string());
        set("PREV_OUTCOME", attempt.prev_outcome.clone());
        set("ATTEMPT_ID", attempt.attempt_id.clone());
        set("FENCING_TOKEN", attempt.fencing_token.clone());
        set("IDEMPOTENCY_KEY", attempt.idempotency_key.clone());
    }
    out.extend(values("PARAM", &context.params));
    for (task, outputs) in &facts.outputs {
        out.extend(values(&format!("INPUT_{}", variable_name(task)), outputs));
    }
    let mapped: Map<String, Value> = context.mapped.iter().cloned().collect();
    out.extend(values("MAP", &mapped));
    if facts.version.dag.is_airflow_compatible {
        out.extend(airflow_variables(&facts.version.dag.owner, context));
    }
    let task = facts.version.dag.tasks.get(facts.ti.key.task_index as usize);
    if let Some(Action::Python(path)) = task.map(|task| &task.action) {
        out.push(("FENCEPOST_PYTHON".into(), path.clone()));
        out.push(("FENCEPOST_PYTHON_MAPPED".into(), Value::Object(mapped).to_string()));
    }
    out
}

/// Airflow's names for what a task may know of itself (`context_to_airflow_vars`), dates as Python writes them.
fn airflow_variables(owner: &str, context: &Context) -> Vec<(String, String)> {
    let date = |at: Timestamp| {
        let text = rfc3339(at);
        text.strip_suffix('Z').map_or_else(|| text.clone(), |text| format!("{text}+00:00"))
    };
    let known = [
        ("DAG_ID", Some(context.dag_id.clone())),
        ("TASK_ID", Some(context.task_id.clone())),
        ("DAG_RUN_ID", Some(context.run_id.clone())),
        ("TRY_NUMBER", context.attempt.as_ref().map(|attempt| attempt.try_number.to_string())),
        ("DAG_OWNER", Some(owner.to_owned()).filter(|owner| !owner.is_empty())),
        ("LOGICAL_DATE", context.logical_date.map(date)),
        // Its name before Airflow 3.
        ("EXECUTION_DATE", context.logical_date.map(date)),
    ];
    let given = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.map(|(name, value)| (format!("AIRFLOW_CTX_{name}"), value)).collect()
}

fn rfc3339(at: Timestamp) -> String {
    at.to_jiff().to_string()
}

/// `FENCEPOST_<KIND>_<NAME>`: scalars as text, the rest as JSON; nothing that is too large.
fn values(kind: &str, values: &Map<String, Value>) -> Vec<(String, String)> {
    values
        .iter()
        .filter_map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Null => return None,
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                    value.to_string()
                }
            };
            let fits = text.len() <= VARIABLE_MAX && !text.contains('\0');
            fits.then(|| (format!("FENCEPOST_{kind}_{}", variable_name(name)), text))
        })
        .collect()
}

fn variable_name(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}
