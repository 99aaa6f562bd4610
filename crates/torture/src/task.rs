//! The program of the tasks: it says in the ledger that it lives, until its work is done.
//!
//! It is this binary under a hidden sub-command, so that a task costs no interpreter.

use crate::clock::{MS, boot_ns, pause};
use crate::ledger::{Deed, Pen, TiKey};
use crate::sink::{self, Step};
use anyhow::Context as _;
use clap::Args;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Between two ticks.
const TICK_MS: u64 = 100;

/// What a task does.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The folder with ledger and sinks.
    #[arg(long)]
    oracle: PathBuf,
    /// How long it works.
    #[arg(long)]
    millis: u64,
    /// It ignores SIGTERM.
    #[arg(long)]
    stubborn: bool,
    /// It leaves a process in a session of its own that lives on until it is killed.
    #[arg(long)]
    daemon: bool,
    /// Its first try fails.
    #[arg(long)]
    fails_once: bool,
    /// It is that other process.
    #[arg(long)]
    is_daemon: bool,
}

/// Does it.
pub fn run(task: &Task) -> anyhow::Result<ExitCode> {
    let token = number("FENCEPOST_FENCING_TOKEN")?;
    let mut pen = Pen::open(&task.oracle.join("ledger"), token)?;
    let told = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&told))?;
    if task.is_daemon {
        return tick_for_ever(&mut pen);
    }
    let ti = TiKey {
        dag: text("FENCEPOST_DAG_ID")?,
        run: text("FENCEPOST_RUN_ID")?,
        task: text("FENCEPOST_TASK_ID")?,
    };
    let tries = u32::try_from(number("FENCEPOST_TRY_NUMBER")?)?;
    pen.note(Deed::Begin { ti: ti.clone(), tries })?;
    let fence = sink::place(&task.oracle.join("fenced"), &ti);
    sink::pass(&fence, Step::Raise, token)?;
    if task.daemon {
        leave_daemon(task)?;
    }
    let end = boot_ns() + task.millis * MS;
    while boot_ns() < end {
        if told.load(Ordering::Relaxed) && !task.stubborn {
            // What is not done is not written.
            return Ok(ExitCode::from(143));
        }
        pause(TICK_MS);
        pen.note(Deed::Tick)?;
    }
    sink::append(&task.oracle.join("appended"), &ti, token)?;
    let taken = sink::pass(&fence, Step::Write, token)?;
    pen.note(if taken { Deed::Write } else { Deed::Refused })?;
    let status = u8::from(task.fails_once && tries == 1);
    pen.note(Deed::End { status })?;
    Ok(ExitCode::from(status))
}

/// Its own session's leader: a signal to the task's group does not reach it.
fn tick_for_ever(pen: &mut Pen) -> anyhow::Result<ExitCode> {
    rustix::process::setsid()?;
    loop {
        pen.note(Deed::Tick)?;
        pause(TICK_MS);
    }
}

fn leave_daemon(task: &Task) -> anyhow::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    command.args(["task", "--is-daemon", "--millis", "0", "--oracle"]).arg(&task.oracle);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("the other process")?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "what the attempt is, is in the task's environment")]
fn text(name: &str) -> anyhow::Result<String> {
    std::env::var(name).with_context(|| format!("{name} is not set"))
}

fn number(name: &str) -> anyhow::Result<i64> {
    let text = text(name)?;
    text.parse().with_context(|| format!("{name} is `{text}`"))
}
