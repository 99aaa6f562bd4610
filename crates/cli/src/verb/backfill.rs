//! `fencepost backfill`.

use super::dags::params;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::typed;
use clap::{Args, Subcommand};
use fencepost_api::rest::{
    Action, Backfill, BackfillCreate, BackfillPreview, BackfillQuery, DagDetail, routes,
};

/// Run the slots of a range that have no run, or run them again
#[derive(Debug, Subcommand)]
pub(crate) enum Backfills {
    /// Make a backfill; the scheduler carries it out
    #[command(after_help = "\
Examples:
  fencepost backfill create sales_daily --from-date 2026-09-01 --to-date 2026-09-07 --dry-run
  fencepost backfill create sales_daily --from-date 2026-09-01 --to-date 2026-09-07 \\
      --reprocess-behavior failed --max-active-runs 2")]
    Create(Create),
    /// List backfills, the newest first
    #[command(after_help = "Example:\n  fencepost backfill list --dag sales_daily --open")]
    List {
        /// Only those of this DAG
        #[arg(long, value_name = "DAG")]
        dag: Option<String>,
        /// Only those that are not over
        #[arg(long)]
        open: bool,
        /// Only the first N
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Show one with its progress
    #[command(after_help = "Example:\n  fencepost backfill show 3")]
    Show {
        /// Its number
        id: u64,
    },
    /// Start nothing new of it until it is resumed; what runs goes on
    #[command(after_help = "Example:\n  fencepost backfill pause 3 --reason \"month end\"")]
    Pause(Of),
    /// Go on with it
    #[command(after_help = "Example:\n  fencepost backfill resume 3")]
    Resume(Of),
    /// Stop what runs of it, and make no more
    #[command(after_help = "Example:\n  fencepost backfill cancel 3 --yes")]
    Cancel(Of),
}

/// What is to be filled.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The DAG's id
    dag: String,
    /// First logical date: a date or local time in the DAG's zone, or an instant
    #[arg(long, value_name = "DATE")]
    from_date: String,
    /// Last logical date; a date is its whole day
    #[arg(long, value_name = "DATE")]
    to_date: String,
    /// Slots that have a run: leave them, run those again that failed, or all that are over
    #[arg(long, value_name = "WHICH", default_value = "none", value_parser = ["none", "failed", "completed"])]
    reprocess_behavior: String,
    /// Most of its runs at once, apart from the DAG's own [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_active_runs: Option<u32>,
    /// The newest slot first
    #[arg(long)]
    run_backwards: bool,
    /// A param of the new runs, typed as the DAG declares it
    #[arg(short, long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
}

/// One backfill, and why something is done with it.
#[derive(Debug, Args)]
pub(crate) struct Of {
    /// Its number
    id: u64,
    /// Kept in the history
    #[arg(long)]
    reason: Option<String>,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Backfills) -> Outcome {
    let client = cx.client()?;
    match verb {
        Backfills::Create(args) => return create(cx, args),
        Backfills::List { dag, open, limit } => {
            let query = BackfillQuery { dag_id: dag, open, ..BackfillQuery::default() };
            let items = client.list(routes::BACKFILL_LIST, &[], &query, limit)?;
            cx.out.list::<Backfill>(items, client.now())?;
        }
        Backfills::Show { id } => {
            let item = client.get(routes::BACKFILL_SHOW, &[&id.to_string()], &())?;
            cx.out.show::<Backfill>(item, client.now())?;
        }
        Backfills::Pause(of) => return act(cx, &of, "pause", routes::BACKFILL_PAUSE),
        Backfills::Resume(of) => return act(cx, &of, "resume", routes::BACKFILL_RESUME),
        Backfills::Cancel(of) => return act(cx, &of, "cancel", routes::BACKFILL_CANCEL),
    }
    Ok(Exit::Done)
}

fn create(cx: &Cx, args: Create) -> Outcome {
    let client = cx.client()?;
    let params = if args.params.is_empty() {
        serde_json::Map::new()
    } else {
        let dag: DagDetail = client.read(routes::DAG_SHOW, &[&args.dag])?;
        params::read(&dag.params, &args.params)?
    };
    let body = BackfillCreate {
        dag_id: args.dag,
        from_date: args.from_date,
        to_date: args.to_date,
        reprocess_behavior: Some(args.reprocess_behavior),
        max_active_runs: args.max_active_runs,
        run_backwards: args.run_backwards,
        params,
        conf: serde_json::Value::Null,
    };
    if cx.global.dry_run {
        let item = client.send(routes::BACKFILL_PREVIEW, &[], &(), &body)?;
        if !cx.out.data(&item)? {
            let preview: BackfillPreview = typed(item)?;
            cx.out.print(&format!("{}\n", preview.text))?;
        }
        return Ok(Exit::Done);
    }
    let item = client.send(routes::BACKFILL_CREATE, &[], &(), &body)?;
    if !cx.out.data(&item)? {
        let made: Backfill = typed(item)?;
        cx.out.print(&format!("{}\n", made.id))?;
        cx.out.remark(&format!("see how far it is:  fencepost backfill show {}", made.id));
    }
    Ok(Exit::Done)
}

fn act(cx: &Cx, of: &Of, word: &str, route: routes::Route) -> Outcome {
    let client = cx.client()?;
    let id = of.id.to_string();
    let found: Backfill = client.read(routes::BACKFILL_SHOW, &[&id])?;
    let open = found.progress.queued + found.progress.running;
    let text = format!("{word} backfill {id} of {} ({open} of its runs are open)", found.dag_id);
    if cx.global.dry_run {
        return cx.out.would(&text, &found).map(|()| Exit::Done);
    }
    if word == "cancel" {
        cx.confirm(&format!("Going to {text}. Go on?"))?;
    }
    let body = Action { reason: of.reason.clone() };
    let item = client.send(route, &[&id], &(), &body)?;
    cx.out.show::<Backfill>(item, client.now())?;
    Ok(Exit::Done)
}
