//! `fencepost workers`.

use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::typed;
use clap::Subcommand;
use fencepost_api::rest::{Action, ConfirmDead, DryRun, Page, Worker, WorkerQuery, routes};

/// Show and order workers
#[derive(Debug, Subcommand)]
pub(crate) enum Workers {
    /// List workers that live, and dead ones of which something is left
    #[command(after_help = "Example:\n  fencepost workers list -o wide")]
    List {
        /// Also those that ended in order
        #[arg(long)]
        all: bool,
        /// Of that name, or on that host
        #[arg(long, value_name = "NAME|HOST")]
        name: Option<String>,
    },
    /// Show one worker
    #[command(after_help = "Example:\n  fencepost workers show w-3")]
    Show {
        /// Its name (the newest of that name) or id
        worker: String,
    },
    /// Let it claim nothing more; what it runs goes on
    #[command(after_help = "Example:\n  fencepost workers drain w-3 --reason \"new kernel\"")]
    Drain {
        /// Its name (the newest of that name) or id
        worker: String,
        /// Kept with the event
        #[arg(long)]
        reason: Option<String>,
    },
    /// Let a draining worker claim again
    #[command(after_help = "Example:\n  fencepost workers resume w-3")]
    Resume {
        /// Its name (the newest of that name) or id
        worker: String,
        /// Kept with the event
        #[arg(long)]
        reason: Option<String>,
    },
    /// Take a worker that is over from the lists
    #[command(after_help = "Example:\n  fencepost workers remove w-3 --yes")]
    Remove {
        /// Its name (the newest of that name) or id
        worker: String,
    },
    /// State that all its processes are gone: its work starts elsewhere at once
    #[command(
        name = "confirm-dead",
        after_help = "\
This is evidence, and nobody checks it: be sure that the machine is off. If it is not, its tasks
may run beside their replacements until its lease ends.

Example:
  fencepost workers confirm-dead node-b --reason \"power supply burnt\""
    )]
    ConfirmDead {
        /// A worker's name or id, or a host: all its workers
        name: String,
        /// Kept with the event
        #[arg(long)]
        reason: Option<String>,
    },
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Workers) -> Outcome {
    let client = cx.client()?;
    match verb {
        Workers::List { all, name } => {
            let query = WorkerQuery { all, name, ..WorkerQuery::default() };
            let items = client.list(routes::WORKER_LIST, &[], &query, None)?;
            cx.out.list::<Worker>(items, client.now())?;
        }
        Workers::Show { worker } => {
            let found = client.get(routes::WORKER_SHOW, &[&worker], &())?;
            cx.out.show::<Worker>(found, client.now())?;
        }
        Workers::Drain { worker, reason } => {
            let found: Worker = client.read(routes::WORKER_SHOW, &[&worker])?;
            if cx.global.dry_run {
                let text = format!("drain {}", line(&found));
                return cx.out.would(&text, &found).map(|()| Exit::Done);
            }
            cx.confirm(&format!("Drain {}?", line(&found)))?;
            let body = Action { reason };
            let found = client.send(routes::WORKER_DRAIN, &[&found.id], &(), &body)?;
            cx.out.show::<Worker>(found, client.now())?;
        }
        Workers::Resume { worker, reason } => {
            let body = Action { reason };
            let found = client.send(routes::WORKER_RESUME, &[&worker], &(), &body)?;
            cx.out.show::<Worker>(found, client.now())?;
        }
        Workers::Remove { worker } => {
            let found: Worker = client.read(routes::WORKER_SHOW, &[&worker])?;
            if cx.global.dry_run {
                let text = format!("remove {}", line(&found));
                return cx.out.would(&text, &found).map(|()| Exit::Done);
            }
            cx.confirm(&format!("Remove {}?", line(&found)))?;
            client.get(routes::WORKER_REMOVE, &[&found.id], &())?;
            cx.out.remark(&format!("removed {}", found.name));
        }
        Workers::ConfirmDead { name, reason } => confirm_dead(cx, &client, name, reason)?,
    }
    Ok(Exit::Done)
}

fn confirm_dead(cx: &Cx, client: &Client, name: String, reason: Option<String>) -> Outcome<()> {
    let body = ConfirmDead { name, reason };
    let ask = |dry_run| client.send(routes::WORKER_CONFIRM_DEAD, &[], &DryRun { dry_run }, &body);
    let planned: Page<Worker> = typed(ask(true)?)?;
    let lines: Vec<String> =
        planned.items.iter().map(|found| format!("  {}\n", line(found))).collect();
    if cx.global.dry_run {
        let text = format!("confirm as dead:\n{}", lines.concat().trim_end());
        return cx.out.would(&text, &planned.items);
    }
    if lines.is_empty() {
        cx.out.remark(&format!("nothing of {} is left", body.name));
        return Ok(());
    }
    cx.out.remark(lines.concat().trim_end());
    cx.confirm("Are all processes of these workers gone?")?;
    let done: Page<serde_json::Value> = typed(ask(false)?)?;
    cx.out.list::<Worker>(done.items, client.now())
}

fn line(worker: &Worker) -> String {
    let Worker { name, host, liveness, leases, .. } = worker;
    format!("{name} on {host} ({liveness}, {leases} attempts in its hands)")
}
