//! `fencepost dags trigger`.

use super::params;
use crate::client::Client;
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use crate::watch::{Sink, Watch};
use clap::Args;
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::{DagDetail, Run, TriggerRun, routes};
use fencepost_core::time::{Span, Timestamp};
use serde_json::Value;

pub(super) const EXAMPLES: &str = "\
Examples:
  fencepost dags trigger sales_daily -p full_refresh=true --wait
  fencepost dags trigger sales_daily --run-id load-42 --if-not-exists -o name
  fencepost dags trigger sales_daily --logical-date 2026-09-01";

/// What the new run is to be.
#[derive(Debug, Args)]
pub(crate) struct Trigger {
    /// The DAG's id
    dag: String,
    /// The run's id; else manual__TIME_xxxx
    #[arg(long, value_name = "ID")]
    run_id: Option<String>,
    /// An instant, a date, or `none`; else now
    #[arg(long, value_name = "TIME", value_parser = logical_date)]
    logical_date: Option<String>,
    /// A param, typed as the DAG declares it
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// A JSON object that tasks read as `conf`
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    conf: Option<Value>,
    /// A note on the run
    #[arg(long)]
    note: Option<String>,
    /// An existing run of that id is no failure
    #[arg(long, requires = "run_id")]
    if_not_exists: bool,
    /// Follow it to its end: exit 0 succeeded, 3 failed, 8 timed out, 9 held
    #[arg(short, long)]
    wait: bool,
    /// Stop waiting after this time (exit 8)
    #[arg(long, value_name = "SPAN", requires = "wait")]
    timeout: Option<Span>,
}

impl Trigger {
    /// A trigger with nothing but params.
    pub(crate) fn plain(dag: &str, params: &[String]) -> Self {
        Self {
            dag: dag.into(),
            run_id: None,
            logical_date: None,
            params: params.to_vec(),
            conf: None,
            note: None,
            if_not_exists: false,
            wait: false,
            timeout: None,
        }
    }
}

fn logical_date(text: &str) -> Result<String, String> {
    if text == "none" {
        return Ok(text.into());
    }
    text.parse::<Timestamp>().map(|at| at.to_string()).map_err(|error| error.to_string())
}

fn json_object(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("write a JSON object: {\"key\": \"value\"}".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Makes the run.
pub(crate) fn make_run(client: &Client, args: &Trigger) -> Outcome<Run> {
    typed(make(client, args, &body(client, args)?)?)
}

/// Makes the run and prints its id.
pub(super) fn run(cx: &Cx, client: Client, args: Trigger) -> Outcome {
    let body = body(&client, &args)?;
    if cx.global.dry_run {
        if !cx.out.data(&body)? {
            let params = Value::from(body.params).to_string();
            cx.out.print(&format!("would trigger {} with params {params}\n", args.dag))?;
        }
        return Ok(Exit::Done);
    }
    let item = make(&client, &args, &body)?;
    let run: Run = typed(item.clone())?;
    if !args.wait {
        if !cx.out.data(&item)? {
            cx.out.print(&format!("{}\n", run.run_id))?;
            let to = format!("{} {}", run.dag_id, run.run_id);
            cx.out.remark(&format!("follow it:  fencepost runs watch {to}"));
        }
        return Ok(Exit::Done);
    }
    if cx.out.format.is_data() {
        let exit = Watch::of(cx, client, &run, Sink::Stderr).follow(args.timeout);
        let last = cx
            .client()
            .and_then(|client| client.get(routes::RUN_SHOW, &[&run.dag_id, &run.run_id], &()));
        cx.out.data(&last.unwrap_or(item))?;
        return exit;
    }
    cx.out.print(&format!("{}\n", run.run_id))?;
    Watch::of(cx, client, &run, Sink::Stderr).follow(args.timeout)
}

fn body(client: &Client, args: &Trigger) -> Outcome<TriggerRun> {
    let params = if args.params.is_empty() {
        serde_json::Map::new()
    } else {
        let dag: DagDetail = client.read(routes::DAG_SHOW, &[&args.dag])?;
        params::read(&dag.params, &args.params)?
    };
    Ok(TriggerRun {
        run_id: args.run_id.clone(),
        logical_date: args.logical_date.clone(),
        params,
        conf: args.conf.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        note: args.note.clone(),
    })
}

/// The new run, or with `--if-not-exists` the one that is there.
fn make(client: &Client, args: &Trigger, body: &TriggerRun) -> Outcome<Value> {
    let exists = |error: &CliError| {
        error.problem.as_ref().and_then(|p| p.known()) == Some(ProblemCode::RunExists)
    };
    match (client.send(routes::RUN_TRIGGER, &[&args.dag], &(), body), &args.run_id) {
        (Err(error), Some(run_id)) if exists(&error) && args.if_not_exists => {
            client.get(routes::RUN_SHOW, &[&args.dag, run_id], &())
        }
        (Err(error), _) if exists(&error) => {
            Err(error.hint("--if-not-exists makes that no failure"))
        }
        (answer, _) => answer,
    }
}
