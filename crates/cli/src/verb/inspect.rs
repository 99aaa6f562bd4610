//! `fencepost inspect`: the classic questions.

use super::look;
use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::Args;
use clap::builder::PossibleValuesParser;
use fencepost_api::rest::{Finding, routes};
use fencepost_engine::operations::inspect::Question;
use fencepost_server::rest::inspection;
use serde_json::Value;

/// Ask what lives, what is lost, and what nobody has
#[derive(Debug, Args)]
#[command(after_help = "\
schedulers   who schedules, and until when their leases last
zombies      attempts whose worker is lost or silent while they may still run
orphans      claims of workers that are over, not settled yet
triggers     deferred work
callbacks    what was to be told to the outside and has not arrived
ghosts       what nothing alive is responsible for: there must never be one (exit 1)

Example:
  fencepost inspect zombies -o json
  fencepost inspect orphans --store postgres://fencepost@db/fencepost    without a server")]
pub(crate) struct InspectArgs {
    /// The question
    #[arg(value_parser = PossibleValuesParser::new(["schedulers", "zombies", "orphans", "triggers", "callbacks", "ghosts"]))]
    question: String,
    /// Look into this store itself (sqlite:PATH or postgres://...); no server is asked. Without it the
    /// configured store is read where no server answers
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

/// Prints what is found; a ghost is a failure.
pub(super) fn run(cx: &Cx, args: &InspectArgs) -> Outcome {
    let there = |client: &Client| client.list(routes::INSPECT, &[&args.question], &(), None);
    let there = |client: &Client| there(client).map(Value::Array);
    let here = |engine| find(engine, &args.question);
    let (answer, now) = look::ask(cx, args.store.as_ref(), there, here)?;
    let items = answer.as_array().cloned().unwrap_or_default();
    let is_bad = args.question == "ghosts" && !items.is_empty();
    if items.is_empty() && !cx.out.format.is_data() {
        cx.out.remark(&format!("no {}", args.question));
        return Ok(Exit::Done);
    }
    cx.out.list::<Finding>(items, now)?;
    Ok(if is_bad { Exit::Unexpected } else { Exit::Done })
}

/// The answer by this process.
async fn find(engine: fencepost_engine::Cx, question: &str) -> Outcome<Value> {
    let question = Question::parse(question).map_err(|error| look::failed(&error))?;
    let found = inspection(&engine, question).await.map_err(|error| look::failed(&error))?;
    serde_json::to_value(found).map_err(|error| look::failed(&error))
}
