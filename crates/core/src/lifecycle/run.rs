//! The run's table.

use super::{Rejected, Row, look_up};
use crate::state::RunState::{self, Cancelled, Failed, Queued, Running, Success};

/// What can happen to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunEvent {
    /// `max_active_runs` has room: its task instances are made.
    Start,
    Succeed,
    Fail,
    /// A cancel, once nothing of it runs any more (a queued run at once).
    Cancel,
    /// Something of it was cleared.
    Reopen,
}

pub(super) const TABLE: &[Row<RunState, RunEvent>] = &[
    (RunEvent::Start, &[Queued], Running),
    (RunEvent::Succeed, &[Running], Success),
    (RunEvent::Fail, &[Running], Failed),
    (RunEvent::Cancel, &[Queued, Running], Cancelled),
    (RunEvent::Reopen, &[Success, Failed, Cancelled], Queued),
];

/// Where an event leads.
pub fn run_next(state: RunState, event: RunEvent) -> Result<RunState, Rejected> {
    look_up(TABLE, state, event)
}
