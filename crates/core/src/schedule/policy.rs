//! What becomes of a slot that cannot start when it is due: how long it may wait, and what gives way
//! while the places of its DAG (`max_active_runs`) are taken.
//!
//! A slot that is given up becomes a run in state `missed` that says why: nothing is dropped
//! silently. Runs that a person asked for are no slots: they wait, and nothing replaces them.

use crate::time::{Span, Timestamp};

/// `start_deadline` and `overlap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotPolicy {
    /// Longest wait from the slot to its start.
    pub start_deadline: Option<Span>,
    pub overlap: Overlap,
}

/// What a slot does while its DAG's places are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// It waits.
    #[default]
    Queue,
    /// It is missed.
    Skip,
    /// It waits, and those that wait already are missed.
    Latest,
    /// As `Latest`, and the oldest running run of a slot is cancelled to make place.
    Replace,
}

impl Overlap {
    /// Every value.
    pub const ALL: [Self; 4] = [Self::Queue, Self::Skip, Self::Latest, Self::Replace];

    /// The word of the DAG file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Skip => "skip",
            Self::Latest => "latest",
            Self::Replace => "replace",
        }
    }

    /// The value of that word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|overlap| overlap.as_str() == word)
    }

    /// Up to which of the waiting slots, given the newest of them, all are missed (exclusive);
    /// `None`: all of them wait on.
    pub fn missed_before(self, newest: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Queue => None,
            Self::Skip => Some(Timestamp::from_micros(i64::MAX)),
            Self::Latest | Self::Replace => Some(newest),
        }
    }

    /// Why a slot is missed, as its run says.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Queue | Self::Skip => "overlap_skip",
            Self::Latest => "overlap_latest",
            Self::Replace => "overlap_replace",
        }
    }
}

impl SlotPolicy {
    /// Why a slot that nobody waits for any longer is missed.
    pub const LATE: &str = "start_deadline";
    /// Why a slot that its catch-up rule passes over is missed.
    pub const SUPERSEDED: &str = "catchup";

    /// Slots due before this instant are too late to start; `None`: none is.
    pub fn late_before(&self, now: Timestamp) -> Option<Timestamp> {
        self.start_deadline.map(|deadline| now.minus(deadline))
    }

    /// Whether a slot is too late to start.
    pub fn is_late(&self, due_at: Timestamp, now: Timestamp) -> bool {
        self.late_before(now).is_some_and(|before| due_at < before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_late_once_its_deadline_is_over_and_not_at_it() {
        let (due, hour) = (Timestamp::from_micros(7_000_000), Span::from_hours(1));
        let policy = SlotPolicy { start_deadline: Some(hour), ..SlotPolicy::default() };
        assert!(!policy.is_late(due, due.plus(hour)));
        assert!(policy.is_late(due, due.plus(hour).plus(Span::from_micros(1))));
        assert!(!SlotPolicy::default().is_late(due, due.plus(Span::from_hours(100_000))));
    }

    #[test]
    fn each_word_reads_as_what_it_was_written_from() {
        for overlap in Overlap::ALL {
            assert_eq!(Overlap::parse(overlap.as_str()), Some(overlap));
        }
        assert_eq!(Overlap::parse("drop"), None);
    }

    #[test]
    fn the_newest_waits_on_but_with_skip() {
        let newest = Timestamp::from_micros(9);
        assert_eq!(Overlap::Queue.missed_before(newest), None);
        assert!(Overlap::Skip.missed_before(newest).is_some_and(|before| newest < before));
        for overlap in [Overlap::Latest, Overlap::Replace] {
            assert_eq!(overlap.missed_before(newest), Some(newest));
        }
    }
}
