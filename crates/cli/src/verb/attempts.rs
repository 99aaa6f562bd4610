//! `fencepost attempts`: one dispatch, by its id or token.

use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::typed;
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
        return cx.out.would(&text, &attempt);
    }
    cx.confirm(&format!("Going to {text}. Go on?"))?;
    let body = Action { reason: args.reason };
    let item = client.send(route, &[&attempt.attempt_id], &(), &body)?;
    if !cx.out.data(&item)? {
        cx.out.remark(&what_it_is(&typed(item)?));
    }
    Ok(())
}

/// What an attempt is now, and what follows by itself.
fn what_it_is(attempt: &Attempt) -> String {
    let name = format!("attempt {}", attempt.attempt_number);
    match (attempt.state.as_str(), attempt.outcome.as_deref()) {
        ("lost_open", _) => format!(
            "{name} was lost before: no order reaches its processes, and they may still run; \
             confirm-dead says that they are gone"
        ),
        ("stopping", _) => format!("{name} is being stopped; it is over when its tree is gone"),
        (_, Some(outcome)) => {
            let reason = attempt.reason.as_deref().unwrap_or(outcome);
            let runs = if attempt.may_still_run { "; its processes may still run" } else { "" };
            format!("{name} is over: {outcome} ({reason}){runs}")
        }
        (state, None) => format!("{name} is {state}"),
    }
}
