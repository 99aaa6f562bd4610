//! `fencepost events`: the transition log of a run or a task instance.

use super::target::{RunTarget, split};
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::Args;
use fencepost_api::rest::{Event, EventQuery, routes};
use serde_json::Value;

/// Show what happened to a run, in order, with who did it and why
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  fencepost events sales_daily @latest
  fencepost events sales_daily @latest load --kind attempt_lost,write_refused -o json")]
pub(crate) struct Events {
    #[command(flatten)]
    run: RunTarget,
    /// Of this task only
    task: Option<String>,
    /// Kinds, separated by commas
    #[arg(long)]
    kind: Option<String>,
    /// Only the first N
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

/// Prints them.
pub(super) fn run(cx: &Cx, args: Events) -> Outcome {
    let client = cx.client()?;
    let run = args.run.find(&client)?;
    let (task_id, map_index) = match args.task.as_deref().map(split).transpose()? {
        Some((task, index)) => (Some(task.to_owned()), index.and_then(|i| i32::try_from(i).ok())),
        None => (None, None),
    };
    let mut query = EventQuery {
        dag_id: Some(run.dag_id),
        run_id: Some(run.run_id),
        task_id,
        map_index,
        kind: args.kind,
        ..EventQuery::default()
    };
    let mut items: Vec<Value> = Vec::new();
    let most = args.limit.map_or(usize::MAX, |limit| limit as usize);
    while items.len() < most {
        query.limit = Some(u32::try_from(most - items.len()).unwrap_or(1_000).min(1_000));
        let page = client.get(routes::EVENTS, &[], &query)?;
        let more = page["items"].as_array().cloned().unwrap_or_default();
        let last = more.last().and_then(|event| event["seq"].as_i64());
        items.extend(more);
        if last.is_none() || page["next_cursor"].is_null() {
            break;
        }
        query.after = last;
    }
    cx.out.list::<Event>(items, client.now())?;
    Ok(Exit::Done)
}
