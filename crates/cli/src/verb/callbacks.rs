//! `fencepost callbacks`: what is told to the outside, and whether it arrived.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use fencepost_api::rest::{Action, Callback, CallbackQuery, routes};

/// Callbacks and notifications: what waits, what arrived, what nobody tries any more
#[derive(Debug, Subcommand)]
pub(crate) enum Callbacks {
    /// List callbacks, the oldest first
    #[command(after_help = "Example:\n  fencepost callbacks list --state dead -o wide")]
    List {
        /// Only those in this state
        #[arg(long, value_parser = PossibleValuesParser::new(["due", "delivered", "dead"]))]
        state: Option<String>,
        /// Only those of this DAG
        #[arg(long, value_name = "DAG")]
        dag: Option<String>,
        /// Only the first N
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Try dead ones again: another round of attempts, under the same ids
    #[command(after_help = "\
Examples:
  fencepost callbacks retry 019a4c3e-...
  fencepost callbacks retry --all --dag sales --reason \"the receiver is back\"")]
    Retry {
        /// Ids
        #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
        ids: Vec<String>,
        /// All that are dead
        #[arg(long)]
        all: bool,
        /// With --all: only those of this DAG
        #[arg(long, value_name = "DAG", conflicts_with = "ids")]
        dag: Option<String>,
        /// Kept in the history
        #[arg(long)]
        reason: Option<String>,
    },
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Callbacks) -> Outcome {
    let client = cx.client()?;
    match verb {
        Callbacks::List { state, dag, limit } => {
            let query = CallbackQuery { state, dag_id: dag, ..CallbackQuery::default() };
            let items = client.list(routes::CALLBACK_LIST, &[], &query, limit)?;
            cx.out.list::<Callback>(items, client.now())?;
        }
        Callbacks::Retry { ids, all, dag, reason } => {
            let ids = if all { dead(cx, dag)? } else { ids };
            if cx.global.dry_run {
                cx.out.data(&ids)?;
                return Ok(Exit::Done);
            }
            let body = Action { reason };
            let mut refused = None;
            for id in &ids {
                match client.send(routes::CALLBACK_RETRY, &[id], &(), &body) {
                    Ok(_) => cx.out.remark(&format!("{id}: due again")),
                    // With --all one that cannot be sent stops none of the others.
                    Err(error) if all => {
                        cx.out.remark(&format!("{id}: {error}"));
                        refused = Some(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            return refused.map_or(Ok(Exit::Done), Err);
        }
    }
    Ok(Exit::Done)
}

fn dead(cx: &Cx, dag_id: Option<String>) -> Result<Vec<String>, CliError> {
    let query = CallbackQuery { state: Some("dead".into()), dag_id, ..CallbackQuery::default() };
    let items = cx.client()?.list(routes::CALLBACK_LIST, &[], &query, None)?;
    items.into_iter().map(|item| typed::<Callback>(item).map(|one| one.id)).collect()
}
