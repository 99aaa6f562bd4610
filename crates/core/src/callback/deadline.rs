//! The deadline of a run: an instant that is known when the run is made.

use crate::schedule::Zone;
use crate::state::RunType;
use crate::time::{Span, Timestamp};
use jiff::civil::Time;
use serde_json::Value;

/// When a run should have finished, and who hears if it has not.
#[derive(Debug, Clone, PartialEq)]
pub struct Deadline {
    pub when: When,
    /// As the file wrote them.
    pub callbacks: Vec<Value>,
}

/// When that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The first time, from the slot on, that a clock in the DAG's time zone shows this.
    At(Time),
    /// So long after the slot; of a run without one, after it was made.
    After(Span),
}

impl Deadline {
    /// The instant for a run. A scheduled run's counts from its slot, however late the run is made:
    /// a scheduler that was away all morning must not move the deadline. Any other run's counts from
    /// now, but a backfill's slots lie in the past, and no time of their day can be kept: none.
    pub fn instant(
        &self,
        timezone: &str,
        run_type: RunType,
        run_after: Timestamp,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let from = if run_type == RunType::Scheduled { run_after } else { now };
        match self.when {
            When::After(span) => Some(from.plus(span)),
            When::At(_) if run_type == RunType::Backfill => None,
            When::At(time) => next_at(from, &Zone::get(timezone)?, time),
        }
    }
}

/// The first instant from `from` on at which a clock of the zone shows that time: of a time that it
/// shows twice the first, of one that it skips the end of the gap.
fn next_at(from: Timestamp, zone: &Zone, time: Time) -> Option<Timestamp> {
    let mut day = from.to_jiff().to_zoned(zone.as_jiff().clone()).date();
    // The day itself, the next one, and one more for a zone that skips a whole day.
    for _ in 0..3 {
        let at = zone.first_at(day.to_datetime(time))?;
        if at >= from {
            return Some(at);
        }
        day = day.tomorrow().ok()?;
    }
    None
}
