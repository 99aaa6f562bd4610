//! `fencepost secrets`.

use super::kept::{self, Kept, SECRETS};
use crate::cx::Cx;
use crate::error::Outcome;
use crate::exit::Exit;
use clap::{Args, Subcommand};
use fencepost_api::rest::{Rotated, routes};
use std::path::PathBuf;

/// Show and change secrets: tasks get them by `secrets:`; encrypted, and masked where they are shown
#[derive(Debug, Subcommand)]
pub(crate) enum Secrets {
    /// List them, masked
    #[command(after_help = "Example:\n  fencepost secrets list -o json")]
    List {
        /// Show what they say; an admin's right, and recorded
        #[arg(long)]
        reveal: bool,
    },
    /// Show one, masked
    #[command(after_help = "Example:\n  fencepost secrets get warehouse_dsn --reveal")]
    Get {
        /// Its name
        name: String,
        /// Show what it says; an admin's right, and recorded
        #[arg(long)]
        reveal: bool,
    },
    /// Make one, or replace what it says
    #[command(after_help = "Example:\n  fencepost secrets set warehouse_dsn < dsn.txt")]
    Set(Set),
    /// Delete one
    #[command(after_help = "Example:\n  fencepost secrets delete warehouse_dsn --yes")]
    Delete {
        /// Its name
        name: String,
    },
    /// Make or replace those of a JSON file: `{"NAME": VALUE, ...}`, as Airflow exports them
    #[command(after_help = "Example:\n  fencepost secrets import secrets.json --existing skip")]
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
        /// What becomes of one that is there already
        #[arg(long, value_enum, default_value_t)]
        existing: kept::Existing,
    },
    /// Write all of them, in the clear, to a JSON file that only its owner can read; recorded
    #[command(after_help = "Example:\n  fencepost secrets export secrets.json")]
    Export {
        /// The file; `-` is standard output
        file: PathBuf,
    },
    /// Seal everything anew with the first key, so that older keys can be taken away
    #[command(after_help = "Example:\n  fencepost secrets rotate")]
    Rotate,
}

/// What one is to say.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Its name
    name: String,
    /// What it is to say, which others on this host may see; better by standard input
    value: Option<String>,
    /// Read it from a file; `-` is standard input
    #[arg(long, conflicts_with = "value")]
    file: Option<PathBuf>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Secrets) -> Outcome {
    let kept = match verb {
        Secrets::List { reveal } => Kept::List { reveal },
        Secrets::Get { name, reveal } => Kept::Get { name, reveal },
        Secrets::Set(Set { name, value, file, description }) => {
            Kept::Set { name, value, file, description }
        }
        Secrets::Delete { name } => Kept::Delete { name },
        Secrets::Import { file, existing } => Kept::Import { file, existing },
        Secrets::Export { file } => Kept::Export { file },
        Secrets::Rotate => return rotate(cx),
    };
    kept::run(cx, &SECRETS, kept)
}

fn rotate(cx: &Cx) -> Outcome {
    let client = cx.client()?;
    let done = client.send(routes::VAULT_ROTATE, &[], &(), &serde_json::json!({}))?;
    let unreadable = done["unreadable"].as_array().is_some_and(|names| !names.is_empty());
    cx.out.show::<Rotated>(done, client.now())?;
    Ok(if unreadable { Exit::Conflict } else { Exit::Done })
}
