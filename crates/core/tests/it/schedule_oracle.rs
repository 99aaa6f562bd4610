//! Slots against oracles: a scan of minutes, the days around every change of every zone's clock.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fencepost_core::schedule::{Calendar, Cron, Schedule, Slot, Timetable, Timing, Zone};
use fencepost_core::time::{Span, Timestamp};
use proptest::prelude::*;

fn timing(cron: &str, zone: &str) -> Timing {
    Timing {
        schedule: Schedule::Cron(vec![cron.into()]),
        timezone: zone.into(),
        ..Timing::manual()
    }
}

/// The policy, read off minute by minute.
fn scan(fixed: Option<(i64, i64)>, zone: &str, from: Timestamp, minutes: i64) -> Vec<Timestamp> {
    let tz = Zone::get(zone).unwrap();
    let local = |at: Timestamp| at.to_jiff().to_zoned(tz.as_jiff().clone()).datetime();
    let minute_of_day = |at| i64::from(local(at).hour()) * 60 + i64::from(local(at).minute());
    let mut found = Vec::new();
    let mut done = std::collections::BTreeSet::new();
    for minute in 0..minutes {
        let now = from.plus(Span::from_mins(minute));
        let before = now.minus(Span::from_mins(1));
        let Some((hour, min)) = fixed else {
            if minute_of_day(now) % 30 == 0 {
                found.push(now);
            }
            continue;
        };
        // The first instant of this local day at which the time has come or was jumped over.
        let wanted = hour * 60 + min;
        let is_time = minute_of_day(now) == wanted;
        let jumped = local(now).duration_since(local(before)).as_mins();
        let passed = (1..jumped).any(|back| (minute_of_day(now) - back).rem_euclid(1440) == wanted);
        if (is_time || (passed && jumped <= 181)) && done.insert(local(now).date()) {
            found.push(now);
        }
    }
    found
}

const ZONES: [&str; 10] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Africa/Cairo",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "America/St_Johns",
    "Asia/Beirut",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn slots_equal_a_scan_of_minutes(
        zone in 0_usize..ZONES.len(), day in 0_i64..9_000, hour in 0_i64..24, minute in 0_i64..60,
        half_hours in any::<bool>(),
    ) {
        let from = Timestamp::from_micros(1_000_000_000_000_000 / 60_000_000 * 60_000_000)
            .plus(Span::from_hours(24 * day));
        let minutes = 20 * 24 * 60;
        let fixed = (!half_hours).then_some((hour, minute));
        let cron = if half_hours { "*/30 * * * *".into() } else { format!("{minute} {hour} * * *") };
        let calendar = Calendar::new(&timing(&cron, ZONES[zone])).unwrap();
        let tick = Span::from_micros(1);
        let until = from.plus(Span::from_mins(minutes)).minus(tick);
        let found: Vec<_> =
            calendar.due(from.minus(tick), until, 10_000).iter().map(|slot| slot.due_at).collect();
        prop_assert_eq!(found, scan(fixed, ZONES[zone], from, minutes), "{} {}", cron, ZONES[zone]);
    }

    #[test]
    fn next_and_newest_are_inverse_and_increase(
        zone in 0_usize..ZONES.len(), seconds in 0_i64..2_000_000_000, micros in 0_i64..1_000_000,
        minute in "(\\*|\\*/7|0|59|3,33|10-20/5)", hour in "(\\*|\\*/5|0|2|23|1-3)",
        day in "(\\*|\\*/2|1|31|L|15W)", weekday in "(\\*|0|1-5|5L|3#2)",
    ) {
        let cron = format!("{minute} {hour} {day} * {weekday}");
        let calendar = Calendar::new(&timing(&cron, ZONES[zone])).unwrap();
        let mut now = Timestamp::from_micros(seconds * 1_000_000 + micros);
        for _ in 0..20 {
            let next = calendar.next_after(now).unwrap();
            prop_assert!(next.due_at > now);
            prop_assert!(next.interval_start < next.due_at);
            prop_assert_eq!(calendar.newest_due(next.due_at), Some(next));
            let between = next.due_at.minus(Span::from_micros(1));
            if let Some(before) = calendar.newest_due(between) {
                prop_assert!(before.due_at <= now || before.due_at < next.due_at);
                prop_assert_eq!(calendar.next_after(before.due_at), Some(next));
                prop_assert_eq!(before.due_at, next.interval_start);
            }
            now = next.due_at;
        }
    }

    /// The slots of a range are those of the calendar with such dates, page by page, in both directions.
    #[test]
    fn the_slots_of_a_range_are_the_same_forwards_and_backwards(
        zone in 0_usize..ZONES.len(), seconds in 0_i64..2_000_000_000, hours in 1_i64..200,
        is_interval in any::<bool>(), bounds in (any::<bool>(), any::<bool>()), page in 1_usize..7,
        cron in "(0|30|\\*/20) (\\*|2|\\*/5|0,23) \\* \\* \\*", late in 0_i64..100,
    ) {
        let from = Timestamp::from_micros(seconds * 1_000_000);
        let to = from.plus(Span::from_hours(hours));
        let inner = |n: i64| from.plus(Span::from_hours(hours * n / 4));
        let timing = Timing {
            timetable: if is_interval { Timetable::DataInterval } else { Timetable::Trigger },
            start_date: bounds.0.then(|| inner(1)),
            end_date: bounds.1.then(|| inner(3)),
            ..timing(&cron, ZONES[zone])
        };
        let calendar = Calendar::new(&timing).unwrap();
        let now = to.plus(Span::from_hours(late - 50));
        let day = Span::from_hours(48);
        let all = calendar.due(from.minus(day), to.plus(day).min(now), 100_000);
        let is_in = |slot: &Slot| slot.logical_date >= from && slot.logical_date <= to;
        let expected: Vec<Slot> = all.into_iter().filter(is_in).collect();
        for backwards in [false, true] {
            let (mut found, mut place) = (Vec::new(), None);
            loop {
                let slots = calendar.between((from, to), now, (place, backwards), page);
                place = slots.last().map(|slot| slot.due_at).or(place);
                found.extend(slots.iter().copied());
                if slots.len() < page {
                    break;
                }
            }
            if backwards {
                found.reverse();
            }
            prop_assert_eq!(&found, &expected, "{:?} backwards: {}", timing, backwards);
        }
    }

    #[test]
    fn no_text_panics(text in "[-*/0-9,LW#?@+A-Za-z ]{0,30}", zone in "[A-Za-z/_]{0,20}") {
        let _ = Cron::parse(&text);
        let _ = Calendar::new(&timing(&text, &zone));
    }
}

/// What the policy says of one local day: the instant, the first of two, the end of the gap.
fn expected_on(day: jiff::civil::Date, time: (i8, i8), zone: &Zone) -> Option<Timestamp> {
    let ambiguous = zone.as_jiff().to_ambiguous_zoned(day.at(time.0, time.1, 0, 0));
    let at = match ambiguous.offset() {
        jiff::tz::AmbiguousOffset::Gap { before, after } => {
            if after.seconds() - before.seconds() > 3 * 3600 {
                return None;
            }
            // A time skipped at `t` is `t` or later by the clock after it.
            let shifted = ambiguous.later().unwrap().timestamp();
            let just_after = shifted + jiff::SignedDuration::from_nanos(1);
            zone.as_jiff().preceding(just_after).next().unwrap().timestamp()
        }
        jiff::tz::AmbiguousOffset::Unambiguous { .. } | jiff::tz::AmbiguousOffset::Fold { .. } => {
            ambiguous.earlier().unwrap().timestamp()
        }
    };
    Some(Timestamp::from_jiff(at))
}

/// Days around each change of the clocks, where all that is difficult happens.
#[test]
fn a_fixed_time_runs_once_a_local_day_in_every_zone_for_ten_years() {
    let (first, last) = ("2017-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    let (first, last): (jiff::Timestamp, jiff::Timestamp) =
        (first.parse().unwrap(), last.parse().unwrap());
    let day = |days: i64| jiff::Span::new().days(days);
    let (mut zones, mut changes) = (0, 0);
    // Links repeat the zones that they stand for.
    for name in Zone::names().into_iter().filter(|name| Zone::get(name).unwrap().name() == name) {
        let zone = Zone::get(&name).unwrap();
        let within = zone.as_jiff().following(first).take_while(|t| t.timestamp() < last);
        let within: Vec<jiff::Timestamp> = within.map(|change| change.timestamp()).collect();
        zones += usize::from(!within.is_empty());
        changes += within.len();
        // A time of the usual changes for all, another one by the zone.
        let other = i8::try_from(name.len() % 24).unwrap();
        for time in [(2, 30), (other, 0)] {
            let cron = format!("{} {} * * *", time.1, time.0);
            let calendar = Calendar::new(&timing(&cron, &name)).unwrap();
            for change in &within {
                let local = change.to_zoned(zone.as_jiff().clone()).date();
                let days = local.checked_sub(day(2)).unwrap().series(day(1)).take(5);
                let mut expected: Vec<_> =
                    days.filter_map(|day| expected_on(day, time, &zone)).collect();
                expected.dedup();
                let before = expected[0].minus(Span::from_micros(1));
                let slots = calendar.due(before, expected[expected.len() - 1], 100);
                let found: Vec<_> = slots.iter().map(|slot| slot.due_at).collect();
                assert_eq!(found, expected, "{cron} {name}");
            }
        }
    }
    assert!(zones > 80 && changes > 1_000, "{zones} zones, {changes} changes");
}
