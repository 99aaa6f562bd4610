//! The job's table: a process of Fencepost, once per incarnation.

use super::{Rejected, Row, look_up};
use crate::state::JobState::{self, Draining, Lost, Running, Stopped};

/// What can happen to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobEvent {
    Drain,
    /// It ended in order, or its successor in the same home took over.
    Stop,
    /// Declared lost, by expiry or evidence.
    Declare,
}

impl JobEvent {
    /// Every event.
    pub const ALL: &'static [Self] = &[Self::Drain, Self::Stop, Self::Declare];
}

pub(super) const TABLE: &[Row<JobState, JobEvent>] = &[
    (JobEvent::Drain, &[Running], Draining),
    (JobEvent::Stop, &[Running, Draining], Stopped),
    (JobEvent::Declare, &[Running, Draining], Lost),
];

/// Where an event leads.
pub fn job_next(state: JobState, event: JobEvent) -> Result<JobState, Rejected> {
    look_up(TABLE, state, event)
}
