//! `fencepost tasks`.

use super::plan;
use super::target::{RunTarget, TaskTarget, split};
use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::view::attempt::OfMapped;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use fencepost_api::rest::{
    Action, Attempt, Clear, ListQuery, Mark, Output, RenderedField, TaskInstance, TaskQuery, routes,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// Look at task instances, run them again, decide for them
#[derive(Debug, Subcommand)]
pub(crate) enum Tasks {
    /// List the task instances of a run, in topological order
    #[command(
        after_help = "Example:\n  fencepost tasks list sales_daily @latest --state failed -o wide"
    )]
    List {
        #[command(flatten)]
        run: RunTarget,
        /// States, separated by commas
        #[arg(long)]
        state: Option<String>,
        /// Only the first N
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Show one task instance
    #[command(after_help = "Example:\n  fencepost tasks show sales_daily @latest load")]
    Show(TaskTarget),
    /// List every attempt ever made at a task instance
    #[command(after_help = "Example:\n  fencepost tasks attempts sales_daily @latest load -o wide")]
    Attempts(TaskTarget),
    /// Run tasks again; shows the scope and asks
    #[command(after_help = "\
Examples:
  fencepost tasks clear sales_daily @latest load --downstream --dry-run
  fencepost tasks clear sales_daily @latest 'publish[2]' --yes
  fencepost tasks clear sales_daily @latest load --past --downstream --dry-run")]
    Clear(ClearTasks),
    /// Decide the state of a task instance by hand
    #[command(
        after_help = "Example:\n  fencepost tasks mark sales_daily @latest load --as success --reason \"loaded by hand\""
    )]
    Mark(MarkTask),
    /// Say yes to what a deferred task asks (wait: {approval: ...})
    #[command(
        after_help = "Example:\n  fencepost tasks approve sales_daily @latest sign_off --reason \"figures checked\""
    )]
    Approve(AnswerTask),
    /// Say no to what a deferred task asks: it is skipped, or fails if the file says so
    #[command(
        after_help = "Example:\n  fencepost tasks reject sales_daily @latest sign_off --reason \"totals differ\""
    )]
    Reject(AnswerTask),
    /// Show the templates of a task as an attempt gets them
    #[command(after_help = "Example:\n  fencepost tasks render sales_daily @latest load")]
    Render(TaskTarget),
    /// Show the accepted outputs (XCom) of a task instance
    #[command(
        after_help = "Example:\n  fencepost tasks outputs sales_daily @latest extract -o json"
    )]
    Outputs(TaskTarget),
}

/// What is cleared.
#[derive(Debug, Args)]
pub(crate) struct ClearTasks {
    #[command(flatten)]
    run: RunTarget,
    /// Tasks; of a mapped one `load` (all of it) or `load[3]`
    #[arg(required = true)]
    tasks: Vec<String>,
    /// Also everything after them
    #[arg(short, long)]
    downstream: bool,
    /// Also everything before them
    #[arg(short, long)]
    upstream: bool,
    /// Also in the DAG's runs of earlier logical dates
    #[arg(long)]
    past: bool,
    /// Also in its runs of later logical dates
    #[arg(long)]
    future: bool,
    /// Of these only what failed, or could not run because of it
    #[arg(short = 'f', long)]
    only_failed: bool,
    /// New idempotency keys for all, not only for those that had succeeded
    #[arg(long)]
    new_keys: bool,
    /// With the newest version of the DAG
    #[arg(long)]
    latest: bool,
    /// Kept in the history
    #[arg(long)]
    reason: Option<String>,
}

/// What is marked.
#[derive(Debug, Args)]
pub(crate) struct MarkTask {
    #[command(flatten)]
    task: TaskTarget,
    /// The state that it gets
    #[arg(long = "as", value_name = "STATE", value_parser = PossibleValuesParser::new(["success", "failed", "skipped"]))]
    state: String,
    /// Also everything after it
    #[arg(short, long)]
    downstream: bool,
    /// Also everything before it
    #[arg(short, long)]
    upstream: bool,
    /// Also in the DAG's runs of earlier logical dates
    #[arg(long)]
    past: bool,
    /// Also in its runs of later logical dates
    #[arg(long)]
    future: bool,
    /// Kept in the history
    #[arg(long)]
    reason: Option<String>,
}

/// What is answered.
#[derive(Debug, Args)]
pub(crate) struct AnswerTask {
    #[command(flatten)]
    task: TaskTarget,
    /// Kept in the history
    #[arg(long)]
    reason: Option<String>,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Tasks) -> Outcome {
    let client = cx.client()?;
    match verb {
        Tasks::List { run, state, limit } => {
            let run = run.find(&client)?;
            let query = TaskQuery { state, ..TaskQuery::default() };
            let at = [run.dag_id.as_str(), run.run_id.as_str()];
            let items = client.list(routes::TASK_LIST, &at, &query, limit)?;
            cx.out.list::<TaskInstance>(items, client.now())?;
        }
        Tasks::Show(target) => {
            let item = at(&client, &target, |at| client.get(routes::TASK_SHOW, at, &()))?;
            cx.out.show::<TaskInstance>(item, client.now())?;
        }
        Tasks::Attempts(target) => attempts(cx, &client, &target)?,
        Tasks::Clear(args) => return clear(cx, &client, args),
        Tasks::Mark(args) => return mark(cx, &client, args),
        Tasks::Approve(args) => return answer(cx, &client, routes::TASK_APPROVE, args),
        Tasks::Reject(args) => return answer(cx, &client, routes::TASK_REJECT, args),
        Tasks::Render(target) => {
            let item = at(&client, &target, |at| client.get(routes::TASK_RENDERED, at, &()))?;
            part_of::<RenderedField>(cx, &client, item, "fields")?;
        }
        Tasks::Outputs(target) => {
            let item = at(&client, &target, |at| client.get(routes::TASK_OUTPUTS, at, &()))?;
            part_of::<Output>(cx, &client, item, "outputs")?;
        }
    }
    Ok(Exit::Done)
}

/// A call about one task instance.
fn at<T>(
    client: &Client,
    target: &TaskTarget,
    call: impl FnOnce(&[&str]) -> Outcome<T>,
) -> Outcome<T> {
    let run = target.run.find(client)?;
    call(&[&run.dag_id, &run.run_id, &target.path()?])
}

/// The whole object as data, its list as a table.
fn part_of<T: crate::output::Row>(
    cx: &Cx,
    client: &Client,
    mut item: Value,
    list: &str,
) -> Outcome<()> {
    if cx.out.data(&item)? {
        return Ok(());
    }
    let items = item[list].as_array_mut().map(std::mem::take).unwrap_or_default();
    cx.out.list::<T>(items, client.now())
}

fn attempts(cx: &Cx, client: &Client, target: &TaskTarget) -> Outcome<()> {
    let query = ListQuery::default();
    let items = at(client, target, |at| client.list(routes::TASK_ATTEMPTS, at, &query, None))?;
    let refused: Vec<String> = items
        .iter()
        .filter(|item| item["refused_writes"].as_u64().is_some_and(|count| count > 0))
        .map(|item| {
            let (count, number) = (&item["refused_writes"], &item["attempt_number"]);
            let id = item["attempt_id"].as_str().unwrap_or_default();
            format!("⛔ {count} late writes of attempt {number} were refused:  fencepost attempts events {id}")
        })
        .collect();
    let indexes: BTreeSet<i64> =
        items.iter().filter_map(|item| item["map_index"].as_i64()).collect();
    if indexes.len() > 1 {
        cx.out.list::<OfMapped>(items, client.now())?;
    } else {
        cx.out.list::<Attempt>(items, client.now())?;
    }
    for line in refused {
        cx.out.remark(&line);
    }
    Ok(())
}

fn clear(cx: &Cx, client: &Client, args: ClearTasks) -> Outcome {
    let run = args.run.find(client)?;
    let tasks = args.tasks.iter().map(|text| {
        let (task, index) = split(text)?;
        Ok(index.map_or(task.to_owned(), |index| format!("{task};{index}")))
    });
    let body = Clear {
        tasks: tasks.collect::<Outcome<_>>()?,
        downstream: args.downstream,
        upstream: args.upstream,
        past: args.past,
        future: args.future,
        only_failed: args.only_failed,
        new_keys: args.new_keys,
        latest_version: args.latest,
        reason: args.reason,
    };
    let at = [run.dag_id.as_str(), run.run_id.as_str()];
    plan::carry_out(cx, client, (routes::RUN_CLEAR, &at), "clear", &body)
}

fn mark(cx: &Cx, client: &Client, args: MarkTask) -> Outcome {
    let run = args.task.run.find(client)?;
    let path = args.task.path()?;
    let verb = format!("mark as {}", args.state);
    let body = Mark {
        state: args.state,
        downstream: args.downstream,
        upstream: args.upstream,
        past: args.past,
        future: args.future,
        reason: args.reason,
    };
    let at = [run.dag_id.as_str(), run.run_id.as_str(), path.as_str()];
    plan::carry_out(cx, client, (routes::TASK_MARK, &at), &verb, &body)
}

fn answer(cx: &Cx, client: &Client, route: routes::Route, args: AnswerTask) -> Outcome {
    let body = Action { reason: args.reason };
    let done = at(client, &args.task, |at| client.send(route, at, &(), &body))?;
    plan::print(cx, client, &done)
}
