//! The calendar against an independent reading of the documented rule: minute by minute, with the
//! offsets and changes of the zones from the zone database and nothing of the calendar's own.
//!
//! The rule: a fixed local time in a gap of up to 3 hours runs once, at the first instant after it; one
//! that is repeated runs at its first occurrence; with a wildcard in the minute or the hour each real
//! matching minute counts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fencepost_core::schedule::{Calendar, Schedule, Timing, Zone};
use fencepost_core::time::{Span, Timestamp};
use std::collections::BTreeSet;

/// A generator of its own (splitmix64): the same cases on every machine.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }
    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }
    fn number(&mut self, from: u64, end: u64) -> String {
        (from + self.below(end - from)).to_string()
    }
}

/// A cron expression as a table: which minutes, hours, days, months and weekdays.
struct Table {
    fields: Vec<BTreeSet<i64>>,
    is_fixed: bool,
    /// Both the day of the month and the day of the week must match.
    both_days: bool,
}

const BOUNDS: [(i64, i64); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];

impl Table {
    fn of(cron: &str) -> Self {
        let texts: Vec<&str> = cron.split(' ').collect();
        let mut fields: Vec<BTreeSet<i64>> =
            texts.iter().zip(BOUNDS).map(|(text, bounds)| numbers(text, bounds)).collect();
        if fields[4].contains(&7) {
            fields[4].insert(0);
        }
        let starred = |at: usize| texts[at].starts_with('*');
        Self { is_fixed: !starred(0) && !starred(1), both_days: starred(2) || starred(4), fields }
    }

    /// Whether a local minute, counted from 1970, matches.
    fn matches(&self, minute: i64) -> bool {
        let (hour, of_hour) = (minute.div_euclid(60), minute.rem_euclid(60));
        if !self.fields[0].contains(&of_hour) || !self.fields[1].contains(&hour.rem_euclid(24)) {
            return false;
        }
        let days = hour.div_euclid(24);
        let date = jiff::civil::date(1970, 1, 1) + jiff::Span::new().days(days);
        let day = self.fields[2].contains(&date.day().into());
        // 1970-01-01 was a Thursday.
        let weekday = self.fields[4].contains(&(days + 4).rem_euclid(7));
        let is_day = if self.both_days { day && weekday } else { day || weekday };
        is_day && self.fields[3].contains(&date.month().into())
    }
}

fn numbers(text: &str, (least, most): (i64, i64)) -> BTreeSet<i64> {
    let mut out = BTreeSet::new();
    for part in text.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (from.parse().unwrap(), to.parse().unwrap()),
            None if range == "*" => (least, most.min(if most == 7 { 6 } else { most })),
            None => (range.parse().unwrap(), range.parse().unwrap()),
        };
        out.extend((from..=to).step_by(step.parse().unwrap()));
    }
    out
}

/// A stretch of one offset, in seconds: from, until, offset.
type Stretch = (i64, i64, i64);

/// The stretches from two days before an instant to two days after another.
fn stretches(zone: &Zone, from: i64, to: i64) -> Vec<Stretch> {
    let second = |at: i64| jiff::Timestamp::from_second(at).unwrap();
    let (from, to) = (from - 2 * 86_400, to + 2 * 86_400);
    let offset = |at: i64| i64::from(zone.as_jiff().to_offset(second(at)).seconds());
    let changes =
        zone.as_jiff().following(second(from)).map(|change| change.timestamp().as_second());
    let mut out = Vec::new();
    let mut start = from;
    for change in changes.take_while(|at| *at < to) {
        // Some entries of the database change a name or the season's flag and no clock.
        if offset(change) != offset(start) {
            out.push((start, change, offset(start)));
            start = change;
        }
    }
    out.push((start, to, offset(start)));
    out
}

/// What a walk met on its way.
#[derive(Debug, Default)]
struct Met {
    gaps: usize,
    long_gaps: usize,
    repeats: usize,
    wild_repeats: usize,
    fires: usize,
}

/// The fires after `from` and until `to`, read off minute by minute.
fn walk(table: &Table, stretches: &[Stretch], (from, to): (i64, i64), met: &mut Met) -> Vec<i64> {
    let mut fires = BTreeSet::new();
    for (at, (start, end, offset)) in stretches.iter().enumerate() {
        if let Some((_, _, before)) = at.checked_sub(1).map(|at| stretches[at])
            && table.is_fixed
            && *offset > before
        {
            let skipped = ((start + before).div_euclid(60)..=(start + offset).div_euclid(60))
                .filter(|minute| (start + before..start + offset).contains(&(minute * 60)));
            if skipped.into_iter().any(|minute| table.matches(minute)) {
                let is_long = offset - before > 3 * 3_600;
                met.long_gaps += usize::from(is_long);
                met.gaps += usize::from(!is_long);
                if !is_long {
                    fires.insert(*start);
                }
            }
        }
        let (first, last) = ((*start).max(from), (*end).min(to + 1));
        let mut minute = (first + offset).div_euclid(60);
        while minute * 60 - offset < last {
            let instant = minute * 60 - offset;
            if instant >= first && table.matches(minute) {
                let earlier = stretches[..at]
                    .iter()
                    .any(|(start, end, offset)| (*start..*end).contains(&(minute * 60 - offset)));
                met.repeats += usize::from(earlier && table.is_fixed);
                met.wild_repeats += usize::from(earlier && !table.is_fixed);
                if !(earlier && table.is_fixed) {
                    fires.insert(instant);
                }
            }
            minute += 1;
        }
    }
    fires.retain(|at| *at > from && *at <= to);
    met.fires += fires.len();
    fires.into_iter().collect()
}

fn expression(draw: &mut Draw) -> String {
    let minute = match draw.below(6) {
        0 => "*/20".to_owned(),
        1 => "0,30".to_owned(),
        2 => "15-45/10".to_owned(),
        3 => "0".to_owned(),
        _ => draw.number(0, 60),
    };
    let hour = match draw.below(7) {
        0 => "*".to_owned(),
        1 => "*/3".to_owned(),
        2 => "1-3".to_owned(),
        3 => "0,2,23".to_owned(),
        _ => draw.number(0, 4),
    };
    let day = draw.of(&["*", "*", "*", "*/2", "1-20", "31"]);
    let month = draw.of(&["*", "*", "*", "3,10", "9-11"]);
    let weekday = draw.of(&["*", "*", "*", "0", "1-5", "7", "*/2"]);
    format!("{minute} {hour} {day} {month} {weekday}")
}

/// An instant of 1970 to 2100: half of them near a change of the zone's clock.
fn instant(draw: &mut Draw, zone: &Zone) -> i64 {
    let any = i64::try_from(draw.below(130 * 31_556_952)).unwrap();
    if draw.below(8) == 0 {
        return any;
    }
    let after = jiff::Timestamp::from_second(any).unwrap();
    let change =
        zone.as_jiff().following(after).next().map(|change| change.timestamp().as_second());
    let near = i64::try_from(draw.below(40 * 3_600)).unwrap() - 36 * 3_600;
    change.filter(|at| *at < 130 * 31_556_952).map_or(any, |at| (at + near).max(0))
}

#[test]
fn slots_equal_a_walk_over_the_minutes_in_every_zone_from_1970_to_2100() {
    const CASES: usize = 20_000;
    const SPAN: i64 = 3 * 86_400;
    let names = Zone::names();
    let mut draw = Draw(7);
    let mut met = Met::default();
    for case in 0..CASES {
        let name = &names[case % names.len()];
        let zone = Zone::get(name).unwrap();
        let cron = expression(&mut draw);
        let from = instant(&mut draw, &zone);
        let to = from + SPAN;
        let expected = walk(&Table::of(&cron), &stretches(&zone, from, to), (from, to), &mut met);
        let timing = Timing {
            schedule: Schedule::Cron(vec![cron.clone()]),
            timezone: name.clone(),
            ..Timing::manual()
        };
        // An expression that never happens is none.
        let Ok(calendar) = Calendar::new(&timing) else { continue };
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
        let found: Vec<i64> = calendar
            .due(at(from), at(to), 10_000)
            .iter()
            .map(|slot| slot.due_at.as_micros() / 1_000_000)
            .collect();
        let shown = jiff::Timestamp::from_second(from).unwrap();
        assert_eq!(found, expected, "case {case}: {cron} {name} from {shown}");
        // Backwards it is the same.
        let newest = calendar.newest_due(at(to)).filter(|slot| slot.due_at > at(from));
        let newest = newest.map(|slot| slot.due_at.as_micros() / 1_000_000);
        assert_eq!(newest, expected.last().copied(), "case {case}: {cron} {name} until {shown}+3d");
    }
    // A walk that meets nothing difficult shows nothing.
    assert!(met.fires > 100_000 && met.gaps > 400 && met.repeats > 500, "{met:?}");
    assert!(met.wild_repeats > 500 && met.long_gaps > 0, "{met:?}");
}

/// The instants of `docs/schedules.md`, which people read.
#[test]
fn the_page_about_schedules_tells_the_truth() {
    let page = include_str!("../../../../docs/schedules.md");
    let mut read = 0;
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [cron, zone, from, to, instants, ..] = cells.as_slice() else { continue };
        if !instants.ends_with('Z') && *instants != "none" {
            continue;
        }
        let timing = Timing {
            schedule: Schedule::Cron(vec![cron.trim_matches('`').into()]),
            timezone: (*zone).into(),
            ..Timing::manual()
        };
        let calendar = Calendar::new(&timing).unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let tick = Span::from_micros(1);
        let slots = calendar.due(at(from).minus(tick), at(to).minus(tick), 1_000);
        let found: Vec<String> =
            slots.iter().map(|slot| slot.due_at.to_string().replace(":00.000Z", "Z")).collect();
        let found = if found.is_empty() { "none".into() } else { found.join(" ") };
        assert_eq!(found, *instants, "{line}");
        read += 1;
    }
    assert!(read >= 20, "{read} rows were read");
}
