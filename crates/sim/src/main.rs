//! `fencepost-sim`: worlds by seed, small worlds at every crash point.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this is a command-line program")]

use clap::Parser;
use fencepost_core::guard::{Guard, Guards};
use fencepost_sim::chaos::{self, Plan, Played};
use fencepost_sim::exhaustive::Stage;
use fencepost_sim::fault::{Kind, Trip};
use fencepost_sim::report::Summary;
use fencepost_sim::scenario::{self, Scenario};
use fencepost_sim::sim::Options;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

/// Plays worlds on simulated time, network, processes and machines, with the shipped code and the
/// real store. The same seed is the same world.
#[derive(Debug, Parser)]
#[command(name = "fencepost-sim", version)]
struct Args {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many random worlds, each with the next seed.
    #[arg(long, default_value_t = 10)]
    runs: u64,
    /// Instead: as many worlds as make so many simulated hours; in every fourth the store fails over too.
    #[arg(long, conflicts_with = "runs")]
    hours: Option<u64>,
    /// Worlds that are played at the same time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Simulated minutes in which things go wrong.
    #[arg(long, default_value_t = 20)]
    minutes: u64,
    /// The store fails over too, and loses its last commits.
    #[arg(long)]
    failover: bool,
    /// One small world by name.
    #[arg(long)]
    scenario: Option<String>,
    /// Small worlds with a crash, and with a lost answer, at every point.
    #[arg(long)]
    crash_points: bool,
    /// With `--scenario`: only this passage.
    #[arg(long)]
    at: Option<u64>,
    /// With `--at`: a lost answer instead of a crash.
    #[arg(long)]
    unknown: bool,
    /// Switches one guard off.
    #[arg(long = "unsafe", value_parser = guard)]
    without: Option<Guard>,
    /// Prints the points that the small worlds pass.
    #[arg(long)]
    list_points: bool,
    /// Prints the guards.
    #[arg(long)]
    list_guards: bool,
    /// Prints every event.
    #[arg(short, long)]
    verbose: bool,
}

fn guard(text: &str) -> Result<Guard, String> {
    Guard::parse(text).ok_or_else(|| format!("no guard `{text}`; --list-guards names them"))
}

/// Why it ends with 1.
type Failure = String;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = if args.list_guards {
        for guard in Guard::ALL {
            println!("{guard}");
        }
        Ok(())
    } else if args.list_points {
        list_points(&args)
    } else if args.crash_points || args.scenario.is_some() {
        crash_points(&args)
    } else {
        random_worlds(&args)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

impl Args {
    fn options(&self, seed: u64, audit_every: u64) -> Options {
        let guards = self.without.map_or(Guards::all(), |guard| Guards::all().without(guard));
        Options { seed, guards, is_loud: self.verbose, audit_every }
    }

    /// The next seed, if there is to be one more world.
    fn take(&self, next: &AtomicU64) -> Option<u64> {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let is_one = self.hours.is_some() || seed.wrapping_sub(self.seed) < self.runs;
        is_one.then_some(seed)
    }

    fn plan(&self, seed: u64) -> Plan {
        let fails_over = self.failover || (self.hours.is_some() && seed.is_multiple_of(4));
        Plan { minutes: self.minutes, fails_over, ..Plan::default() }
    }

    fn unsafe_flag(&self) -> String {
        self.without.map_or_else(String::new, |guard| format!(" --unsafe {guard}"))
    }

    fn scenarios(&self) -> Result<Vec<Scenario>, Failure> {
        let all = scenario::all();
        let names: Vec<&str> = all.iter().map(|one| one.name).collect();
        let Some(name) = &self.scenario else { return Ok(all) };
        if !names.contains(&name.as_str()) {
            return Err(format!("no scenario `{name}`: {}", names.join(", ")));
        }
        Ok(all.into_iter().filter(|one| one.name == name).collect())
    }
}

/// One world of many.
type World = (u64, Result<Played, Failure>);

fn random_worlds(args: &Args) -> Result<(), Failure> {
    let (next, stop) = (AtomicU64::new(args.seed), AtomicBool::new(false));
    let (next, stop) = (&next, &stop);
    let mut summary = Summary::default();
    std::thread::scope(|scope| {
        let (send, worlds) = mpsc::channel();
        for _ in 0..args.jobs.max(1) {
            let send = send.clone();
            scope.spawn(move || {
                while let Some(seed) = args.take(next).filter(|_| !stop.load(Ordering::Relaxed)) {
                    let played = chaos::play(args.options(seed, 8), args.plan(seed));
                    // Nobody takes more once one world was wrong.
                    let _ = send.send((seed, played));
                }
            });
        }
        drop(send);
        let done = collect(args, worlds, &mut summary, stop);
        stop.store(true, Ordering::Relaxed);
        done
    })?;
    println!("{summary}");
    let unreached = summary.unreached();
    // A few worlds are a look, not a proof.
    let are_many = args.runs >= 100 || args.hours.is_some();
    if are_many && args.without.is_none() && !unreached.is_empty() {
        return Err(format!("vacuous: these marks were never reached: {}", unreached.join(", ")));
    }
    Ok(())
}

/// Adds worlds up until there are enough, or one of them is wrong.
fn collect(
    args: &Args,
    worlds: mpsc::Receiver<World>,
    summary: &mut Summary,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    for (seed, played) in worlds {
        let played = played?;
        summary.add(&played.found, &played.kinds);
        summary.seconds += played.seconds;
        summary.executions += played.executions;
        summary.finished += played.finished;
        summary.commits += played.commits;
        if !played.found.violations.is_empty() {
            println!("{summary}");
            let again = format!(
                "fencepost-sim --seed {seed} --runs 1 --minutes {}{}{}",
                args.minutes,
                if args.plan(seed).fails_over { " --failover" } else { "" },
                args.unsafe_flag()
            );
            return Err(failure(&again, &played.found.last, &played.found.violations));
        }
        if args.runs > 1 || args.hours.is_some() {
            eprintln!(
                "seed {seed}: {} executions, digest {:016x}",
                played.executions, played.found.digest
            );
        }
        if args.hours.is_some_and(|hours| summary.seconds >= hours.saturating_mul(3_600)) {
            stop.store(true, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn failure(again: &str, last: &[String], violations: &[String]) -> Failure {
    format!(
        "{}\n\nviolations:\n  {}\n\nreplay it:\n  {again}\n",
        last.join("\n"),
        violations.join("\n  ")
    )
}

fn crash_points(args: &Args) -> Result<(), Failure> {
    let mut summary = Summary::default();
    for scenario in args.scenarios()? {
        let stage = Stage::new(&scenario, args.options(args.seed, 1))?;
        let calm = stage.play(None)?;
        let again = |rest: &str| {
            let name = scenario.name;
            format!(
                "fencepost-sim --seed {} --scenario {name}{rest}{}",
                args.seed,
                args.unsafe_flag()
            )
        };
        let Some(expected) = calm.end.filter(|_| calm.found.violations.is_empty()) else {
            return Err(failure(&again(""), &calm.found.last, &calm.found.violations));
        };
        summary.add(&calm.found, &calm.kinds);
        println!("{}: {:?}", scenario.name, expected.runs);
        let kind = if args.unknown { Kind::Unknown } else { Kind::Crash };
        let trips = match args.at {
            Some(at) => vec![Trip { at, kind }],
            None if args.crash_points => stage.trips(&calm.passages, None),
            None => Vec::new(),
        };
        for trip in &trips {
            let played = stage.play(Some(*trip))?;
            summary.add(&played.found, &played.kinds);
            summary.seconds += played.seconds;
            summary.executions += played.executions as u64;
            let wrong = stage.compare(&expected, &played);
            if !wrong.is_empty() {
                let unknown = if trip.kind == Kind::Unknown { " --unknown" } else { "" };
                let rest = format!(" --at {}{unknown}", trip.at);
                let at = format!("{:?} at {:?}", trip.kind, played.tripped);
                let wrong: Vec<String> = wrong.iter().map(|w| format!("{w} ({at})")).collect();
                return Err(failure(&again(&rest), &played.found.last, &wrong));
            }
        }
        eprintln!("{}: {} passages, {} worlds", scenario.name, calm.passages.len(), trips.len());
    }
    println!("{summary}");
    Ok(())
}

fn list_points(args: &Args) -> Result<(), Failure> {
    let mut points = BTreeSet::new();
    for scenario in args.scenarios()? {
        let stage = Stage::new(&scenario, args.options(args.seed, 1))?;
        points.extend(stage.play(None)?.passages.into_iter().map(|passage| passage.point));
    }
    for point in points {
        println!("{point}");
    }
    Ok(())
}
