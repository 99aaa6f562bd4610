//! `fencepost dags`.

mod diff;
mod graph;
pub(super) mod params;
pub(crate) mod trigger;

use crate::client::Client;
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::output::typed;
use clap::{Args, Subcommand, ValueEnum};
use fencepost_api::rest::{
    Dag, DagDetail, DagPatch, DagQuery, DagVersion, DagVersionDetail, DryRun, ImportError,
    ListQuery, NextRun, PauseEffect, Slot, SlotQuery, routes,
};

/// Look at DAGs, pause them, trigger runs
#[derive(Debug, Subcommand)]
pub(crate) enum Dags {
    /// List DAGs with their next run and last outcomes
    #[command(after_help = "Example:\n  fencepost dags list --tag sales -o wide")]
    List(List),
    /// Show one DAG: schedule, limits, tasks, params
    #[command(after_help = "Example:\n  fencepost dags show sales_daily")]
    Show {
        /// The DAG's id
        dag: String,
    },
    /// Show the coming slots of a DAG, or the next one of each
    #[command(
        after_help = "Examples:\n  fencepost dags next\n  fencepost dags next sales_daily -n 5"
    )]
    Next {
        /// The DAG's id; else the next slot of each
        dag: Option<String>,
        /// How many slots
        #[arg(short, default_value_t = 5)]
        n: u32,
    },
    /// List the versions of a DAG, newest first
    #[command(after_help = "Example:\n  fencepost dags versions sales_daily")]
    Versions {
        /// The DAG's id
        dag: String,
    },
    /// Print the file of a DAG as it is, or was at a version
    #[command(after_help = "Example:\n  fencepost dags source sales_daily --version 3")]
    Source {
        /// The DAG's id
        dag: String,
        /// Which version; else the newest
        #[arg(long, value_name = "N")]
        version: Option<u32>,
    },
    /// Show what changed from one version to another
    #[command(
        after_help = "Examples:\n  fencepost dags diff sales_daily\n  fencepost dags diff sales_daily 3 5"
    )]
    Diff {
        /// The DAG's id
        dag: String,
        /// From this version; else the one before TO
        from: Option<u32>,
        /// To this version; else the newest
        to: Option<u32>,
    },
    /// Start no more runs of a DAG by schedule
    #[command(after_help = "Example:\n  fencepost dags pause sales_daily")]
    Pause {
        /// The DAG's id
        dag: String,
    },
    /// Let a DAG run by schedule again; says first what starts at once
    #[command(after_help = "Example:\n  fencepost dags unpause sales_daily --dry-run")]
    Unpause {
        /// The DAG's id
        dag: String,
    },
    /// Start a run now
    #[command(after_help = trigger::EXAMPLES)]
    Trigger(trigger::Trigger),
    /// List DAG files that cannot be read, with their mistakes; exit 2 if there are any
    #[command(after_help = "Example:\n  fencepost dags errors")]
    Errors,
    /// Draw the tasks of a DAG
    #[command(after_help = "Example:\n  fencepost dags graph sales_daily --format mermaid")]
    Graph {
        /// The DAG's id
        dag: String,
        /// The language
        #[arg(long = "format", value_name = "FORMAT", value_enum, default_value_t)]
        language: GraphFormat,
    },
}

/// Filters of a list.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// With this tag
    #[arg(long)]
    tag: Option<String>,
    /// Only paused ones
    #[arg(long, conflicts_with = "active")]
    paused: bool,
    /// Only those that are not paused
    #[arg(long)]
    active: bool,
    /// Also those whose file is gone
    #[arg(short, long)]
    all: bool,
    /// Only the first N
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
}

/// Languages of graphs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphFormat {
    /// Graphviz
    #[default]
    Dot,
    Mermaid,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Dags) -> Outcome {
    let client = cx.client()?;
    match verb {
        Dags::List(args) => list(cx, &client, args)?,
        Dags::Show { dag } => {
            let item = client.get(routes::DAG_SHOW, &[&dag], &())?;
            cx.out.show::<DagDetail>(item, client.now())?;
        }
        Dags::Next { dag: Some(dag), n } => {
            let items =
                client.list(routes::DAG_NEXT, &[&dag], &SlotQuery { n: Some(n) }, Some(n))?;
            cx.out.list::<Slot>(items, client.now())?;
        }
        Dags::Next { dag: None, .. } => {
            let items = client.list(routes::SCHEDULE, &[], &ListQuery::default(), None)?;
            cx.out.list::<NextRun>(items, client.now())?;
        }
        Dags::Versions { dag } => {
            let items = client.list(routes::DAG_VERSIONS, &[&dag], &ListQuery::default(), None)?;
            cx.out.list::<DagVersion>(items, client.now())?;
        }
        Dags::Source { dag, version } => {
            let version = version.map_or("latest".into(), |number| number.to_string());
            let item = client.get(routes::DAG_VERSION, &[&dag, &version], &())?;
            if !cx.out.data(&item)? {
                cx.out.print(&typed::<DagVersionDetail>(item)?.source)?;
            }
        }
        Dags::Diff { dag, from, to } => diff::run(cx, &client, &dag, (from, to))?,
        Dags::Pause { dag } => pause(cx, &client, &dag, true)?,
        Dags::Unpause { dag } => pause(cx, &client, &dag, false)?,
        Dags::Trigger(args) => return trigger::run(cx, client, args),
        Dags::Errors => return errors(cx, &client),
        Dags::Graph { dag, language } => graph::run(cx, &client, &dag, language)?,
    }
    Ok(Exit::Done)
}

fn list(cx: &Cx, client: &Client, args: List) -> Outcome<()> {
    let is_paused = match (args.paused, args.active) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        (false, false) => None,
    };
    let inactive = args.all.then_some(true);
    let query = DagQuery { tag: args.tag, is_paused, inactive, ..DagQuery::default() };
    let items = client.list(routes::DAG_LIST, &[], &query, args.limit)?;
    cx.out.list::<Dag>(items, client.now())
}

/// Unpausing can start runs at once, so it says which before it does.
fn pause(cx: &Cx, client: &Client, dag: &str, is_paused: bool) -> Outcome<()> {
    let body = DagPatch { is_paused: Some(is_paused) };
    let change = |dry_run| client.send(routes::DAG_PATCH, &[dag], &DryRun { dry_run }, &body);
    let word = if is_paused { "paused" } else { "active" };
    if cx.global.dry_run || !is_paused {
        let effect: PauseEffect = typed(change(true)?)?;
        let due = due_runs(&effect);
        if cx.global.dry_run {
            if !cx.out.data(&effect)? {
                cx.out.print(&format!("{dag} would be {word}{due}\n"))?;
            }
            return Ok(());
        }
        if effect.due_runs > 1 {
            cx.confirm(&format!("{dag} becomes {word}{due}. Go on?"))?;
        }
    }
    let item = change(false)?;
    if !cx.out.data(&item)? {
        let effect: PauseEffect = typed(item)?;
        let was = if effect.unchanged { " (as before)" } else { "" };
        cx.out.remark(&format!("{dag} is {word}{was}{}", due_runs(&effect)));
    }
    Ok(())
}

fn due_runs(effect: &PauseEffect) -> String {
    let first = effect.first_logical_date.as_deref().unwrap_or("now");
    match effect.due_runs {
        0 => String::new(),
        1 => format!(", and one run starts at once: {first}"),
        count => {
            let last = effect.last_logical_date.as_deref().unwrap_or("now");
            format!(", and {count} runs are due at once: {first} .. {last}")
        }
    }
}

fn errors(cx: &Cx, client: &Client) -> Outcome {
    let items = client.list(routes::IMPORT_ERRORS, &[], &ListQuery::default(), None)?;
    let exit = if items.is_empty() { Exit::Done } else { Exit::Usage };
    if cx.out.data(&items)? {
        return Ok(exit);
    }
    for item in items {
        let error: ImportError = typed(item)?;
        for found in &error.diagnostics {
            let hint = found.hint.as_deref().map(|hint| format!("  {hint}")).unwrap_or_default();
            cx.out.print(&format!(
                "{}:{}:{}  {}  {}{hint}  [{}]\n",
                error.file, found.line, found.column, found.severity, found.message, found.code
            ))?;
        }
    }
    Ok(exit)
}
