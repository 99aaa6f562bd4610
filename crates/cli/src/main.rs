//! The binary `fencepost`: reads arguments, environment and configuration, and hands over to one
//! verb. Nothing starts before the verb is known, so that small verbs stay small and fast.

mod cli;
mod client;
mod clock;
mod config;
mod cx;
mod environment;
mod error;
mod exit;
mod global;
mod nearest;
mod output;
mod verb;
mod view;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(std::env::args_os())
}
