//! The run's table.

use super::{Rejected, Row, look_up};
use crate::state::RunState::{self, Cancelled, Failed, Missed, Queued, Running, Success};

/// What can happen to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunEvent {
    /// `max_active_runs` has room: its task instances are made.
    Start,
    Succeed,
    Fail,
    /// A cancel, once nothing of it runs any more (a queued run at once).
    Cancel,
    /// Its slot passed the `start_deadline`.
    Miss,
    /// Something of it was cleared.
    Reopen,
}

impl RunEvent {
    /// Every event.
    pub const ALL: &'static [Self] =
        &[Self::Start, Self::Succeed, Self::Fail, Self::Cancel, Self::Miss, Self::Reopen];
}

pub(super) const TABLE: &[Row<RunState, RunEvent>] = &[
    (RunEvent::Start, &[Queued], Running),
    (RunEvent::Succeed, &[Running], Success),
    (RunEvent::Fail, &[Running], Failed),
    (RunEvent::Cancel, &[Queued, Running], Cancelled),
    (RunEvent::Miss, &[Queued], Missed),
    (RunEvent::Reopen, &[Success, Failed, Cancelled], Queued),
];

/// Where an event leads.
pub fn run_next(state: RunState, event: RunEvent) -> Result<RunState, Rejected> {
    look_up(TABLE, state, event)
}
