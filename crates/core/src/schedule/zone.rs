//! A time zone of the database inside the binary, cut into segments of one UTC offset.
//!
//! Within a segment local time and UTC run in step, so a cron search needs no special case there;
//! what a change of the clock means is decided where one segment meets the next (`cron`).
//! The system's zone files and the process's TZ are never read.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};

/// A zone of the IANA database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// The zone of that IANA name; letter case does not matter.
    pub fn get(name: &str) -> Option<Self> {
        TimeZoneDatabase::bundled().get(name).ok().map(Self)
    }

    /// Its name as the database writes it.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Every name of the database.
    pub fn names() -> Vec<String> {
        TimeZoneDatabase::bundled().available().map(|name| name.to_string()).collect()
    }

    /// The zone as jiff knows it, for printing local times.
    pub fn as_jiff(&self) -> &TimeZone {
        &self.0
    }

    /// The instant of a local time: the first of two, or the end of the gap that skips it.
    pub(crate) fn first_at(&self, local: DateTime) -> Option<crate::time::Timestamp> {
        let zoned = local.to_zoned(self.0.clone()).ok()?;
        let at = zoned.timestamp();
        let skipped = zoned.datetime() != local;
        let at = if skipped { self.segment_at(at).start.unwrap_or(at) } else { at };
        Some(crate::time::Timestamp::from_jiff(at))
    }

    pub(super) fn segment_at(&self, at: Timestamp) -> Segment {
        let just_after = at.checked_add(jiff::SignedDuration::from_nanos(1)).unwrap_or(at);
        let start = self.0.preceding(just_after).next().map(|t| t.timestamp());
        Segment {
            start,
            end: self.0.following(at).next().map(|t| t.timestamp()),
            offset: self.0.to_offset(at),
            offset_before: start.and_then(just_before).map(|before| self.0.to_offset(before)),
        }
    }
}

/// The largest instant before `at`.
pub(super) fn just_before(at: Timestamp) -> Option<Timestamp> {
    at.checked_sub(jiff::SignedDuration::from_nanos(1)).ok()
}

/// A stretch of time `[start, end)` with one UTC offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    offset: Offset,
    offset_before: Option<Offset>,
}

impl Segment {
    /// Local time at `at`, by this segment's offset.
    pub(super) fn civil(&self, at: Timestamp) -> DateTime {
        self.offset.to_datetime(at)
    }

    /// The instant of that local time, by this segment's offset.
    pub(super) fn instant(&self, civil: DateTime) -> Option<Timestamp> {
        self.offset.to_timestamp(civil).ok()
    }

    /// The local times `[from, to)` that the clock skipped where this segment begins.
    pub(super) fn gap(&self) -> Option<(DateTime, DateTime)> {
        let (before, after) = self.edges()?;
        (before < after).then_some((before, after))
    }

    /// The end of the local times that this segment repeats from the one before it.
    pub(super) fn repeated_until(&self) -> Option<DateTime> {
        let (before, after) = self.edges()?;
        (before > after).then_some(before)
    }

    /// Local time where this segment begins, by the clock before and by its own.
    fn edges(&self) -> Option<(DateTime, DateTime)> {
        let start = self.start?;
        Some((self.offset_before?.to_datetime(start), self.offset.to_datetime(start)))
    }
}
