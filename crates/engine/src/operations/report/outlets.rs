//! What the success of an attempt produced: outputs, and events of its outlets.

use super::{Batch, EndReport};
use crate::assets::Producer;
use fencepost_core::lifecycle::TiEvent;
use fencepost_core::state::TiState;
use fencepost_core::verdict::Verdict;
use fencepost_store::query::attempt::Attempt;
use fencepost_store::query::task_instance::Ti;
use fencepost_store::query::xcom::Produced;

impl Batch {
    /// Written by the transaction that accepts it.
    pub(super) fn produce(
        &mut self,
        (attempt, ti): (&Attempt, &Ti),
        report: &EndReport,
        (verdict, to): (&Verdict, TiState),
    ) {
        if verdict.event != TiEvent::Succeed && verdict.event != TiEvent::SkipItself {
            return;
        }
        // Before a first attempt there was nobody who left anything.
        if attempt.attempt_number > 1 || !report.outputs.is_empty() {
            let (ti, token, outputs) = (ti.key, attempt.token, report.outputs.clone());
            self.outputs.push(Produced { ti, token, outputs });
        }
        let actor = self.actor(attempt);
        if to == TiState::Success {
            let version = self.versions.get(&ti.key.run_pk).map(AsRef::as_ref);
            self.emissions.succeeded(version, &Producer::of(ti), &report.outputs, &actor);
        }
    }
}
