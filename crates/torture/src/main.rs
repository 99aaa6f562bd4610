//! `fencepost-torture`: real processes, faults by seed, a verdict.

#![expect(clippy::print_stdout, reason = "this is a command-line program")]

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use fencepost_torture::check::Verdict;
use fencepost_torture::course::{self, Order};
use fencepost_torture::fault::Kind;
use fencepost_torture::guards;
use fencepost_torture::installation::{Make, binary_beside};
use fencepost_torture::say;
use fencepost_torture::task::{self, Task};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Tortures an installation of real processes on a PostgreSQL of its own, and judges by the tasks' own
/// ledger and the rows of the store whether a promise was broken. The same seed is the same plan of faults.
#[derive(Debug, Parser)]
#[command(name = "fencepost-torture", version, args_conflicts_with_subcommands = true)]
struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Minutes of faults.
    #[arg(long, default_value_t = 5)]
    minutes: u64,
    /// Hours of faults.
    #[arg(long, conflicts_with = "minutes")]
    hours: Option<u64>,
    /// Seconds of faults.
    #[arg(long, conflicts_with_all = ["minutes", "hours"])]
    seconds: Option<u64>,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only faults of these kinds; `none`: no faults.
    #[arg(long, value_delimiter = ',', value_name = "KIND,...")]
    nemesis: Vec<String>,
    /// Switches a line of defence off, and aims at it; the roles' binary must be built with the feature
    /// `guard-switches`. `list` prints the names.
    #[arg(long = "unsafe", value_name = "NAME")]
    without: Option<String>,
    /// Each fault alone.
    #[arg(long)]
    alone: bool,
    /// Nobody cancels or clears anything.
    #[arg(long)]
    calm: bool,
    /// Attempts that must run before a fault is done.
    #[arg(long, default_value_t = 10)]
    least: usize,
    /// How the process trees of tasks are held together.
    #[arg(long, default_value = "pidns")]
    containment: String,
    /// The binary of the roles [default: `fencepost` beside this program].
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Where everything is written; it must not exist [default: a new one for temporary files].
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Keep the folder, also of a good run.
    #[arg(long)]
    keep: bool,
    /// Prints the kinds of faults.
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// The program of the tasks.
    #[command(hide = true)]
    Task(Task),
    /// Judge a folder that was kept.
    Check {
        /// The folder.
        folder: PathBuf,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    match &args.verb {
        Some(Verb::Task(task)) => return task::run(task),
        Some(Verb::Check { folder }) => {
            let verdict = course::verdict(folder)?;
            println!("{verdict}");
            return Ok(status(&verdict));
        }
        None => {}
    }
    if args.list {
        for kind in Kind::ALL {
            println!("{kind}");
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.without.as_deref() == Some("list") {
        for defence in guards::ALL {
            println!("{:<16} {}", defence.name, defence.guards);
        }
        return Ok(ExitCode::SUCCESS);
    }
    torture(&args)
}

fn torture(args: &Args) -> anyhow::Result<ExitCode> {
    let order = order(args)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let verdict = course::run(&order, &interrupted);
    let folder = order.make.folder.display();
    let verdict = verdict.with_context(|| format!("what there is of it is in {folder}"))?;
    println!("{verdict}");
    if verdict.violations.is_empty() && !args.keep {
        std::fs::remove_dir_all(&order.make.folder)?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("ledger, logs, rows: {folder}\nplay the same faults: {}", again(args, order.seconds));
    Ok(status(&verdict))
}

fn status(verdict: &Verdict) -> ExitCode {
    ExitCode::from(u8::from(!verdict.violations.is_empty()))
}

fn order(args: &Args) -> anyhow::Result<Order> {
    let find = |name: &String| {
        guards::find(name).with_context(|| format!("no `{name}`; --unsafe list names them"))
    };
    let defence = args.without.as_ref().map(find).transpose()?;
    let kinds = match defence {
        Some(defence) if args.nemesis.is_empty() => defence.aim.to_vec(),
        Some(_) | None => kinds(&args.nemesis)?,
    };
    let seconds = args.seconds.unwrap_or(60 * args.hours.map_or(args.minutes, |hours| 60 * hours));
    let folder = args.folder.clone().unwrap_or_else(|| {
        let name = format!("fencepost-torture-{}-{}", args.seed, std::process::id());
        std::env::temp_dir().join(name)
    });
    let make = Make {
        binary: std::path::absolute(binary(args)?)?,
        folder: std::path::absolute(folder)?,
        containment: args.containment.clone(),
        without: defence.map(|defence| defence.guards.to_owned()),
    };
    let pairs = !args.alone && !defence.is_some_and(|defence| defence.alone);
    let (seed, least) = (args.seed, args.least);
    say(&format!("seed {seed}, {seconds} s of faults"));
    Ok(Order { seconds, seed, kinds, pairs, meddles: !args.calm, least, make })
}

/// The binary of the roles; run by cargo, this program has it built first.
fn binary(args: &Args) -> anyhow::Result<PathBuf> {
    if let Some(binary) = &args.binary {
        return Ok(binary.clone());
    }
    if let Some(cargo) = std::env::var_os("CARGO") {
        let mut build = Command::new(cargo);
        // What cargo tells us about ourselves: build scripts that look at it would run again for it.
        let of_ours =
            |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_ours))
        {
            build.env_remove(name);
        }
        build.args(["build", "--locked", "-p", "fencepost-cli"]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        if args.without.is_some() {
            build.args(["--features", "guard-switches"]);
        }
        let status = build.current_dir(env!("CARGO_MANIFEST_DIR")).status()?;
        anyhow::ensure!(status.success(), "the binary of the roles cannot be built");
    }
    binary_beside()
}

fn kinds(names: &[String]) -> anyhow::Result<Vec<Kind>> {
    if names.is_empty() {
        return Ok(Kind::ALL.to_vec());
    }
    if names == ["none"] {
        return Ok(Vec::new());
    }
    let parse = |name: &String| {
        Kind::parse(name).with_context(|| format!("no kind `{name}`; --list names them"))
    };
    names.iter().map(parse).collect()
}

fn again(args: &Args, seconds: u64) -> String {
    let mut text = format!("fencepost-torture --seconds {seconds} --seed {}", args.seed);
    if !args.nemesis.is_empty() {
        text.push_str(&format!(" --nemesis {}", args.nemesis.join(",")));
    }
    if let Some(name) = &args.without {
        text.push_str(&format!(" --unsafe {name}"));
    }
    if args.calm {
        text.push_str(" --calm");
    }
    if args.alone {
        text.push_str(" --alone");
    }
    if args.least != 10 {
        text.push_str(&format!(" --least {}", args.least));
    }
    text
}
