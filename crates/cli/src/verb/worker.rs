//! `fencepost worker`: the role that runs tasks.

use super::role::{self, Flags, Signals};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::node::{Detached, Employer, Options, WorkerNode};
use clap::Args;
use fencepost_core::id::Token;
use std::path::PathBuf;

/// Run one worker, which calls a server and needs no database
#[derive(Debug, Args)]
#[command(after_help = "\
It joins with the token in FENCEPOST_WORKER_TOKEN (fencepost tokens create --role worker). Once it has
joined it prints one line on stdout: ready

One worker lives in a home. Killed at any moment, it goes on when it is started again with the same
home: running tasks go on meanwhile, and are found by the next start. SIGTERM is a restart too: it
claims nothing more, waits worker.drain_timeout, and leaves the rest to its shims. Where these cannot
outlive it (it is PID 1 of a container, or systemd ends all of its service) SIGTERM is a drain: tasks get
SIGTERM in time for worker.stop_timeout, and are reported and released.

Examples:
  fencepost worker --server http://10.0.0.5:7373 --name w-1 -q default,gpu -c 8
  fencepost worker --server https://fencepost.example:7373 --ca ca.pem --home /srv/worker")]
pub(crate) struct Worker {
    /// Its name on pages and in events [default: the host's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The queues that it serves (also -q) [default: default]
    #[arg(long, value_name = "QUEUE,...")]
    queues: Option<String>,
    /// Attempts that run at the same time [default: 2 x cores]
    #[arg(short = 'c', long, value_name = "N")]
    slots: Option<u32>,
    /// End a living worker or standalone that holds this home
    #[arg(long)]
    take_over: bool,
}

/// Runs until SIGTERM or SIGINT.
pub(super) fn run(cx: &Cx, args: Worker) -> Outcome {
    let mut flags: Flags = Vec::new();
    flags.extend(args.name.map(|name| ("worker.name", "--name", name)));
    flags.extend(args.queues.map(|queues| ("worker.queues", "--queues", queues)));
    flags.extend(args.slots.map(|slots| ("worker.slots", "--slots", slots.to_string())));
    let options = role::options(cx, flags, args.take_over, &["worker"])?;
    let employer = employer(cx, &options)?;
    let runtime = role::runtime()?;
    let done = runtime.block_on(work(&options, &employer));
    if let Ok(Some(left)) = &done {
        say_what_is_left(left, cx);
    }
    runtime.shutdown_background();
    done.map(|_| Exit::Done)
}

fn employer(cx: &Cx, options: &Options) -> Outcome<Employer> {
    let variable = cx.env.get("FENCEPOST_SERVER");
    let named = cx.global.server.as_deref().or(variable).or(options.settings.text("server.url"));
    let Some(url) = named else {
        return Err(CliError::usage("a worker has to know its server")
            .hint("fencepost worker --server http://HOST:7373"));
    };
    let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let token = cx.env.get("FENCEPOST_WORKER_TOKEN").map(str::trim).unwrap_or_default();
    if token.is_empty() {
        return Err(CliError::new(Exit::NotAllowed, "FENCEPOST_WORKER_TOKEN is not set")
            .hint("make a token for it:  fencepost tokens create --role worker"));
    }
    let configured = options.settings.text("worker.server_ca").map(PathBuf::from);
    let ca = cx.global.ca.clone().or(configured);
    let ca = ca.map(std::path::absolute).transpose()?;
    Ok(Employer { url: url.trim_end_matches('/').to_owned(), ca, join_token: token.to_owned() })
}

/// `None`: it was told to end before it had joined.
async fn work(options: &Options, employer: &Employer) -> Outcome<Option<Detached>> {
    let mut signals = Signals::listen()?;
    let worker = tokio::select! {
        started = WorkerNode::start(options, employer) => started?,
        () = signals.heard() => return Ok(None),
    };
    tokio::select! {
        () = worker.registered() => role::say_ready(None)?,
        () = signals.heard() => return worker.stop().await.map(Some),
    }
    tokio::select! {
        () = signals.heard() => {}
        // What ended it is its result.
        () = worker.broken() => {}
    }
    worker.stop().await.map(Some)
}

fn say_what_is_left(left: &Detached, cx: &Cx) {
    if let Some(why) = &left.unheard {
        cx.out.remark(&format!("the server did not hear that this worker ends: {why}"));
    }
    if left.running.is_empty() {
        return;
    }
    let shown: Vec<String> = left
        .running
        .iter()
        .map(|token| token.parse::<Token>().map_or_else(|_| token.clone(), |t| t.to_string()))
        .collect();
    let until = crate::clock::now().plus(left.wait);
    cx.out.remark(&format!(
        "left running under their shims: {} ({}). They wait until {until} at the latest: start again \
         with the same home to go on with them.",
        shown.len(),
        shown.join(", ")
    ));
}
