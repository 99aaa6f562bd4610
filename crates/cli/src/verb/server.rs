//! `fencepost server`: the role that people, workers and tasks call.

use super::role::{self, Flags, Signals};
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::node::{Options, ServerNode};
use clap::Args;

/// Run one server: both APIs over a PostgreSQL store
#[derive(Debug, Args)]
#[command(after_help = "\
When it serves it prints one line on stdout: ready http://127.0.0.1:7373

Several may serve one store. Beyond this host it wants TLS ([server] tls_cert, tls_key). SIGTERM is a
restart: calls in flight are answered, long polls at once, and workers find the next one.

Examples:
  fencepost server --store postgres://db/fencepost
  fencepost server --listen 127.0.0.1:0")]
pub(crate) struct Server {
    /// The store [default: [store] url]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Where to listen; port 0 lets the system choose [default: 127.0.0.1:7373]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
}

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(cx: &Cx, args: Server) -> Outcome {
    let mut flags: Flags = Vec::new();
    flags.extend(args.store.map(|store| ("store.url", "--store", store)));
    flags.extend(args.listen.map(|listen| ("server.listen", "--listen", listen)));
    let options = role::options(cx, flags, false, &["server"])?;
    let runtime = role::runtime()?;
    let done = runtime.block_on(serve(&options));
    runtime.shutdown_background();
    done.map(|()| Exit::Done)
}

async fn serve(options: &Options) -> Outcome<()> {
    let mut signals = Signals::listen()?;
    let server = tokio::select! {
        started = ServerNode::start(options) => started?,
        () = signals.heard() => return Ok(()),
    };
    role::say_ready(Some(&server.address.to_string()))?;
    signals.heard_before(server.broken()).await?;
    server.stop().await;
    Ok(())
}
