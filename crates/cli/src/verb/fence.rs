//! `fencepost fence`: is this attempt still the one that may act?

use super::own_attempt;
use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use clap::Subcommand;
use fencepost_api::execution::wire::Call;
use fencepost_api::execution::{Answer, RefusedReason};

/// Inside a task: ask whether its attempt is still current
#[derive(Debug, Subcommand)]
pub(crate) enum Fence {
    /// Exit 0 if this attempt is current; 76 if a newer one exists, it is to stop, or its lease is over
    #[command(after_help = "Example:\n  fencepost fence check && publish-it")]
    Check,
}

/// Does it.
pub(super) fn run(cx: &Cx, verb: &Fence) -> Outcome {
    match verb {
        Fence::Check => check(cx),
    }
}

fn check(cx: &Cx) -> Outcome {
    if let Some(why) = lease_is_over(cx) {
        return Err(CliError::new(Exit::Fenced, why));
    }
    match own_attempt::call::<Answer>(cx, Call::FenceCheck, &serde_json::json!({}))? {
        Answer::Accepted => Ok(Exit::Done),
        Answer::Refused { reason, detail } => {
            let word = match reason {
                RefusedReason::Superseded => "superseded",
                RefusedReason::Fenced => "fenced",
                RefusedReason::Cancelled => "cancelled",
                RefusedReason::NotRunning => "not running",
                RefusedReason::RunningElsewhere => "running elsewhere",
            };
            Err(CliError::new(Exit::Fenced, format!("{word}: {detail}")))
        }
    }
}

/// Why the lease file says that this attempt may not act any more, whatever the store says.
fn lease_is_over(cx: &Cx) -> Option<String> {
    use fencepost_worker::clock::ClockKind;
    let text = std::fs::read_to_string(cx.env.get("FENCEPOST_LEASE_FILE")?).ok()?;
    let (clock, until) = text.trim().split_once(' ')?;
    let clock = match clock {
        "boottime" => ClockKind::Boottime,
        "monotonic" => ClockKind::Monotonic,
        _ => return None,
    };
    let until: u64 = until.parse().ok()?;
    (clock.now_ns() > until).then(|| "fenced: the lease of this attempt is over".to_owned())
}
