//! `fencepost standalone`: everything in one process.

use super::role::{self, Signals};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::node::{DagFolder, Left, Node, Options};
use clap::Args;
use fencepost_core::id::Token;
use fencepost_core::time::Span;
use std::path::PathBuf;

/// Run everything in one process: store (SQLite), scheduler, worker and server
#[derive(Debug, Args)]
#[command(after_help = "\
When it serves it prints one line on stdout: ready http://127.0.0.1:7373

Killed at any moment (kill -9, power, a closed lid), it goes on when it is started again with the
same home: running tasks go on meanwhile, and are found by the next start.

Examples:
  fencepost standalone --dags dags/
  fencepost standalone --home /srv/fencepost --listen 127.0.0.1:0 --slots 8")]
pub(crate) struct Standalone {
    /// The folder of DAG files [default: $FENCEPOST_HOME/dags]
    #[arg(long, value_name = "DIR")]
    dags: Option<PathBuf>,
    /// Where to listen; port 0 lets the system choose [default: 127.0.0.1:7373]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Attempts that run at the same time [default: 2 x cores]
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// End a living standalone or worker that holds this home
    #[arg(long)]
    take_over: bool,
}

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(cx: &Cx, args: Standalone) -> Outcome {
    let options = options(cx, &args)?;
    let runtime = role::runtime()?;
    let left = runtime.block_on(serve(options))?;
    say_what_is_left(&left, cx);
    // The threads of the store end with the process.
    runtime.shutdown_background();
    Ok(Exit::Done)
}

fn options(cx: &Cx, args: &Standalone) -> Outcome<Options> {
    let mut overrides = Vec::new();
    if let Some(dags) = &args.dags {
        overrides.push(("dags.path", "--dags", dags.display().to_string()));
    }
    if let Some(listen) = &args.listen {
        overrides.push(("server.listen", "--listen", listen.clone()));
    }
    if let Some(slots) = args.slots {
        overrides.push(("worker.slots", "--slots", slots.to_string()));
    }
    role::options(cx, overrides, args.take_over, &["recovery", "alerts", "retention"])
}

async fn serve(options: Options) -> Outcome<Left> {
    let mut signals = Signals::listen()?;
    let dags = PathBuf::from(options.settings.text("dags.path").unwrap_or("dags"));
    let interval = options.settings.span("scheduler.parse_interval").unwrap_or(Span::from_secs(5));
    let node = Node::start(options).await?;
    DagFolder::new(dags)
        .watch(cx_of(&node), interval.to_std())
        .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
    role::say_ready(Some(&node.address.to_string()))?;
    signals.heard_before(node.broken()).await?;
    node.stop().await
}

fn cx_of(node: &Node) -> impl Fn() -> fencepost_engine::Cx + Send + Sync + 'static {
    let cx = node.cx.clone();
    move || cx.clone()
}

fn say_what_is_left(left: &Left, cx: &Cx) {
    if left.running.is_empty() {
        return;
    }
    let shown: Vec<String> = left
        .running
        .iter()
        .map(|token| token.parse::<Token>().map_or_else(|_| token.clone(), |t| t.to_string()))
        .collect();
    cx.out.remark(&format!(
        "left running under their shims: {} ({}). Start again with the same home to go on with \
         them; without that they end after worker.orphan_ttl.",
        shown.len(),
        shown.join(", ")
    ));
}
