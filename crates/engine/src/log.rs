//! Lines of the transition log, made where the transition is.

use fencepost_core::state::TiState;
use fencepost_store::query::event::Event;
use fencepost_store::query::occasion::Listening;
use fencepost_store::query::run::Run;
use fencepost_store::query::task_instance::{Moved, Ti};

/// The scheduler as an actor.
pub const SCHEDULER: &str = "scheduler";
/// The reaper as an actor.
pub const REAPER: &str = "reaper";

/// A change of a task instance's state.
pub fn ti_state(ti: &Ti, from: TiState, actor: &str) -> Event {
    Event {
        kind: "ti_state",
        dag_id: Some(ti.dag_id.clone()),
        run_pk: Some(ti.key.run_pk),
        task_id: Some(ti.task_id.clone()),
        map_index: Some(ti.key.map_index),
        token: ti.token,
        actor: actor.into(),
        from: Some(from.as_str()),
        to: Some(ti.state.as_str()),
        reason: ti.reason.clone(),
        evidence: None,
        listening: Listening {
            calls: ti.calls,
            task_index: Some(ti.key.task_index),
            try_number: ti.try_number,
        },
    }
}

/// That a person or evidence has to decide about it, beside the change of its state.
pub fn held(ti: &Ti, actor: &str) -> Event {
    Event { kind: "held", from: None, to: None, ..ti_state(ti, ti.state, actor) }
}

/// Instances that moved out of `none`.
pub fn moved(moved: &Moved, to: TiState, reason: &str) -> Event {
    Event {
        kind: "ti_state",
        dag_id: Some(moved.dag_id.clone()),
        run_pk: Some(moved.key.run_pk),
        task_id: Some(moved.task_id.clone()),
        map_index: Some(moved.key.map_index),
        actor: SCHEDULER.into(),
        from: Some(TiState::None.as_str()),
        to: Some(to.as_str()),
        reason: Some(reason.into()),
        listening: Listening {
            calls: moved.calls,
            task_index: Some(moved.key.task_index),
            try_number: 1,
        },
        ..Event::default()
    }
}

/// Something about a run.
pub fn run(run: &Run, kind: &'static str, to: &'static str, actor: &str, why: &str) -> Event {
    Event {
        kind,
        dag_id: Some(run.dag_id.clone()),
        run_pk: Some(run.run_pk),
        actor: actor.into(),
        from: Some(run.state.as_str()),
        to: Some(to),
        reason: (!why.is_empty()).then(|| why.into()),
        listening: Listening { calls: run.calls, ..Listening::default() },
        ..Event::default()
    }
}
