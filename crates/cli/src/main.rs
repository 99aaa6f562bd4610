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
mod node;
mod output;
mod verb;
mod view;
mod watch;

use std::path::Path;
use std::process::ExitCode;

/// The shim is a program of its own in the same file, started for every attempt: it comes before
/// everything else, and is no verb.
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|verb| verb == "shim")
        && let Some(dir) = arguments.next()
    {
        return fencepost_worker::shim::main(Path::new(&dir));
    }
    cli::run(std::env::args_os())
}
