//! `fencepost runs`.

use super::plan;
use super::target::RunTarget;
use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::typed;
use crate::watch;
use clap::{Args, Subcommand};
use fencepost_api::rest::routes::{self, Route};
use fencepost_api::rest::{Action, Clear, Run, RunPatch, RunQuery};
use fencepost_core::time::{Span, Timestamp};

/// List, follow and steer runs
#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first
    #[command(after_help = "\
Examples:
  fencepost runs list sales_daily --state failed
  fencepost runs list --limit 20 -o wide")]
    List(List),
    /// Show one run
    #[command(after_help = "Example:\n  fencepost runs show sales_daily @latest")]
    Show(RunTarget),
    /// Follow a run to its end; exits as `dags trigger --wait`
    #[command(after_help = "Example:\n  fencepost runs watch sales_daily @latest --timeout 1h")]
    Watch {
        #[command(flatten)]
        run: RunTarget,
        /// Stop waiting after this time (exit 8)
        #[arg(long, value_name = "SPAN")]
        timeout: Option<Span>,
    },
    /// Stop a run: SIGTERM, grace, SIGKILL; it ends `cancelled`
    #[command(
        after_help = "Example:\n  fencepost runs cancel sales_daily @latest --reason \"bad input\""
    )]
    Cancel(Steer),
    /// Stop a run without grace
    #[command(after_help = "Example:\n  fencepost runs kill sales_daily @latest --yes")]
    Kill(Steer),
    /// Start nothing more of a run until it is resumed
    #[command(after_help = "Example:\n  fencepost runs pause sales_daily @latest")]
    Pause(Steer),
    /// Go on with a paused run
    #[command(after_help = "Example:\n  fencepost runs resume sales_daily @latest")]
    Resume(Steer),
    /// Run a run's tasks again (all, or the failed ones)
    #[command(
        after_help = "Example:\n  fencepost runs clear sales_daily @latest --only-failed --dry-run"
    )]
    Clear(ClearRun),
    /// Delete a run that has ended, with its history
    #[command(after_help = "Example:\n  fencepost runs delete sales_daily manual__2026 --yes")]
    Delete(RunTarget),
    /// Write a note on a run; an empty one removes it
    #[command(
        after_help = "Example:\n  fencepost runs note sales_daily @latest \"late data, see #42\""
    )]
    Note {
        #[command(flatten)]
        run: RunTarget,
        /// The note
        text: String,
    },
}

/// Filters of a list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Of this DAG; else of all
    dag: Option<String>,
    /// States, separated by commas
    #[arg(long)]
    state: Option<String>,
    /// scheduled, manual, backfill
    #[arg(long = "type", value_name = "TYPE")]
    run_type: Option<String>,
    /// Logical dates from here on
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Logical dates before here
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Only the newest N
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

/// A run and why.
#[derive(Debug, Args)]
pub(crate) struct Steer {
    #[command(flatten)]
    run: RunTarget,
    /// Kept in the history
    #[arg(long)]
    reason: Option<String>,
}

/// What of a run is cleared.
#[derive(Debug, Args)]
pub(crate) struct ClearRun {
    #[command(flatten)]
    run: RunTarget,
    /// Only what failed, or could not run because of it
    #[arg(long)]
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

/// Does it.
pub(super) fn run(cx: &Cx, verb: Runs) -> Outcome {
    let client = cx.client()?;
    match verb {
        Runs::List(args) => list(cx, &client, args),
        Runs::Show(target) => {
            let run = target.find(&client)?;
            let item = client.get(routes::RUN_SHOW, &[&run.dag_id, &run.run_id], &())?;
            cx.out.show::<Run>(item, client.now())?;
            Ok(Exit::Done)
        }
        Runs::Watch { run, timeout } => {
            let run = run.find(&client)?;
            watch::Watch::of(cx, client, &run, watch::Sink::Stdout).follow(timeout)
        }
        Runs::Cancel(args) => steer(cx, &client, routes::RUN_CANCEL, "cancel", args),
        Runs::Kill(args) => steer(cx, &client, routes::RUN_KILL, "kill", args),
        Runs::Pause(args) => steer(cx, &client, routes::RUN_PAUSE, "pause", args),
        Runs::Resume(args) => steer(cx, &client, routes::RUN_RESUME, "resume", args),
        Runs::Clear(args) => clear(cx, &client, args),
        Runs::Delete(target) => delete(cx, &client, &target),
        Runs::Note { run, text } => {
            let run = run.find(&client)?;
            if cx.global.dry_run {
                let would = format!("note on {} {}: {text}", run.dag_id, run.run_id);
                let about = Run { note: Some(text), ..run };
                return cx.out.would(&would, &about).map(|()| Exit::Done);
            }
            let body = RunPatch { note: Some(text) };
            let item = client.send(routes::RUN_PATCH, &[&run.dag_id, &run.run_id], &(), &body)?;
            cx.out.data(&item)?;
            Ok(Exit::Done)
        }
    }
}

fn list(cx: &Cx, client: &Client, args: List) -> Outcome {
    let query = RunQuery {
        state: args.state,
        run_type: args.run_type,
        from: args.from.map(|at| at.to_string()),
        to: args.to.map(|at| at.to_string()),
        ..RunQuery::default()
    };
    let items = match &args.dag {
        Some(dag) => client.list(routes::RUN_LIST, &[dag], &query, args.limit)?,
        None => client.list(routes::RUN_LIST_ALL, &[], &query, args.limit)?,
    };
    cx.out.list::<Run>(items, client.now())?;
    Ok(Exit::Done)
}

/// Cancel and kill stop what runs, so they preview and ask; pause and resume just do it.
fn steer(cx: &Cx, client: &Client, route: Route, verb: &str, args: Steer) -> Outcome {
    let run = args.run.find(client)?;
    let text = format!("{verb} {} {} ({})", run.dag_id, run.run_id, what_it_does(&run));
    if cx.global.dry_run {
        return cx.out.would(&text, &run).map(|()| Exit::Done);
    }
    if matches!(verb, "cancel" | "kill") {
        cx.confirm(&format!("Going to {text}. Go on?"))?;
    }
    let body = Action { reason: args.reason };
    let item = client.send(route, &[&run.dag_id, &run.run_id], &(), &body)?;
    if cx.out.data(&item)? {
        return Ok(Exit::Done);
    }
    let run: Run = typed(item)?;
    let paused = if run.paused { ", paused" } else { "" };
    cx.out.remark(&format!("{verb}: {} {} is {}{paused}", run.dag_id, run.run_id, run.state));
    Ok(Exit::Done)
}

fn what_it_does(run: &Run) -> String {
    let active = ["running", "queued", "restarting", "deferred"];
    let counts = active
        .iter()
        .filter_map(|state| run.task_counts.get(*state).map(|count| format!("{count} {state}")));
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() { run.state.clone() } else { counts.join(", ") }
}

fn clear(cx: &Cx, client: &Client, args: ClearRun) -> Outcome {
    let run = args.run.find(client)?;
    let body = Clear {
        only_failed: args.only_failed,
        new_keys: args.new_keys,
        latest_version: args.latest,
        reason: args.reason,
        ..Clear::default()
    };
    let at = [run.dag_id.as_str(), run.run_id.as_str()];
    plan::carry_out(cx, client, (routes::RUN_CLEAR, &at), "clear", &body)
}

fn delete(cx: &Cx, client: &Client, target: &RunTarget) -> Outcome {
    let run = target.find(client)?;
    let text = format!("{} {} ({})", run.dag_id, run.run_id, run.state);
    if cx.global.dry_run {
        return cx.out.would(&format!("delete {text}"), &run).map(|()| Exit::Done);
    }
    cx.confirm(&format!("Delete {text} with its attempts, outputs and logs?"))?;
    client.get(routes::RUN_DELETE, &[&run.dag_id, &run.run_id], &())?;
    cx.out.remark(&format!("deleted {text}"));
    Ok(Exit::Done)
}
