//! `fencepost incidents`: one death, with everything that it took.

use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::Subcommand;
use fencepost_api::rest::{Action, Incident, IncidentDetail, IncidentQuery, routes};

/// What died, what was lost with it, and what became of that
#[derive(Debug, Subcommand)]
pub(crate) enum Incidents {
    /// List incidents, the newest first
    #[command(after_help = "Example:\n  fencepost incidents list --open")]
    List {
        /// Only those that are not closed
        #[arg(long)]
        open: bool,
        /// Only the first N
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Show one with its evidence, its attempts and what replaced them
    #[command(after_help = "Example:\n  fencepost incidents show inc-204")]
    Show {
        /// inc-204, or its number
        incident: String,
    },
    /// State that nobody has to look after it any more
    ///
    /// An incident closes by itself once all its attempts are settled, nothing of it may still run, and
    /// what replaces them has started.
    #[command(
        after_help = "Example:\n  fencepost incidents close inc-204 --reason \"the host was scrapped\""
    )]
    Close {
        /// inc-204, or its number
        incident: String,
        /// Kept in the history
        #[arg(long)]
        reason: String,
    },
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Incidents) -> Outcome {
    let client = cx.client()?;
    match verb {
        Incidents::List { open, limit } => {
            let query = IncidentQuery { open, ..IncidentQuery::default() };
            let items = client.list(routes::INCIDENT_LIST, &[], &query, limit)?;
            cx.out.list::<Incident>(items, client.now())?;
        }
        Incidents::Show { incident } => {
            let found = client.get(routes::INCIDENT_SHOW, &[&incident], &())?;
            cx.out.show::<IncidentDetail>(found, client.now())?;
        }
        Incidents::Close { incident, reason } => {
            let found: IncidentDetail = client.read(routes::INCIDENT_SHOW, &[&incident])?;
            let Incident { id, may_still_run, attempt_count, .. } = &found.incident;
            let text = format!(
                "close {id} ({attempt_count} attempts lost, {may_still_run} may still run)"
            );
            if cx.global.dry_run {
                return cx.out.would(&text, &found.incident).map(|()| Exit::Done);
            }
            cx.confirm(&format!("Going to {text}. Go on?"))?;
            let body = Action { reason: Some(reason) };
            let item = client.send(routes::INCIDENT_CLOSE, &[id], &(), &body)?;
            cx.out.show::<Incident>(item, client.now())?;
        }
    }
    Ok(Exit::Done)
}
