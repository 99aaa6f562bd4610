//! Marks that the rows of a world show at its end.

use crate::check::{Seen, evidence};
use crate::sim::Sim;
use fencepost_core::state::{Outcome, TiState};

pub(super) fn of(sim: &Sim, seen: &[Seen]) {
    let trace = &sim.trace;
    trace.marks("session_ended_idle", sim.db.ended_idle());
    for (ti, attempts) in seen.iter().flat_map(|one| &one.tis) {
        if ti.state == TiState::Held {
            trace.mark("held_at_the_end");
        }
        for attempt in attempts {
            let known_by = evidence(attempt);
            let mark = match known_by.as_str() {
                "successor" => "evidence_successor",
                "boot_id" => "evidence_boot_id",
                "self_fence" => "evidence_self_fence",
                "exit_status" => "evidence_exit_status",
                "expiry" => "evidence_expiry",
                _ => continue,
            };
            trace.mark(mark);
            let is_stopped = matches!(attempt.outcome, Some(Outcome::Cancelled | Outcome::Cleared));
            if is_stopped && attempt.stop_reason.is_some() && known_by == "expiry" {
                trace.mark("stop_of_the_dead");
            }
        }
    }
}
