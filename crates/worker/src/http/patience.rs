//! The pause before a call that follows failures, and what the operator is told of them.
//!
//! A server that cannot be reached is asked again soon, then ever more seldom; a refusal that only a
//! person can mend (a revoked token, another version) from the beginning so. Pauses are spread, so
//! that many workers do not come back at the same instant.

use super::Notice;
use fencepost_api::problem::Problem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const FIRST_MS: u64 = 50;
const LONGEST_MS: u64 = 5_000;
/// While only a person can help.
const HOPELESS_MS: u64 = 10_000;

/// The state of a client.
pub(super) struct Patience {
    /// Its caller calls at a pace of its own (beats), and would be held up by another.
    is_paced: bool,
    state: Mutex<State>,
    random: Arc<dyn Fn() -> u64 + Send + Sync>,
    notice: Notice,
}

#[derive(Default)]
struct State {
    failures: u32,
    trouble: Option<Problem>,
}

impl Patience {
    pub(super) fn new(random: Arc<dyn Fn() -> u64 + Send + Sync>, notice: Notice) -> Self {
        Self { is_paced: false, state: Mutex::default(), random, notice }
    }

    /// One of a client whose caller has a pace of its own. What passes is told by the others; what does
    /// not pass is told here too, since a worker that may not act any more makes no other calls.
    pub(super) fn paced(&self) -> Self {
        let all = Arc::clone(&self.notice);
        let notice: Notice = Arc::new(move |trouble| {
            if trouble.is_some_and(is_hopeless) {
                all(trouble);
            }
        });
        Self { is_paced: true, ..Self::new(Arc::clone(&self.random), notice) }
    }

    pub(super) fn trouble(&self) -> Option<Problem> {
        self.state().trouble.clone()
    }

    /// Waits as long as the last failures ask for.
    pub(super) async fn wait(&self) {
        if self.is_paced {
            return;
        }
        let pause = {
            let state = self.state();
            state.trouble.as_ref().map(|why| pause_ms(state.failures, why, (self.random)()))
        };
        if let Some(ms) = pause {
            crate::supervisor::pause(Duration::from_millis(ms)).await;
        }
    }

    /// Notes how a call went. A refusal of the call itself (a mistake in it, an ended job) is none
    /// of the connection.
    pub(super) fn note(&self, failed: Option<&Problem>) {
        let trouble = failed.filter(|why| why.status >= 500 || is_hopeless(why));
        let news = {
            let mut state = self.state();
            let news = state.trouble.as_ref().map(|t| &t.code) != trouble.map(|t| &t.code);
            state.failures = trouble.map_or(0, |_| state.failures.saturating_add(1));
            state.trouble = trouble.cloned();
            news
        };
        if news {
            (self.notice)(trouble);
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        // Written whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether asking again cannot help: not authenticated, not allowed, another version.
fn is_hopeless(problem: &Problem) -> bool {
    matches!(problem.status, 401 | 403) || problem.code == "unsupported-version"
}

/// Between half and the whole of a pause that doubles with each failure.
fn pause_ms(failures: u32, why: &Problem, random: u64) -> u64 {
    let whole = if is_hopeless(why) {
        HOPELESS_MS
    } else {
        FIRST_MS.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_MS)
    };
    whole / 2 + random % (whole / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_api::problem::ProblemCode;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn pauses_double_up_to_a_limit_and_are_spread() {
        let gone = Problem::new(ProblemCode::Unavailable, "");
        let refused = Problem::new(ProblemCode::Unauthenticated, "");
        for (failures, most) in [(1, 50), (2, 100), (4, 400), (20, 5_000), (u32::MAX, 5_000)] {
            assert_eq!(pause_ms(failures, &gone, 0), most / 2);
            assert_eq!(pause_ms(failures, &gone, most / 2 - 1), most - 1);
        }
        assert!(pause_ms(1, &refused, 0) >= 5_000);
    }

    #[test]
    fn trouble_is_told_when_it_changes_and_a_refused_call_is_none() {
        let told = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&told);
        let notice: Notice = Arc::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        });
        let patience = Patience::new(Arc::new(|| 0), notice);
        let gone = Problem::new(ProblemCode::Unavailable, "");
        for problem in [Some(&gone), Some(&gone), None, None] {
            patience.note(problem);
        }
        assert_eq!(told.load(Ordering::SeqCst), 2);
        patience.note(Some(&Problem::new(ProblemCode::ValidationFailed, "")));
        assert_eq!((told.load(Ordering::SeqCst), patience.trouble()), (2, None));
        patience.note(Some(&Problem::new(ProblemCode::Forbidden, "")));
        assert_eq!(patience.trouble().map(|t| t.status), Some(403));
        let (paced, before) = (patience.paced(), told.load(Ordering::SeqCst));
        for problem in [Some(&gone), None, Some(&Problem::new(ProblemCode::Forbidden, "")), None] {
            paced.note(problem);
        }
        assert_eq!(told.load(Ordering::SeqCst), before + 1, "of a paced one what does not pass");
    }
}
