//! `fencepost connections`.

use super::kept::{self, CONNECTIONS, Kept};
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::{Args, Subcommand};
use fencepost_api::rest::{ConnectionTest, routes};
use std::path::PathBuf;

/// Show, change and test connections: where things are, and who we are there
#[derive(Debug, Subcommand)]
pub(crate) enum Connections {
    /// List them, masked
    #[command(after_help = "Example:\n  fencepost connections list -o json")]
    List {
        /// Show what they say; an admin's right, and recorded
        #[arg(long)]
        reveal: bool,
    },
    /// Show one, masked
    #[command(after_help = "Example:\n  fencepost connections get warehouse --reveal")]
    Get {
        /// Its name
        name: String,
        /// Show what it says; an admin's right, and recorded
        #[arg(long)]
        reveal: bool,
    },
    /// Make one, or replace what it says
    #[command(
        after_help = "Example:\n  fencepost connections set warehouse postgres://ann@db.example:5432/sales"
    )]
    Set(Set),
    /// Delete one
    #[command(after_help = "Example:\n  fencepost connections delete warehouse --yes")]
    Delete {
        /// Its name
        name: String,
    },
    /// Make or replace those of a JSON file: `{"NAME": VALUE, ...}`, as Airflow exports them
    #[command(
        after_help = "Example:\n  fencepost connections import connections.json --existing skip"
    )]
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
        /// What becomes of one that is there already
        #[arg(long, value_enum, default_value_t)]
        existing: kept::Existing,
    },
    /// Write all of them, in the clear, to a JSON file that only its owner can read; recorded
    #[command(after_help = "Example:\n  fencepost connections export connections.json")]
    Export {
        /// The file; `-` is standard output
        file: PathBuf,
    },
    /// Try whether its host answers, from the server
    #[command(after_help = "Example:\n  fencepost connections test warehouse")]
    Test {
        /// Its name
        name: String,
    },
}

/// What one is to say.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Its name
    name: String,
    /// A URI, or its fields as a JSON object; without it and `--file`, standard input
    value: Option<String>,
    /// Read it from a file; `-` is standard input
    #[arg(long, conflicts_with = "value")]
    file: Option<PathBuf>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Connections) -> Outcome {
    let kept = match verb {
        Connections::List { reveal } => Kept::List { reveal },
        Connections::Get { name, reveal } => Kept::Get { name, reveal },
        Connections::Set(Set { name, value, file, description }) => {
            Kept::Set { name, value, file, description }
        }
        Connections::Delete { name } => Kept::Delete { name },
        Connections::Import { file, existing } => Kept::Import { file, existing },
        Connections::Export { file } => Kept::Export { file },
        Connections::Test { name } => return test(cx, &name),
    };
    kept::run(cx, &CONNECTIONS, kept)
}

fn test(cx: &Cx, name: &str) -> Outcome {
    let client = cx.client()?;
    let found = client.send(routes::CONNECTION_TEST, &[name], &(), &serde_json::json!({}))?;
    let ok = found["ok"] == true;
    cx.out.show::<ConnectionTest>(found, client.now())?;
    Ok(if ok { Exit::Done } else { Exit::Failed })
}
