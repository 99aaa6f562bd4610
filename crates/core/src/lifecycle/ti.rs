//! The task instance's table, and `step`: the check of the token before the table.

use super::{Rejected, Row, look_up};
use crate::id::Token;
use crate::state::TiState::{
    self, Deferred, Failed, Held, None as Unready, Queued, Removed, Restarting, Running, Scheduled,
    Skipped, Success, UpForRetry, UpstreamFailed,
};

/// What can happen to a task instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TiEvent {
    /// The trigger rule and the gates are met.
    Ready,
    /// A `noop` whose turn came.
    Complete,
    /// The trigger rule, an empty `expand` or a false `when`.
    Skip,
    UpstreamFail,
    /// `when` could not be evaluated.
    ConditionError,
    /// Its map index is no longer in the expansion.
    Remove,
    /// An attempt and its token were made.
    Queue,
    /// The attempt ended without having started.
    Requeue,
    /// Requeued too often.
    GiveUp,
    Start,
    Succeed,
    Fail,
    /// Failed, with a try left.
    Retry,
    /// The task asked to be skipped (exit 99, result file).
    SkipItself,
    /// Lost after its start; a replacement may follow.
    Replace,
    /// Lost, or asked for by the task: a person or evidence decides.
    Hold,
    Defer,
    /// The trigger's event came.
    Resume,
    /// The trigger's event is the result.
    EventSuccess,
    EventSkip,
    EventFail,
    RetryDue,
    /// A person clears it while nothing of it runs.
    Clear,
    /// A person clears it while it runs.
    ClearRunning,
    /// What was cleared while it ran is gone.
    Restarted,
    /// A stop of the whole run, before anything of it ran.
    Cancel,
    /// A stop, after its processes are gone.
    Stopped,
    MarkSuccess,
    MarkFailed,
    MarkSkipped,
}

impl TiEvent {
    /// Every event.
    pub const ALL: &'static [Self] = &[
        Self::Ready,
        Self::Complete,
        Self::Skip,
        Self::UpstreamFail,
        Self::ConditionError,
        Self::Remove,
        Self::Queue,
        Self::Requeue,
        Self::GiveUp,
        Self::Start,
        Self::Succeed,
        Self::Fail,
        Self::Retry,
        Self::SkipItself,
        Self::Replace,
        Self::Hold,
        Self::Defer,
        Self::Resume,
        Self::EventSuccess,
        Self::EventSkip,
        Self::EventFail,
        Self::RetryDue,
        Self::Clear,
        Self::ClearRunning,
        Self::Restarted,
        Self::Cancel,
        Self::Stopped,
        Self::MarkSuccess,
        Self::MarkFailed,
        Self::MarkSkipped,
    ];
}

/// From where a person's mark may take an instance: anywhere but where it is marked already, so
/// that the same mark again is a duplicate and its end is not counted twice (I7). One that runs is
/// stopped first, and marked from `Running` when its processes are gone.
const NOT_SUCCESS: &[TiState] = &[
    Unready,
    Scheduled,
    Queued,
    Running,
    Deferred,
    UpForRetry,
    Restarting,
    Held,
    Failed,
    Skipped,
    UpstreamFailed,
    Removed,
];
const NOT_FAILED: &[TiState] = &[
    Unready,
    Scheduled,
    Queued,
    Running,
    Deferred,
    UpForRetry,
    Restarting,
    Held,
    Success,
    Skipped,
    UpstreamFailed,
    Removed,
];
const NOT_SKIPPED: &[TiState] = &[
    Unready,
    Scheduled,
    Queued,
    Running,
    Deferred,
    UpForRetry,
    Restarting,
    Held,
    Success,
    Failed,
    UpstreamFailed,
    Removed,
];

pub(super) const TABLE: &[Row<TiState, TiEvent>] = &[
    (TiEvent::Ready, &[Unready], Scheduled),
    (TiEvent::Complete, &[Unready], Success),
    (TiEvent::Skip, &[Unready], Skipped),
    (TiEvent::UpstreamFail, &[Unready], UpstreamFailed),
    (TiEvent::ConditionError, &[Unready], Failed),
    (TiEvent::Remove, &[Unready, Scheduled], Removed),
    (TiEvent::Queue, &[Scheduled], Queued),
    (TiEvent::Requeue, &[Queued], Scheduled),
    (TiEvent::GiveUp, &[Queued], Failed),
    (TiEvent::Start, &[Queued], Running),
    (TiEvent::Succeed, &[Running, Held], Success),
    (TiEvent::Fail, &[Running, Held], Failed),
    (TiEvent::Retry, &[Running, Held], UpForRetry),
    (TiEvent::SkipItself, &[Running, Held], Skipped),
    (TiEvent::Replace, &[Running, Held], Scheduled),
    (TiEvent::Hold, &[Running, Restarting], Held),
    (TiEvent::Defer, &[Queued, Running], Deferred),
    (TiEvent::Resume, &[Deferred], Scheduled),
    (TiEvent::EventSuccess, &[Deferred], Success),
    (TiEvent::EventSkip, &[Deferred], Skipped),
    (TiEvent::EventFail, &[Deferred], Failed),
    (TiEvent::RetryDue, &[UpForRetry], Scheduled),
    (
        TiEvent::Clear,
        &[
            Scheduled,
            Queued,
            Deferred,
            UpForRetry,
            Held,
            Success,
            Failed,
            Skipped,
            UpstreamFailed,
            Removed,
        ],
        Unready,
    ),
    (TiEvent::ClearRunning, &[Running], Restarting),
    (TiEvent::Restarted, &[Restarting, Held], Unready),
    (TiEvent::Cancel, &[Unready, Scheduled, Queued, Deferred, UpForRetry, Held], Skipped),
    (TiEvent::Stopped, &[Running, Restarting], Failed),
    (TiEvent::MarkSuccess, NOT_SUCCESS, Success),
    (TiEvent::MarkFailed, NOT_FAILED, Failed),
    (TiEvent::MarkSkipped, NOT_SKIPPED, Skipped),
];

/// Where an event leads from a state, the token aside.
pub fn ti_next(state: TiState, event: TiEvent) -> Result<TiState, Rejected> {
    look_up(TABLE, state, event)
}

/// What `step` needs to know of a task instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TiRecord {
    pub state: TiState,
    /// The token of its newest attempt.
    pub token: Option<Token>,
}

/// Where an event leads. `presented` is the token of the attempt that the event comes from;
/// `None` for events of the scheduler or a person.
///
/// A terminal report that crosses with a stop finds the instance in `Restarting` or ended and is
/// refused there; one of an attempt that was superseded is `Stale` whatever it says.
pub fn step(
    record: &TiRecord,
    event: TiEvent,
    presented: Option<Token>,
) -> Result<TiState, Rejected> {
    if presented.is_some() && presented != record.token {
        return Err(Rejected::Stale);
    }
    ti_next(record.state, event)
}
