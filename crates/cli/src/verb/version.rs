//! `fencepost version`: of this binary, and of the server when asked.

use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::Args;
use fencepost_api::rest::{Version, routes};
use serde_json::json;

/// Show the version of this binary, and with --remote the server's
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  fencepost version --remote -o json")]
pub(crate) struct VersionArgs {
    /// Also ask the server
    #[arg(long)]
    remote: bool,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prints it.
pub(super) fn run(cx: &Cx, args: VersionArgs) -> Outcome {
    let server: Option<Version> =
        args.remote.then(|| cx.client()?.read(routes::VERSION, &[])).transpose()?;
    let mut data = json!({"version": VERSION});
    if let Some(server) = &server {
        data["server"] = serde_json::to_value(server).unwrap_or_default();
    }
    if cx.out.data(&data)? {
        return Ok(Exit::Done);
    }
    cx.out.print(&format!("fencepost {VERSION}\n"))?;
    if let Some(server) = server {
        let Version { version, api, store, schema, epoch, .. } = server;
        let rest = format!("api {api}, store {store} (schema {schema}), epoch {epoch}");
        cx.out.print(&format!("server    {version}  {rest}\n"))?;
    }
    Ok(Exit::Done)
}
