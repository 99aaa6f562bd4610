//! Which lines of the log are counted, and as what.

use fencepost_store::query::event::Event;
use fencepost_store::{StoreError, StoreErrorKind};

/// A family of counters with one label, whose values are known beforehand: what is not among them is
/// counted as `other`, so that no input makes more series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    pub name: &'static str,
    /// The label's name; empty: there is one counter.
    pub label: &'static str,
    pub values: &'static [&'static str],
    pub help: &'static str,
}

pub(super) const STORE_ERRORS: &str = "fencepost_store_errors_total";
/// Jobs that were fenced: their lease was over before they knew.
pub const FENCED: &str = "fencepost_fenced_total";
/// Outgoing pings.
pub const PINGS: &str = "fencepost_pings_total";

/// Workers that wait out the brake's TTL.
pub const BRAKED: &str = "fencepost_brake_waiting";
/// When retention came through last.
pub const SWEPT: &str = "fencepost_retention_swept_timestamp_seconds";
/// Gauges of a process, by name with their help: those are shown, 0 where it has nothing to say.
pub const GAUGES: &[(&str, &str)] = &[
    (BRAKED, "Silent workers that the brake gives one TTL more: none, no brake is in force."),
    (
        SWEPT,
        "When this process last went through all that is old (store time): retention lags behind it.",
    ),
];

const EVIDENCE: &[&str] =
    &["expiry", "successor", "boot_id", "exit_status", "executor", "self_fence", "person", "other"];
const STATES: &[&str] = &[
    "none",
    "scheduled",
    "queued",
    "running",
    "deferred",
    "up_for_retry",
    "restarting",
    "held",
    "success",
    "failed",
    "skipped",
    "upstream_failed",
    "removed",
    "other",
];
const ONE: &[&str] = &[""];

const fn family(
    name: &'static str,
    label: &'static str,
    values: &'static [&'static str],
    help: &'static str,
) -> Family {
    Family { name, label, values, help }
}

/// Every counter of a process.
#[rustfmt::skip]
pub const FAMILIES: &[Family] = &[
    family("fencepost_jobs_lost_total", "kind", &["worker", "scheduler", "server", "triggerer", "other"], "Jobs that this process declared lost."),
    family("fencepost_attempts_lost_total", "evidence", EVIDENCE, "Attempts that were lost, by how that is known."),
    family("fencepost_writes_refused_total", "reason", &["superseded", "fenced", "cancelled", "not_running", "running_elsewhere", "other"], "Late or foreign reports that changed nothing."),
    family("fencepost_reattached_total", "", ONE, "Attempts that a successor took up again under the same token."),
    family("fencepost_claims_recorded_again_total", "", ONE, "Claims that the store had forgotten and a worker still held."),
    family("fencepost_attempts_questioned_total", "", ONE, "Attempts whose worker did not name them and was asked about them."),
    family("fencepost_requeues_total", "reason", &["queued_timeout", "start_timeout", "epoch", "other"], "Attempts that were taken back because nobody started them."),
    family("fencepost_holds_total", "reason", &["awaiting_person", "awaiting_evidence", "poison", "other"], "Task instances that became held."),
    family("fencepost_task_state_changes_total", "state", STATES, "Changes of task instances, by the state that they came to."),
    family("fencepost_slots_missed_total", "reason", &["start_deadline", "overlap_skip", "overlap_latest", "overlap_replace", "catchup", "other"], "Slots of schedules that were recorded as missed."),
    family("fencepost_callbacks_total", "result", &["delivered", "failed", "dead", "other"], "Deliveries of callbacks, by how they went."),
    family("fencepost_brakes_total", "", ONE, "Times that many workers fell silent together and were given one TTL more."),
    family("fencepost_epochs_total", "", ONE, "New epochs that this process made."),
    family("fencepost_ramp_admitted_total", "", ONE, "Recovered attempts that ramps let go."),
    family(FENCED, "kind", &["scheduler", "server", "triggerer"], "Times that this process found its own lease over and registered anew."),
    family(STORE_ERRORS, "kind", &["unavailable", "contended", "full", "fenced", "epoch_over", "constraint", "corrupt", "setup", "decode"], "Statements and transactions that the store failed."),
    family(PINGS, "result", &["ok", "failed", "withheld"], "Outgoing pings of the dead man's switch; withheld: no progress was made."),
];

/// What a committed line counts as: families, the label's values, and how many.
pub(super) fn of(line: &Event) -> Vec<(&'static str, &'static str, u64)> {
    let reason = line.reason.as_deref().unwrap_or_default();
    let mut found = Vec::new();
    found.extend(by_kind(line, reason).and_then(|(name, label)| one(name, label)));
    if matches!(line.kind, "ti_state" | "attempt_lost" | "reset") {
        let to = line.to.unwrap_or_default();
        found.extend(one("fencepost_task_state_changes_total", to));
        if to == "held" {
            found.extend(one("fencepost_holds_total", reason));
        }
    }
    if line.kind == "ramp_admitted" {
        let count = line.evidence.as_ref().and_then(|known| known["count"].as_u64());
        found.push(("fencepost_ramp_admitted_total", "", count.unwrap_or(1)));
    }
    found
}

fn by_kind<'a>(line: &'a Event, reason: &'a str) -> Option<(&'static str, &'a str)> {
    let known = |key: &str| line.evidence.as_ref().and_then(|known| known[key].as_str());
    Some(match line.kind {
        "job_lost" => ("fencepost_jobs_lost_total", known("job_kind").unwrap_or_default()),
        "attempt_lost" => ("fencepost_attempts_lost_total", known("kind").unwrap_or_default()),
        "write_refused" => ("fencepost_writes_refused_total", reason),
        "reattached" => ("fencepost_reattached_total", ""),
        "claim_recorded_again" => ("fencepost_claims_recorded_again_total", ""),
        "attempt_questioned" => ("fencepost_attempts_questioned_total", ""),
        "run_state" if line.to == Some("missed") => ("fencepost_slots_missed_total", reason),
        "reset" => ("fencepost_requeues_total", reason),
        "callback_delivered" => ("fencepost_callbacks_total", "delivered"),
        "callback_failed" => ("fencepost_callbacks_total", "failed"),
        "callback_dead" => ("fencepost_callbacks_total", "dead"),
        "mass_loss_braked" => ("fencepost_brakes_total", ""),
        "epoch_raised" => ("fencepost_epochs_total", ""),
        _ => return None,
    })
}

fn one(name: &str, label: &str) -> Option<(&'static str, &'static str, u64)> {
    let family = FAMILIES.iter().find(|family| family.name == name)?;
    let known = family.values.iter().find(|value| **value == label);
    Some((family.name, known.copied().unwrap_or("other"), 1))
}

pub(super) const fn kind(error: &StoreError) -> &'static str {
    match error.kind {
        StoreErrorKind::Unavailable => "unavailable",
        StoreErrorKind::Contended => "contended",
        StoreErrorKind::Full => "full",
        StoreErrorKind::Fenced => "fenced",
        StoreErrorKind::EpochOver => "epoch_over",
        StoreErrorKind::Constraint => "constraint",
        StoreErrorKind::Corrupt => "corrupt",
        StoreErrorKind::Setup => "setup",
        StoreErrorKind::Decode => "decode",
    }
}

/// Whether it is the store that is away, and not the statement that is wrong.
pub(super) const fn is_away(error: &StoreError) -> bool {
    matches!(error.kind, StoreErrorKind::Unavailable | StoreErrorKind::Full)
}
