//! What a backfill does with a slot, given the run that is there.

use crate::state::{Reprocess, RunState, SlotAction};

/// What becomes of a slot. A missed slot has never run: it counts as one without a run.
pub fn action(behavior: Reprocess, existing: Option<RunState>) -> SlotAction {
    match existing {
        None | Some(RunState::Missed) => SlotAction::Created,
        Some(RunState::Queued | RunState::Running) => SlotAction::InFlight,
        Some(RunState::Failed | RunState::Cancelled) if behavior != Reprocess::None => {
            SlotAction::Rerun
        }
        Some(RunState::Success) if behavior == Reprocess::Completed => SlotAction::Rerun,
        Some(RunState::Success | RunState::Failed | RunState::Cancelled) => SlotAction::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each state of a run in the order of `RunState::ALL`, then none.
    #[test]
    fn what_runs_is_left_alone_and_what_never_ran_is_made_whatever_the_behavior() {
        use SlotAction::{Created, InFlight, Kept, Rerun};
        let rows = [
            (Reprocess::None, [InFlight, InFlight, Kept, Kept, Kept, Created, Created]),
            (Reprocess::Failed, [InFlight, InFlight, Kept, Rerun, Rerun, Created, Created]),
            (Reprocess::Completed, [InFlight, InFlight, Rerun, Rerun, Rerun, Created, Created]),
        ];
        for (behavior, expected) in rows {
            let states = RunState::ALL.iter().map(|state| Some(*state)).chain([None]);
            let found: Vec<SlotAction> = states.map(|state| action(behavior, state)).collect();
            assert_eq!(found, expected, "{behavior}");
        }
    }
}
