//! `fencepost attempts`: one dispatch, by its id or token.

use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::view::task_label;
use clap::{Args, Subcommand};
use fencepost_api::rest::routes::{self, Route};
use fencepost_api::rest::{Action, Attempt, Event, ListQuery};

/// Look at one attempt, stop it, or vouch for its death
#[derive(Debug, Subcommand)]
pub(crate) enum Attempts {
    /// Show an attempt with who ended it and on which evidence
    #[command(after_help = "Example:\n  fencepost attempts show 7-48211")]
    Show {
        /// The attempt's id, or its token (7-48211)
        attempt: String,
    },
    /// Show what happened to an attempt, refused writes included
    #[command(after_help = "Example:\n  fencepost attempts events 7-48211 -o json")]
    Events {
        /// The attempt's id, or its token (7-48211)
        attempt: String,
    },
    /// End one attempt at once; its task instance fails and is not tried again (clear it for that)
    #[command(after_help = "Example:\n  fencepost attempts kill 7-48211 --reason \"stuck\"")]
    Kill(Steer),
    /// Say that the processes of an attempt are surely gone; its replacement need not wait
    #[command(
        after_help = "Example:\n  fencepost attempts confirm-dead 7-48211 --reason \"host was scrapped\""
    )]
    ConfirmDead(Steer),
}

/// An attempt and why.
#[derive(Debug, Args)]
pub(crate) struct Steer {
    /// The attempt's id, or its token (7-48211)
    attempt: String,
    /// Kept in the history
    #[arg(long)]
    reason: Option<String>,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Attempts) -> Outcome {
    let client = cx.client()?;
    match verb {
        Attempts::Show { attempt } => {
            let item = client.get(routes::ATTEMPT_SHOW, &[&attempt], &())?;
            cx.out.show::<Attempt>(item, client.now())?;
        }
        Attempts::Events { attempt } => {
            let query = ListQuery::default();
            let items = client.list(routes::ATTEMPT_EVENTS, &[&attempt], &query, None)?;
            cx.out.list::<Event>(items, client.now())?;
        }
        Attempts::Kill(args) => steer(cx, &client, routes::ATTEMPT_KILL, "kill", args)?,
        Attempts::ConfirmDead(args) => {
            steer(cx, &client, routes::ATTEMPT_CONFIRM_DEAD, "confirm as dead", args)?;
        }
    }
    Ok(Exit::Done)
}

fn steer(cx: &Cx, client: &Client, route: Route, verb: &str, args: Steer) -> Outcome<()> {
    let attempt: Attempt = client.read(routes::ATTEMPT_SHOW, &[&args.attempt])?;
    let task = task_label(&attempt.task_id, attempt.map_index, None);
    let text = format!(
        "{verb} attempt {} of {}/{}/{task} ({})",
        attempt.attempt_number, attempt.dag_id, attempt.run_id, attempt.state
    );
    if cx.global.dry_run {
        return cx.out.print(&format!("would {text}\n"));
    }
    cx.confirm(&format!("Going to {text}. Go on?"))?;
    let body = Action { reason: args.reason };
    let item = client.send(route, &[&attempt.attempt_id], &(), &body)?;
    if !cx.out.data(&item)? {
        cx.out.remark(&format!("{verb}: done"));
    }
    Ok(())
}
