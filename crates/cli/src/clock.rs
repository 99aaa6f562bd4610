//! The client's own clock: the only place of the command line that reads one or waits.
//!
//! Ages are never counted with it but with the server's `Date` (no host's wall clock is compared
//! with another's); it serves time limits of waiting and `--from now`.

use fencepost_core::time::Timestamp;
use std::time::{Duration, Instant};

/// This host's wall clock.
#[expect(clippy::disallowed_methods, reason = "the command line's one reading of the wall clock")]
pub(crate) fn now() -> Timestamp {
    Timestamp::from_jiff(jiff::Timestamp::now())
}

/// A time limit of waiting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    started: Instant,
    limit: Option<Duration>,
}

impl Limit {
    /// From this instant on; `None`: for ever.
    pub(crate) fn from_here(limit: Option<Duration>) -> Self {
        Self { started: instant(), limit }
    }

    /// How long it has been.
    pub(crate) fn elapsed(&self) -> Duration {
        instant().saturating_duration_since(self.started)
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.limit.is_some_and(|limit| self.elapsed() >= limit)
    }

    /// What is left, but at most `most`.
    pub(crate) fn left(&self, most: Duration) -> Duration {
        self.limit.map_or(most, |limit| limit.saturating_sub(self.elapsed()).min(most))
    }
}

#[expect(clippy::disallowed_methods, reason = "the command line's one reading of this clock")]
fn instant() -> Instant {
    Instant::now()
}

/// Slows a loop down that long polling should have paced (a server that answers at once).
#[expect(clippy::disallowed_methods, reason = "the command line's one pause")]
pub(crate) fn pause(length: Duration) {
    std::thread::sleep(length);
}
