//! Flags that every verb takes.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Flags that every verb takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// How to print the result
    #[arg(
        short = 'o',
        long = "output",
        global = true,
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub(crate) format: Format,
    /// No colours (also with NO_COLOR set, and when not on a terminal)
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
    /// Only results and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// The server's address [env: FENCEPOST_SERVER] [default: the context's, else the local standalone's]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The context to use: a server by name [env: FENCEPOST_CONTEXT]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// A file with the API token [env: FENCEPOST_TOKEN] [default: $FENCEPOST_HOME/token]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificates to trust towards the server, PEM [env: FENCEPOST_CA] [default: the system's]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// The home of this installation [env: FENCEPOST_HOME] [default: ~/.fencepost]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The configuration file [default: $FENCEPOST_HOME/fencepost.toml]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Do not ask
    #[arg(short, long, global = true)]
    pub(crate) yes: bool,
    /// Say what would be done, and do nothing
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
}

/// How a result is printed: the first two for people, then the API's fields as data, then names
/// alone, one per line. The last two are for `validate` only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
    Name,
    #[value(hide = true)]
    Sarif,
    #[value(hide = true)]
    Github,
}

impl Format {
    /// Whether a program reads the result.
    pub(crate) const fn is_data(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}
