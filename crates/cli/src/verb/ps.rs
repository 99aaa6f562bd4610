//! `fencepost ps`: what runs.

use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::view::attempt::Active;
use clap::Args;
use fencepost_api::rest::{AttemptQuery, routes};

/// List running attempts of all DAGs
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fencepost ps --dag sales_daily -o wide")]
pub(crate) struct Ps {
    /// Of this DAG only
    #[arg(long)]
    dag: Option<String>,
    /// On this worker only
    #[arg(long)]
    worker: Option<String>,
    /// Also those that are queued
    #[arg(short, long)]
    all: bool,
}

/// Prints them.
pub(super) fn run(cx: &Cx, args: Ps) -> Outcome {
    let running = "claimed,running,stopping,lost_open";
    let state = if args.all { format!("queued,{running}") } else { running.into() };
    let query = AttemptQuery {
        state: Some(state),
        dag_id: args.dag,
        worker: args.worker,
        ..AttemptQuery::default()
    };
    let client = cx.client()?;
    let items = client.list(routes::ATTEMPT_LIST, &[], &query, None)?;
    cx.out.list::<Active>(items, client.now())?;
    Ok(Exit::Done)
}
