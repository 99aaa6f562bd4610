//! `fencepost context`: servers by name.

use crate::client::{Client, Context, Contexts, Server};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::output::paint::Paint;
use crate::output::table::Cell;
use crate::output::{Column, Row};
use Column::Always;
use clap::Subcommand;
use fencepost_api::rest::{ListQuery, Version, routes};
use fencepost_core::id::DagId;
use fencepost_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::PathBuf;

/// Name servers, and choose the one that commands talk to
#[derive(Debug, Subcommand)]
pub(crate) enum ContextVerb {
    /// Name a server; the first one is in use at once
    #[command(
        after_help = "Example:\n  fencepost context add prod --server http://10.0.0.5:7373 --token-file ~/.prod-token"
    )]
    Add {
        /// What to call it
        name: String,
    },
    /// List contexts; `*` is in use
    #[command(after_help = "Example:\n  fencepost context list -o json")]
    List,
    /// Choose the context that commands use
    #[command(after_help = "Example:\n  fencepost context use prod")]
    Use {
        /// As `context list` shows it
        name: String,
    },
    /// Ask the server who it is and whether the token is let in
    #[command(
        after_help = "Example:\n  fencepost context test prod      exit 6: the token is not let in"
    )]
    Test {
        /// As `context list` shows it [default: the one in use]
        name: Option<String>,
    },
}

/// A row of the list.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    name: String,
    current: bool,
    server: String,
    token_file: Option<PathBuf>,
}

impl Row for Line {
    const COLUMNS: &'static [Column] =
        &[Always(""), Always("NAME"), Always("SERVER"), Always("TOKEN FILE")];
    fn cells(&self, _now: Timestamp) -> Vec<Cell> {
        vec![
            Cell::painted(if self.current { "*" } else { "" }, Paint::Good),
            Cell::painted(&self.name, Paint::Strong),
            Cell::painted(&self.server, Paint::Plain),
            Cell::or_dash(self.token_file.as_ref().map(|file| file.display())),
        ]
    }
    fn name(&self) -> String {
        self.name.clone()
    }
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: ContextVerb) -> Outcome {
    let mut all = Contexts::load(&cx.home())?;
    match verb {
        ContextVerb::Add { name } => add(cx, &mut all, &name)?,
        ContextVerb::List => list(cx, &all)?,
        ContextVerb::Use { name } => {
            let server = all.get(&name)?.server.clone();
            all.current = Some(name);
            if !cx.global.dry_run {
                all.save(&cx.home())?;
            }
            cx.out.remark(&format!("commands talk to {server} now"));
        }
        ContextVerb::Test { name } => test(cx, &all, name)?,
    }
    Ok(Exit::Done)
}

fn add(cx: &Cx, all: &mut Contexts, name: &str) -> Outcome<()> {
    DagId::new(name)
        .map_err(|error| CliError::usage(format!("`{name}` cannot be a name: {error}")))?;
    let Some(server) = cx.global.server.clone() else {
        return Err(CliError::usage("which server? --server URL is missing"));
    };
    let token_file = cx.global.token_file.as_ref().map(std::path::absolute).transpose()?;
    let context = Context { server, token_file };
    // An address or a token file that cannot be used is refused before it is kept.
    Server::of_context(name, &context, &cx.global, &cx.env)?;
    if all.contexts.contains_key(name) {
        cx.confirm(&format!("Replace context {name}?"))?;
    }
    all.contexts.insert(name.to_owned(), context);
    all.current.get_or_insert_with(|| name.to_owned());
    if !cx.global.dry_run {
        all.save(&cx.home())?;
    }
    let word = if all.current.as_deref() == Some(name) { "is in use" } else { "is kept" };
    cx.out.remark(&format!("context {name} {word}"));
    Ok(())
}

fn list(cx: &Cx, all: &Contexts) -> Outcome<()> {
    let lines = all.contexts.iter().map(|(name, context)| {
        json!({
            "name": name,
            "current": all.current.as_deref() == Some(name),
            "server": context.server,
            "token_file": context.token_file,
        })
    });
    cx.out.list::<Line>(lines.collect(), crate::clock::now())
}

/// The version needs any valid token; a list needs one that may read.
fn test(cx: &Cx, all: &Contexts, name: Option<String>) -> Outcome<()> {
    let (name, context) = match name {
        Some(name) => {
            let context = all.get(&name)?.clone();
            (name, context)
        }
        None => Contexts::chosen(&cx.global, &cx.env)?.ok_or_else(|| {
            CliError::new(Exit::NotFound, "no context is in use")
                .hint("fencepost context add NAME --server URL")
        })?,
    };
    let client = Client::new(Server::of_context(&name, &context, &cx.global, &cx.env)?);
    let version: Version = client.read(routes::VERSION, &[])?;
    let dags = ListQuery { limit: Some(1), ..ListQuery::default() };
    client.get(routes::DAG_LIST, &[], &dags)?;
    let data = json!({ "name": name, "server": context.server, "version": version });
    if !cx.out.data(&data)? {
        let Version { version, store, installation_id, .. } = version;
        cx.out.print(&format!(
            "{name}: {} is fencepost {version} on {store}, installation {installation_id}; \
             the token is let in\n",
            context.server
        ))?;
    }
    Ok(())
}
