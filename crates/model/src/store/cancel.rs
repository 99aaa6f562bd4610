//! A person cancels the run: what has not started is final at once, what runs is asked to stop.

use super::change_ti;
use crate::state::State;
use fencepost_core::id::Token;
use fencepost_core::lifecycle::{AttemptEvent, TiEvent, attempt_next, ti_next};
use fencepost_core::state::{AttemptState, Outcome};

pub(crate) fn cancel(state: &mut State) {
    let count = u8::try_from(state.store.tis.len()).unwrap_or(u8::MAX);
    for number in 0..count {
        let Some(ti) = state.store.tis.get(usize::from(number)).cloned() else { continue };
        if let Ok(to) = ti_next(ti.state, TiEvent::Cancel) {
            end(state, ti.token);
            change_ti(state, number, to);
        } else if let Some(attempt) = ti.token.and_then(|token| state.store.attempt_mut(token))
            && let Ok(to) = attempt_next(attempt.state, AttemptEvent::Stop)
        {
            (attempt.state, attempt.stop) = (to, true);
        }
    }
    state.witness.was_cancelled = true;
}

/// The end of an attempt that had not started.
fn end(state: &mut State, token: Option<Token>) {
    let Some(attempt) = token.and_then(|token| state.store.attempt_mut(token)) else { return };
    let ended = AttemptEvent::End(Outcome::Cancelled);
    if attempt.state != AttemptState::Ended && attempt_next(attempt.state, ended).is_ok() {
        (attempt.state, attempt.outcome) = (AttemptState::Ended, Some(Outcome::Cancelled));
        attempt.holds = false;
    }
}
