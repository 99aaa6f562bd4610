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
mod http_task;
mod nearest;
mod node;
mod output;
mod verb;
mod view;
mod watch;

use std::path::Path;
use std::process::ExitCode;

/// The shim is a program of its own in the same file, started for every attempt, and so is the process of an `http`
/// task: they come before everything else, and are no verbs.
fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (verb, place) = (arguments.next(), arguments.next());
    match (verb.as_ref().and_then(|verb| verb.to_str()), place) {
        (Some("shim"), Some(dir)) => fencepost_worker::shim::main(Path::new(&dir)),
        (Some("http-task"), Some(file)) => http_task::main(Path::new(&file)),
        _ => cli::run(std::env::args_os()),
    }
}
