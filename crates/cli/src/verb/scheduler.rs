//! `fencepost scheduler`: the role that keeps everything moving.

use super::role::{self, Flags, Signals};
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::node::{Options, SchedulerNode};
use clap::Args;
use std::path::PathBuf;

/// Run one scheduler over a PostgreSQL store
#[derive(Debug, Args)]
#[command(after_help = "\
When it schedules it prints one line on stdout: ready, and with --listen its address.

Several may work on one store; each reads its own DAG folder, which should have the same files.
SIGTERM is a restart: it ends after the turn that is under way.

Examples:
  fencepost scheduler --store postgres://db/fencepost --dags dags/")]
pub(crate) struct Scheduler {
    /// The store [default: [store] url]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// The folder of DAG files [default: $FENCEPOST_HOME/dags]
    #[arg(long, value_name = "DIR")]
    dags: Option<PathBuf>,
    /// Answer people's questions here too; port 0 lets the system choose [default: it does not listen]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(cx: &Cx, args: Scheduler) -> Outcome {
    let mut flags: Flags = Vec::new();
    flags.extend(args.store.map(|store| ("store.url", "--store", store)));
    flags.extend(args.dags.map(|dags| ("dags.path", "--dags", dags.display().to_string())));
    let listens = args.listen.is_some();
    flags.extend(args.listen.map(|listen| ("server.listen", "--listen", listen)));
    let options =
        role::options(cx, flags, false, &["scheduler", "recovery", "alerts", "retention"])?;
    let runtime = role::runtime()?;
    let done = runtime.block_on(schedule(&options, listens));
    runtime.shutdown_background();
    done.map(|()| Exit::Done)
}

async fn schedule(options: &Options, listens: bool) -> Outcome<()> {
    let mut signals = Signals::listen()?;
    let scheduler = tokio::select! {
        started = SchedulerNode::start(options, listens) => started?,
        () = signals.heard() => return Ok(()),
    };
    let address = scheduler.address.as_ref().map(ToString::to_string);
    role::say_ready(address.as_deref())?;
    signals.heard_before(scheduler.broken()).await?;
    scheduler.stop().await;
    Ok(())
}
