//! `fencepost-model`: searches the worlds, with all guards on or without one of them.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command-line program")]

use clap::Parser;
use fencepost_core::guard::Guard;
use fencepost_model::search::search;
use fencepost_model::world::{self, World};
use std::process::ExitCode;

/// Visits every state that a few small installations can reach, within their budgets of faults, and
/// stops at the first one that breaks a promise.
#[derive(Debug, Parser)]
#[command(name = "fencepost-model", version)]
struct Args {
    /// Only this world; without it every one of the short form.
    #[arg(long)]
    world: Option<String>,
    /// Also the worlds of the long form.
    #[arg(long)]
    long: bool,
    /// Switches one guard off.
    #[arg(long = "unsafe", value_parser = guard)]
    without: Option<Guard>,
    /// Prints the worlds and the guards that each shows.
    #[arg(long)]
    list: bool,
}

fn guard(text: &str) -> Result<Guard, String> {
    Guard::parse(text).ok_or_else(|| format!("no guard `{text}`; --list names them"))
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.list {
        for world in world::all() {
            let shows: Vec<&str> = world.shows.iter().map(|(guard, _)| guard.as_str()).collect();
            println!("{:24} {}", world.name, shows.join(", "));
        }
        return ExitCode::SUCCESS;
    }
    let is_chosen = |world: &World| match &args.world {
        Some(name) => world.name == name,
        None => args.long || !world.is_long,
    };
    let worlds: Vec<World> = world::all().into_iter().filter(is_chosen).collect();
    if worlds.is_empty() {
        eprintln!("no such world; --list names them");
        return ExitCode::FAILURE;
    }
    let mut is_well = true;
    for world in worlds {
        let world = args.without.map_or_else(|| world.clone(), |guard| world.without(guard));
        let found = search(&world);
        println!(
            "{}: {} states, {} steps, {} deep",
            world.name, found.states, found.steps, found.depth
        );
        let marks = found.marks.iter().map(|(mark, count)| format!("{mark} {count}"));
        println!("    {}", marks.collect::<Vec<String>>().join(", "));
        if let Some(counterexample) = found.counterexample {
            println!("{counterexample}");
            is_well = false;
        }
    }
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
