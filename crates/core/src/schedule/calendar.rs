//! A `Timing` made ready for questions: which slot comes next, which are due, which is the newest.

use super::{Cron, Schedule, ScheduleError, Slot, Timetable, Timing, Zone};
use crate::time::{Span, Timestamp};

const MICRO: Span = Span::from_micros(1);
/// Slots are looked for between the years 1900 and 4900; the rules of zones and of the calendar
/// hold there without surprises.
const EARLIEST: Timestamp = Timestamp::from_micros(-2_208_988_800_000_000);
const LATEST: Timestamp = Timestamp::from_micros(92_460_787_200_000_000);

/// The slots of one `Timing`.
#[derive(Debug, Clone)]
pub struct Calendar {
    rule: Rule,
    timetable: Timetable,
    start_date: Option<Timestamp>,
    end_date: Option<Timestamp>,
}

#[derive(Debug, Clone)]
enum Rule {
    Manual,
    Cron(Vec<Cron>, Zone),
    Every { anchor: Timestamp, step: Span },
    At(Timestamp),
}

/// Up to `limit` slots due after `after`, oldest first.
///
/// Reads the expressions anew at each call; keep a `Calendar` where that matters.
pub fn slots_after(
    timing: &Timing,
    after: Timestamp,
    limit: usize,
) -> Result<Vec<Slot>, ScheduleError> {
    Ok(Calendar::new(timing)?.due(after, Timestamp::from_micros(i64::MAX), limit))
}

impl Calendar {
    /// Checks the cron expressions, the zone and the interval.
    pub fn new(timing: &Timing) -> Result<Self, ScheduleError> {
        let zone = Zone::get(&timing.timezone)
            .ok_or_else(|| ScheduleError::UnknownZone(timing.timezone.clone()))?;
        let rule = match &timing.schedule {
            // No slots: its runs are made of events, or by a person.
            Schedule::Manual | Schedule::Assets(_) => Rule::Manual,
            Schedule::Cron(texts) => {
                let crons: Result<Vec<_>, _> = texts.iter().map(|text| Cron::parse(text)).collect();
                Rule::Cron(crons?, zone)
            }
            Schedule::Every(step) if *step < Span::from_secs(1) => {
                return Err(ScheduleError::TooShort(*step));
            }
            Schedule::Every(step) => {
                Rule::Every { anchor: timing.start_date.unwrap_or_default(), step: *step }
            }
            Schedule::At(at) => Rule::At(*at),
        };
        let (start_date, end_date) = (timing.start_date, timing.end_date);
        Ok(Self { rule, timetable: timing.timetable, start_date, end_date })
    }

    /// The first slot due after `after`.
    pub fn next_after(&self, after: Timestamp) -> Option<Slot> {
        let after = self.start_date.map_or(after, |start| after.max(start.minus(MICRO)));
        let mut slot = self.slot(self.instant_after(after)?);
        if self.start_date.is_some_and(|start| slot.logical_date < start) {
            slot = self.slot(self.instant_after(slot.due_at)?);
        }
        self.belongs(slot).then_some(slot)
    }

    /// Up to `limit` slots with `after < due_at <= now`, oldest first.
    pub fn due(&self, after: Timestamp, now: Timestamp, limit: usize) -> Vec<Slot> {
        let first = self.next_after(after);
        core::iter::successors(first, |slot| self.next_after(slot.due_at))
            .take_while(|slot| slot.due_at <= now)
            .take(limit)
            .collect()
    }

    /// Up to `limit` slots from `start_date` on that are due at `now`; none without a start date,
    /// since nothing says where to begin.
    pub fn due_since_start(&self, now: Timestamp, limit: usize) -> Vec<Slot> {
        self.start_date.map_or_else(Vec::new, |start| self.due(start.minus(MICRO), now, limit))
    }

    /// The newest slot with `due_at <= now`, found backwards from `now` whatever lies before it.
    pub fn newest_due(&self, now: Timestamp) -> Option<Slot> {
        let mut slot = self.slot(self.instant_until(now)?);
        if let Some(end) = self.end_date.filter(|end| slot.logical_date > *end) {
            let last = self.instant_until(end)?;
            slot = self.slot(match self.timetable {
                Timetable::Trigger => last,
                Timetable::DataInterval => self.instant_after(last)?,
            });
        }
        self.belongs(slot).then_some(slot)
    }

    /// Up to `limit` slots with a logical date in `range`, due at `now`, in order: after the one that
    /// was due at `place`, or from the beginning; backwards from the end.
    pub fn between(
        &self,
        range: (Timestamp, Timestamp),
        now: Timestamp,
        (place, backwards): (Option<Timestamp>, bool),
        limit: usize,
    ) -> Vec<Slot> {
        let to = self.end_date.map_or(range.1, |end| end.min(range.1));
        let is_in = |slot: &Slot| (range.0..=to).contains(&slot.logical_date) && slot.due_at <= now;
        if backwards {
            let newest = self.newest_due(match (place, self.timetable) {
                (Some(place), _) => place.minus(MICRO),
                (None, Timetable::Trigger) => to.min(now),
                // The slot of an interval is due at its end.
                (None, Timetable::DataInterval) => {
                    self.instant_after(to).map_or(now, |end| end.min(now))
                }
            });
            let before = |slot: &Slot| self.newest_due(slot.due_at.minus(MICRO));
            let back = core::iter::successors(newest, before);
            return back
                .take_while(|slot| slot.logical_date >= range.0)
                .filter(is_in)
                .take(limit)
                .collect();
        }
        let first = self.next_after(place.unwrap_or_else(|| range.0.minus(MICRO)));
        core::iter::successors(first, |slot| self.next_after(slot.due_at))
            .skip_while(|slot| slot.logical_date < range.0)
            .take_while(is_in)
            .take(limit)
            .collect()
    }

    fn belongs(&self, slot: Slot) -> bool {
        self.start_date.is_none_or(|start| start <= slot.logical_date)
            && self.end_date.is_none_or(|end| slot.logical_date <= end)
    }

    fn slot(&self, due_at: Timestamp) -> Slot {
        let interval_start = self.instant_until(due_at.minus(MICRO)).unwrap_or(due_at);
        let logical_date = match self.timetable {
            Timetable::Trigger => due_at,
            Timetable::DataInterval => interval_start,
        };
        Slot { due_at, logical_date, interval_start, interval_end: due_at }
    }

    /// The first instant of the rule after `after`, whatever the start and end dates.
    fn instant_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = after.max(EARLIEST);
        let found = match &self.rule {
            Rule::Manual => None,
            Rule::Cron(crons, zone) => {
                let at = after.to_jiff();
                crons.iter().filter_map(|cron| cron.next(zone, at)).min().map(Timestamp::from_jiff)
            }
            Rule::Every { anchor, step } => Some(tick(*anchor, *step, after, 1)),
            Rule::At(at) => Some(*at).filter(|at| *at > after),
        };
        found.filter(|at| *at <= LATEST)
    }

    /// The last instant of the rule at or before `at`, whatever the start and end dates.
    fn instant_until(&self, at: Timestamp) -> Option<Timestamp> {
        let at = at.min(LATEST);
        let found = match &self.rule {
            Rule::Manual => None,
            Rule::Cron(crons, zone) => {
                let until = at.to_jiff();
                let last = crons.iter().filter_map(|cron| cron.last(zone, until)).max();
                last.map(Timestamp::from_jiff)
            }
            Rule::Every { anchor, step } => Some(tick(*anchor, *step, at, 0)),
            Rule::At(once) => Some(*once).filter(|once| *once <= at),
        };
        found.filter(|at| *at >= EARLIEST)
    }
}

/// The last tick at or before `at`, moved `further` ticks on.
fn tick(anchor: Timestamp, step: Span, at: Timestamp, further: i64) -> Timestamp {
    let count = at.since(anchor).as_micros().div_euclid(step.as_micros());
    anchor.plus(step.times(count.saturating_add(further)))
}
