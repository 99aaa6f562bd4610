//! Crash points: `FENCEPOST_CRASH=POINT[:N]` aborts the process at the N-th passage of a point.
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
    list: Option<String>,
}

impl Crash {
    /// Reads the variables.
    pub(crate) fn of(env: &Environment) -> Self {
        Self {
            point: env.get("FENCEPOST_CRASH").map(ToOwned::to_owned),
            list: env.get("FENCEPOST_CRASH_LIST").map(ToOwned::to_owned),
        }
    }
}

#[cfg(not(feature = "crash-points"))]
pub(super) fn hooks(crash: &Crash) -> Outcome<Hooks> {
    if crash.point.is_some() || crash.list.is_some() {
        return Err(CliError::usage("FENCEPOST_CRASH is set, and this build has no crash points")
            .hint("build with --features crash-points, or unset it"));
    }
    Ok(Hooks::none())
}

#[cfg(feature = "crash-points")]
pub(super) fn hooks(crash: &Crash) -> Outcome<Hooks> {
    use fencepost_core::hook::HookVerdict;
    use std::collections::BTreeMap;
    use std::io::Write as _;
    use std::sync::{Mutex, PoisonError};

    let target = match &crash.point {
        None => None,
        Some(text) => Some(parse(text)?),
    };
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
        if target.as_ref().is_some_and(|(name, nth)| name == point && nth == count) {
            std::process::abort();
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
                nth.parse().map_err(|_| CliError::usage("FENCEPOST_CRASH: N is too large"))?;
            Ok((name.to_owned(), nth))
        }
        _ => Ok((text.to_owned(), 1)),
    }
}
