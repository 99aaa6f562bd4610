//! Cron expressions: fields checked one by one, matching by croner, clock changes by this module.
//!
//! The policy (that of Debian's cron and cronie): a job at a fixed local time that falls in a gap
//! runs once at the first instant after the gap, in an overlap only at the first occurrence; a job
//! whose minute or hour field begins with `*` runs at every real matching instant; a gap of more
//! than 3 hours (a zone that jumped over the date line) is not caught up.
//! If the day of month or the day of week begins with `*`, a day must match both, else either.

mod field;

use super::zone::{Segment, Zone, just_before};
use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};

/// Longest gap of local time that a fixed-time job is caught up over.
const LONGEST_GAP: SignedDuration = SignedDuration::from_hours(3);

/// One cron expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    pattern: croner::Cron,
    /// Neither the minute nor the hour is a wildcard.
    fixed: bool,
}

/// A cron expression that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error("`{0}` has {1} of the 5 fields of a cron expression")]
    FieldCount(String, usize),
    #[error("unknown schedule name `{0}`")]
    UnknownName(String),
    #[error("`{value}` in the {field} field: {reason}")]
    Field { field: &'static str, value: String, reason: String },
    #[error("`{0}` never happens")]
    Never(String),
    #[error("`{0}` is not a cron expression: {1}")]
    Other(String, String),
}

/// Schedule names and what they stand for.
const NAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

impl Cron {
    /// The names that stand for an expression: `@daily` and its like.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// Checks each field, then that the expression ever matches from 1970 on.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        let expression = expand(text.trim())?;
        let fields: Vec<&str> = expression.split_whitespace().collect();
        let kinds = field::kinds(fields.len())
            .ok_or_else(|| CronError::FieldCount(text.trim().into(), fields.len()))?;
        for (kind, value) in kinds.iter().zip(&fields) {
            kind.check(value)?;
        }
        let starts_with_star = |name: &str| {
            let place = kinds.iter().position(|kind| kind.name == name);
            place.is_some_and(|i| fields[i].starts_with(['*', '?']))
        };
        let pattern = croner::parser::CronParser::builder()
            .dom_and_dow(starts_with_star(field::DAY) || starts_with_star(field::WEEKDAY))
            .build()
            .parse(&expression)
            .map_err(|error| CronError::Other(text.trim().into(), error.to_string()))?;
        let fixed = !starts_with_star(field::MINUTE) && !starts_with_star(field::HOUR);
        let cron = Self { pattern, fixed };
        let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        cron.civil_from(epoch).ok_or_else(|| CronError::Never(text.trim().into()))?;
        Ok(cron)
    }

    /// The first slot after `after`.
    pub(super) fn next(&self, zone: &Zone, after: Timestamp) -> Option<Timestamp> {
        let mut segment = zone.segment_at(after);
        loop {
            match self.first_in(&segment, after) {
                Found::At(slot) => return Some(slot),
                Found::Never => return None,
                Found::NotHere => segment = zone.segment_at(segment.end?),
            }
        }
    }

    /// The last slot at or before `at`.
    pub(super) fn last(&self, zone: &Zone, at: Timestamp) -> Option<Timestamp> {
        let mut segment = zone.segment_at(at);
        loop {
            match self.last_in(&segment, at) {
                Found::At(slot) => return Some(slot),
                Found::Never => return None,
                Found::NotHere => segment = zone.segment_at(just_before(segment.start?)?),
            }
        }
    }

    fn first_in(&self, segment: &Segment, after: Timestamp) -> Found {
        let begins_later = segment.start.filter(|start| *start > after);
        if let Some(start) = begins_later
            && self.is_caught_up(segment)
        {
            return Found::At(start);
        }
        let second = SignedDuration::from_secs(1);
        let mut from = match begins_later {
            Some(start) => segment.civil(start),
            None => match whole_second(segment.civil(after)).checked_add(second) {
                Ok(from) => from,
                Err(_) => return Found::Never,
            },
        };
        if let Some(until) = segment.repeated_until().filter(|_| self.fixed) {
            from = from.max(until);
        }
        let Some(civil) = self.civil_from(from) else { return Found::Never };
        let slot = segment.instant(civil);
        let is_here = |slot: &Timestamp| segment.end.is_none_or(|end| *slot < end);
        slot.filter(is_here).map_or(Found::NotHere, Found::At)
    }

    fn last_in(&self, segment: &Segment, at: Timestamp) -> Found {
        let at = match segment.end.and_then(just_before) {
            Some(end) if end < at => end,
            _ => at,
        };
        let Some(civil) = self.civil_until(whole_second(segment.civil(at))) else {
            return Found::Never;
        };
        let repeated = segment.repeated_until().filter(|_| self.fixed);
        let is_new = repeated.is_none_or(|until| civil >= until);
        let slot = segment.instant(civil).filter(|slot| segment.start.is_none_or(|s| *slot >= s));
        match (slot, segment.start) {
            (Some(slot), _) if is_new => Found::At(slot),
            (_, Some(start)) if self.is_caught_up(segment) => Found::At(start),
            _ => Found::NotHere,
        }
    }

    /// Whether a fixed-time job fell into the gap where this segment begins.
    fn is_caught_up(&self, segment: &Segment) -> bool {
        segment.gap().is_some_and(|(from, to)| {
            self.fixed
                && to.duration_since(from) <= LONGEST_GAP
                && self.civil_from(from).is_some_and(|civil| civil < to)
        })
    }

    fn civil_from(&self, from: DateTime) -> Option<DateTime> {
        self.pattern.find_next_occurrence(&from, true).ok()
    }

    fn civil_until(&self, until: DateTime) -> Option<DateTime> {
        self.pattern.find_previous_occurrence(&until, true).ok()
    }
}

/// What a search of one segment found.
enum Found {
    At(Timestamp),
    NotHere,
    /// Neither here nor in any segment further on.
    Never,
}

fn whole_second(civil: DateTime) -> DateTime {
    civil.with().subsec_nanosecond(0).build().unwrap_or(civil)
}

fn expand(text: &str) -> Result<String, CronError> {
    if !text.starts_with('@') {
        return Ok(text.into());
    }
    let known = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    known.map(|(_, cron)| (*cron).into()).ok_or_else(|| CronError::UnknownName(text.into()))
}
