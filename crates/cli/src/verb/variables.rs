//! `fencepost variables`.

use super::kept::{self, Kept, VARIABLES};
use crate::cx::Cx;
use crate::error::Outcome;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Show and change variables: what DAGs read; encrypted, and masked where it is shown
#[derive(Debug, Subcommand)]
pub(crate) enum Variables {
    /// List them, masked
    #[command(after_help = "Example:\n  fencepost variables list -o json")]
    List {
        /// Show what they say; an admin's right, and recorded
        #[arg(long)]
        reveal: bool,
    },
    /// Show one, masked
    #[command(after_help = "Example:\n  fencepost variables get region --reveal")]
    Get {
        /// Its name
        name: String,
        /// Show what it says; an admin's right, and recorded
        #[arg(long)]
        reveal: bool,
    },
    /// Make one, or replace what it says
    #[command(
        after_help = "Example:\n  fencepost variables set region emea --description \"where we are\""
    )]
    Set(Set),
    /// Delete one
    #[command(after_help = "Example:\n  fencepost variables delete region --yes")]
    Delete {
        /// Its name
        name: String,
    },
    /// Make or replace those of a JSON file: `{"NAME": VALUE, ...}`, as Airflow exports them
    #[command(after_help = "Example:\n  fencepost variables import variables.json --existing skip")]
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
        /// What becomes of one that is there already
        #[arg(long, value_enum, default_value_t)]
        existing: kept::Existing,
    },
    /// Write all of them, in the clear, to a JSON file that only its owner can read; recorded
    #[command(after_help = "Example:\n  fencepost variables export variables.json")]
    Export {
        /// The file; `-` is standard output
        file: PathBuf,
    },
}

/// What one is to say.
#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Its name
    name: String,
    /// What it is to say; without it and `--file`, standard input
    value: Option<String>,
    /// Read it from a file; `-` is standard input
    #[arg(long, conflicts_with = "value")]
    file: Option<PathBuf>,
    /// What it is for
    #[arg(long)]
    description: Option<String>,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: Variables) -> Outcome {
    let kept = match verb {
        Variables::List { reveal } => Kept::List { reveal },
        Variables::Get { name, reveal } => Kept::Get { name, reveal },
        Variables::Set(Set { name, value, file, description }) => {
            Kept::Set { name, value, file, description }
        }
        Variables::Delete { name } => Kept::Delete { name },
        Variables::Import { file, existing } => Kept::Import { file, existing },
        Variables::Export { file } => Kept::Export { file },
    };
    kept::run(cx, &VARIABLES, kept)
}
