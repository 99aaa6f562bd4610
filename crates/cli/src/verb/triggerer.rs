//! `fencepost triggerer`: the role that watches what deferred tasks wait for.

use super::role::{self, Flags, Signals};
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::node::{Options, TriggererNode};
use clap::Args;

/// Run one triggerer over a PostgreSQL store
#[derive(Debug, Args)]
#[command(after_help = "\
When it watches it prints one line on stdout: ready, and with --listen its address.

Several may work on one store: they share what is to be watched, and take over from each other.
SIGTERM is a restart: what it watched goes to the others at once.

Examples:
  fencepost triggerer --store postgres://db/fencepost")]
pub(crate) struct Triggerer {
    /// The store [default: [store] url]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Answer people's questions here too; port 0 lets the system choose [default: it does not listen]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(cx: &Cx, args: Triggerer) -> Outcome {
    let mut flags: Flags = Vec::new();
    flags.extend(args.store.map(|store| ("store.url", "--store", store)));
    let listens = args.listen.is_some();
    flags.extend(args.listen.map(|listen| ("server.listen", "--listen", listen)));
    let options = role::options(cx, flags, false, &["triggerer"])?;
    let runtime = role::runtime()?;
    let done = runtime.block_on(watch(&options, listens));
    runtime.shutdown_background();
    done.map(|()| Exit::Done)
}

async fn watch(options: &Options, listens: bool) -> Outcome<()> {
    let mut signals = Signals::listen()?;
    let triggerer = tokio::select! {
        started = TriggererNode::start(options, listens) => started?,
        () = signals.heard() => return Ok(()),
    };
    let address = triggerer.address.as_ref().map(ToString::to_string);
    role::say_ready(address.as_deref())?;
    signals.heard_before(triggerer.broken()).await?;
    triggerer.stop().await;
    Ok(())
}
