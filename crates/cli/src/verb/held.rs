//! `fencepost held`: tasks that wait for a person's decision.

use super::target::TaskTarget;
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use crate::view::task_label;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use fencepost_api::rest::{HeldTask, ListQuery, Resolve, TaskInstance, TaskQuery, routes};

/// Tasks that are held: nothing happens to them before a person, or evidence, decides
#[derive(Debug, Subcommand)]
pub(crate) enum Held {
    /// List the held task instances of all DAGs, with why they are held
    #[command(after_help = "Example:\n  fencepost held list -o wide")]
    List {
        /// Only the first N
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Decide about a held task: it counts as done, it has failed, or it runs again
    #[command(after_help = "\
Examples:
  fencepost held resolve payments @latest charge --as success --reason \"charged, by the bank's list\"
  fencepost held resolve payments @latest charge --as rerun --confirm-dead")]
    Resolve(ResolveTask),
}

/// What is decided.
#[derive(Debug, Args)]
pub(crate) struct ResolveTask {
    #[command(flatten)]
    task: TaskTarget,
    /// What becomes of it
    #[arg(long = "as", value_name = "WHAT", value_parser = PossibleValuesParser::new(["success", "failed", "rerun"]))]
    decision: String,
    /// Nothing of its last attempt runs any more: you vouch for that
    #[arg(long)]
    confirm_dead: bool,
    /// Kept in the history
    #[arg(long)]
    reason: Option<String>,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Held) -> Outcome {
    match verb {
        Held::List { limit } => {
            let client = cx.client()?;
            let items = client.list(routes::HELD_LIST, &[], &ListQuery::default(), limit)?;
            cx.out.list::<HeldTask>(items, client.now())?;
            Ok(Exit::Done)
        }
        Held::Resolve(args) => resolve(cx, args),
    }
}

fn resolve(cx: &Cx, args: ResolveTask) -> Outcome {
    let client = cx.client()?;
    let run = args.task.run.find(&client)?;
    let (task_id, map_index) = args.task.named()?;
    let query = TaskQuery {
        task_id: Some(task_id.clone()),
        state: Some("held".into()),
        ..TaskQuery::default()
    };
    let at = [run.dag_id.as_str(), run.run_id.as_str()];
    let mut held = Vec::new();
    for item in client.list(routes::TASK_LIST, &at, &query, None)? {
        let one: TaskInstance = typed(item)?;
        if map_index.is_none_or(|index| i64::from(one.map_index) == i64::from(index)) {
            held.push(one);
        }
    }
    if held.is_empty() {
        let text = format!("no instance of `{task_id}` in {} is held", run.run_id);
        return Err(CliError::usage(text));
    }
    for one in &held {
        let task = task_label(&one.task_id, one.map_index, None);
        let why = one.reason.as_deref().unwrap_or("held");
        cx.out
            .remark(&format!("{task} of {} {} ({why}): {}", one.dag_id, one.run_id, args.decision));
    }
    if cx.global.dry_run {
        cx.out.data(&held)?;
        return Ok(Exit::Done);
    }
    cx.confirm("Go on?")?;
    let body =
        Resolve { decision: args.decision, confirm_dead: args.confirm_dead, reason: args.reason };
    for attempt in held.iter().filter_map(|one| one.attempt_id.as_deref()) {
        client.send(routes::HELD_RESOLVE, &[attempt], &(), &body)?;
    }
    cx.out.remark("done");
    Ok(Exit::Done)
}
