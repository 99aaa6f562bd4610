//! Ends of task instances, carried forward to their downstreams.
//!
//! Each end is counted once at each downstream task (the store keeps a mark per end, cleared in
//! the transaction that counts it), so the cost per end is the number of its edges and does not
//! grow with the run. The counts live on the *head* of a task: its instance with the lowest map
//! index, since all instances of a task share one trigger rule and one set of upstreams.

use crate::dag::{Action, Dag, TaskIndex};
use crate::lifecycle::TiEvent;
use crate::state::TiState;
use crate::trigger_rule::{Decision, UpstreamCounts};
use std::collections::BTreeMap;

/// An end that no downstream has counted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    pub task: TaskIndex,
    pub state: TiState,
}

/// Adds an end to the counts of a downstream task.
pub fn count(counts: &mut UpstreamCounts, state: TiState) {
    match state {
        TiState::Success => counts.success += 1,
        TiState::Failed => counts.failed += 1,
        TiState::Skipped => counts.skipped += 1,
        TiState::UpstreamFailed => counts.upstream_failed += 1,
        TiState::Removed => counts.removed += 1,
        TiState::None
        | TiState::Scheduled
        | TiState::Queued
        | TiState::Running
        | TiState::Deferred
        | TiState::UpForRetry
        | TiState::Restarting
        | TiState::Held => {}
    }
}

/// What a batch of ends of one run adds to each downstream task.
pub fn deltas(downstreams: &[Vec<TaskIndex>], ends: &[End]) -> BTreeMap<TaskIndex, UpstreamCounts> {
    let mut out: BTreeMap<TaskIndex, UpstreamCounts> = BTreeMap::new();
    for end in ends {
        for down in downstreams.get(end.task.0 as usize).into_iter().flatten() {
            count(out.entry(*down).or_default(), end.state);
        }
    }
    out
}

/// The counts after a batch of ends.
pub fn add(counts: UpstreamCounts, delta: &UpstreamCounts) -> UpstreamCounts {
    UpstreamCounts {
        total: counts.total,
        success: counts.success + delta.success,
        failed: counts.failed + delta.failed,
        skipped: counts.skipped + delta.skipped,
        upstream_failed: counts.upstream_failed + delta.upstream_failed,
        removed: counts.removed + delta.removed,
    }
}

/// What a task waits for besides its upstreams, as far as it was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gates {
    /// `depends_on_past`: whether the previous instance ended well (`None`: there is none, or the
    /// task does not ask).
    pub past_ok: Option<bool>,
    /// `when`: what it evaluated to (`None`: not evaluated).
    pub when: Option<Result<bool, ()>>,
    /// Whether one of the setups that a teardown depends on succeeded (`None`: it depends on none).
    pub setup_ok: Option<bool>,
    /// How many instances a dynamic `expand` gives (`None`: not evaluated).
    pub width: Option<Result<usize, ()>>,
}

/// What is to be done with a task none of whose instances has moved yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Nothing yet.
    Wait,
    /// The rule is met; `depends_on_past` is not.
    WaitForPast,
    /// The rule is met; `when` must be evaluated first.
    Evaluate,
    /// Its turn has come: it makes a run of another DAG.
    Trigger,
    /// Its turn has come; what it is mapped over must be evaluated first.
    Expand,
    /// Apply this event to all its instances.
    Apply(TiEvent, &'static str),
}

/// Decides for one task, with its counts after the batch.
pub fn decide(dag: &Dag, task: TaskIndex, counts: &UpstreamCounts, gates: Gates) -> Move {
    let Some(task) = dag.tasks.get(task.0 as usize) else { return Move::Wait };
    match task.trigger_rule.decide(counts) {
        Decision::Wait => Move::Wait,
        Decision::Skip => Move::Apply(TiEvent::Skip, "trigger_rule"),
        Decision::UpstreamFailed => Move::Apply(TiEvent::UpstreamFail, "upstream_failed"),
        Decision::Ready if task.depends_on_past && gates.past_ok == Some(false) => {
            Move::WaitForPast
        }
        Decision::Ready if gates.setup_ok == Some(false) => {
            Move::Apply(TiEvent::Skip, "no_setup_succeeded")
        }
        Decision::Ready => match (&task.when, gates.when) {
            (Some(_), None) => Move::Evaluate,
            (Some(_), Some(Err(()))) => Move::Apply(TiEvent::ConditionError, "template_error"),
            (Some(_), Some(Ok(false))) => Move::Apply(TiEvent::Skip, "when"),
            (Some(_), Some(Ok(true))) | (None, _) if task.is_dynamic() => match gates.width {
                None => Move::Expand,
                Some(Err(())) => Move::Apply(TiEvent::ConditionError, "expand_error"),
                Some(Ok(0)) => Move::Apply(TiEvent::Skip, "empty_expand"),
                Some(Ok(_)) => ready(&task.action),
            },
            (Some(_), Some(Ok(true))) | (None, _) => ready(&task.action),
        },
    }
}

fn ready(action: &Action) -> Move {
    match action {
        Action::TriggerDag(_) => Move::Trigger,
        Action::Noop => Move::Apply(TiEvent::Complete, "noop"),
        Action::Run(_)
        | Action::Command(_)
        | Action::Python(_)
        | Action::Http(_)
        | Action::Wait(_) => Move::Apply(TiEvent::Ready, "trigger_rule"),
    }
}
