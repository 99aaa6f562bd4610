//! `fencepost inspect`: the classic questions.

use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::Args;
use clap::builder::PossibleValuesParser;
use fencepost_api::rest::{Finding, routes};

/// Ask what lives, what is lost, and what nobody has
#[derive(Debug, Args)]
#[command(after_help = "\
schedulers   who schedules, and until when their leases last
zombies      attempts whose worker is lost or silent while they may still run
orphans      claims of workers that are over, not settled yet
triggers     deferred work
ghosts       what nothing alive is responsible for: there must never be one (exit 1)

Example:
  fencepost inspect zombies -o json")]
pub(crate) struct InspectArgs {
    /// The question
    #[arg(value_parser = PossibleValuesParser::new(["schedulers", "zombies", "orphans", "triggers", "ghosts"]))]
    question: String,
}

/// Prints what is found; a ghost is a failure.
pub(super) fn run(cx: &Cx, args: &InspectArgs) -> Outcome {
    let client = cx.client()?;
    let items = client.list(routes::INSPECT, &[&args.question], &(), None)?;
    let is_bad = args.question == "ghosts" && !items.is_empty();
    if items.is_empty() && !cx.out.format.is_data() {
        cx.out.remark(&format!("no {}", args.question));
        return Ok(Exit::Done);
    }
    cx.out.list::<Finding>(items, client.now())?;
    Ok(if is_bad { Exit::Unexpected } else { Exit::Done })
}
