//! Crash points: `FENCEPOST_CRASH=POINT[:N]` aborts the process at the N-th passage of a point, and
//! `FENCEPOST_FREEZE=POINT[:N]` stops it there until somebody continues it (SIGSTOP, SIGCONT).
//!
//! Only in builds with the feature `crash-points`; `FENCEPOST_CRASH_LIST=FILE` writes the name of
//! each point that is passed to a file, a line for each passage. Other builds refuse the variables rather than
//! ignore them.

use crate::environment::Environment;
use crate::error::{CliError, Outcome};
use fencepost_core::hook::Hooks;

/// What the environment asks for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crash {
    point: Option<String>,
    freeze: Option<String>,
    list: Option<String>,
}

impl Crash {
    /// Reads the variables.
    pub(crate) fn of(env: &Environment) -> Self {
        Self {
            point: env.get("FENCEPOST_CRASH").map(ToOwned::to_owned),
            freeze: env.get("FENCEPOST_FREEZE").map(ToOwned::to_owned),
            list: env.get("FENCEPOST_CRASH_LIST").map(ToOwned::to_owned),
        }
    }
}

#[cfg(not(feature = "crash-points"))]
pub(super) fn hooks(crash: &Crash) -> Outcome<Hooks> {
    for (name, value) in [
        ("FENCEPOST_CRASH", &crash.point),
        ("FENCEPOST_FREEZE", &crash.freeze),
        ("FENCEPOST_CRASH_LIST", &crash.list),
    ] {
        if value.is_some() {
            let message = format!("{name} is set, and this build has no crash points");
            return Err(
                CliError::usage(message).hint("build with --features crash-points, or unset it")
            );
        }
    }
    Ok(Hooks::none())
}

#[cfg(feature = "crash-points")]
pub(super) fn hooks(crash: &Crash) -> Outcome<Hooks> {
    use fencepost_core::hook::HookVerdict;
    use rustix::process::Signal;
    use std::collections::BTreeMap;
    use std::io::Write as _;
    use std::sync::{Mutex, PoisonError};

    let target = crash.point.as_deref().map(parse).transpose()?;
    let freeze = crash.freeze.as_deref().map(parse).transpose()?;
    let list = crash.list.clone();
    let passed: Mutex<BTreeMap<String, u64>> = Mutex::default();
    Ok(Hooks::new(move |point| {
        let mut passed = passed.lock().unwrap_or_else(PoisonError::into_inner);
        let count = passed.entry(point.to_owned()).or_insert(0);
        *count += 1;
        if let Some(list) = &list
            && let Ok(mut file) = std::fs::File::options().create(true).append(true).open(list)
        {
            let _ = writeln!(file, "{point}");
        }
        let count = *count;
        drop(passed);
        let is_here = |(name, nth): &(String, u64)| name == point && *nth == count;
        if target.as_ref().is_some_and(is_here) {
            std::process::abort();
        }
        if freeze.as_ref().is_some_and(is_here) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        }
        HookVerdict::Go
    }))
}

#[cfg(feature = "crash-points")]
fn parse(text: &str) -> Outcome<(String, u64)> {
    // A point's own name holds a colon: `claim:after_commit:3`.
    match text.rsplit_once(':') {
        Some((name, nth)) if nth.bytes().all(|b| b.is_ascii_digit()) && !nth.is_empty() => {
            let nth =
                nth.parse().map_err(|_| CliError::usage(format!("`{text}`: N is too large")))?;
            Ok((name.to_owned(), nth))
        }
        _ => Ok((text.to_owned(), 1)),
    }
}
