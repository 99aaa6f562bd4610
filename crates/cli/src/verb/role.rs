//! What the verbs of the roles have in common: settings, a runtime, the ready line, the signals.

use crate::config::{self, Settings};
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use crate::node::{Crash, Options, guards};
use std::io::Write;
use std::path::{Path, PathBuf};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Keys that flags set: (key, flag, value).
pub(super) type Flags = Vec<(&'static str, &'static str, String)>;

/// The settings of a role: flags, environment, file. What contradicts what in the sections that it lives by is
/// refused, or told.
pub(super) fn options(
    cx: &Cx,
    flags: Flags,
    take_over: bool,
    sections: &[&str],
) -> Outcome<Options> {
    let home = absolute(&cx.home())?;
    let settings = Settings::load(&home, cx.global.config.as_ref(), &cx.env, flags)
        .map_err(|errors| config::refuse(&errors))?;
    for warning in config::lint::at_start(&settings, sections)? {
        cx.out.remark(&warning);
    }
    Ok(Options {
        home,
        settings,
        take_over,
        host_env: cx.env.with_prefix("").map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
        crash: Crash::of(&cx.env),
        guards: guards(&cx.env)?,
        is_role: true,
    })
}

fn absolute(path: &Path) -> Outcome<PathBuf> {
    std::path::absolute(path)
        .map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}

/// A small runtime: a role mostly waits.
pub(super) fn runtime() -> Outcome<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(16)
        .enable_all()
        .build()
        .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))
}

/// The signals that end a role in order: both are a restart.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on they are heard, also before the role serves.
    pub(super) fn listen() -> Outcome<Self> {
        let on =
            |kind| signal(kind).map_err(|error| CliError::new(Exit::Unexpected, error.to_string()));
        Ok(Self {
            terminate: on(SignalKind::terminate())?,
            interrupt: on(SignalKind::interrupt())?,
        })
    }

    /// Ready with the first one.
    pub(super) async fn heard(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Ready in order with the first one; an error if `broken` comes before.
    pub(super) async fn heard_before(&mut self, broken: impl Future<Output = ()>) -> Outcome<()> {
        tokio::select! {
            () = self.heard() => Ok(()),
            () = broken => {
                Err(CliError::new(Exit::Unexpected, "a part of this process has ended"))
            }
        }
    }
}

/// The one line of stdout.
pub(super) fn say_ready(address: Option<&str>) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    match address {
        Some(address) => writeln!(out, "ready {address}")?,
        None => writeln!(out, "ready")?,
    }
    out.flush()?;
    Ok(())
}
