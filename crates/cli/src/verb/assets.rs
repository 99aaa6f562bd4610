//! `fencepost assets`.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::typed;
use clap::Subcommand;
use fencepost_api::rest::{
    Asset, AssetDetail, AssetEmit, AssetEvent, AssetEventsQuery, ListQuery, routes,
};
use serde_json::Value;

/// Show assets and their events: what tasks produce, and DAGs run by
#[derive(Debug, Subcommand)]
pub(crate) enum Assets {
    /// List the assets that some DAG names
    #[command(after_help = "Example:\n  fencepost assets list -o json")]
    List,
    /// Show one: who produces it, who runs by it, and what is queued
    #[command(after_help = "Example:\n  fencepost assets show s3://sales/orders")]
    Show {
        /// Its name or URI
        name: String,
    },
    /// List events, the newest first
    #[command(after_help = "Example:\n  fencepost assets events s3://sales/orders --limit 10")]
    Events {
        /// Only those of this asset
        name: Option<String>,
        /// Only the first N
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
    },
    /// Say that it has something new, as a task that produces it does; recorded
    #[command(
        after_help = "Example:\n  fencepost assets emit s3://sales/orders --extra '{\"rows\": 12}'"
    )]
    Emit {
        /// Its name or URI
        name: String,
        /// What the runs are told about it, a JSON object
        #[arg(long, value_name = "JSON")]
        extra: Option<String>,
    },
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Assets) -> Outcome {
    let client = cx.client()?;
    match verb {
        Assets::List => {
            let items = client.list(routes::ASSET_LIST, &[], &ListQuery::default(), None)?;
            cx.out.list::<Asset>(items, client.now())?;
        }
        Assets::Show { name } => {
            let item = client.get(routes::ASSET_SHOW, &[&name], &())?;
            cx.out.show::<AssetDetail>(item, client.now())?;
        }
        Assets::Events { name, limit } => {
            let query = AssetEventsQuery { asset: name, ..AssetEventsQuery::default() };
            let items = client.list(routes::ASSET_EVENTS, &[], &query, limit)?;
            cx.out.list::<AssetEvent>(items, client.now())?;
        }
        Assets::Emit { name, extra } => return emit(cx, &name, extra.as_deref()),
    }
    Ok(Exit::Done)
}

fn emit(cx: &Cx, name: &str, extra: Option<&str>) -> Outcome {
    let extra: Value = match extra {
        None => Value::Null,
        Some(text) => serde_json::from_str(text)
            .map_err(|error| CliError::usage(format!("--extra is no JSON: {error}")))?,
    };
    let client = cx.client()?;
    if cx.global.dry_run {
        let found: AssetDetail = client.read(routes::ASSET_SHOW, &[name])?;
        let text = format!("emit an event of {name} for {} DAGs", found.consumers.len());
        return cx.out.would(&text, &found).map(|()| Exit::Done);
    }
    let item = client.send(routes::ASSET_EMIT, &[name], &(), &AssetEmit { extra })?;
    if !cx.out.data(&item)? {
        let made: AssetEvent = typed(item)?;
        cx.out.print(&format!("{}\n", made.id))?;
        cx.out.remark(&format!("queued for {} DAGs", made.queued_for.len()));
    }
    Ok(Exit::Done)
}
