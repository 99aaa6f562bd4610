//! Slots: exact instants over changes of the clock, bounds, catch-up, errors.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use fencepost_core::schedule::{
    Calendar, Catchup, Cron, Schedule, Slot, Timetable, Timing, Zone, slots_after,
};
use fencepost_core::time::{Span, Timestamp};

fn at(text: &str) -> Timestamp {
    let full = match text.len() {
        16 => format!("{text}:00Z"),
        17 => format!("{}:00Z", &text[..16]),
        _ => text.to_owned(),
    };
    full.parse().unwrap()
}

fn timing(cron: &str, zone: &str) -> Timing {
    Timing {
        schedule: Schedule::Cron(vec![cron.into()]),
        timezone: zone.into(),
        ..Timing::manual()
    }
}

/// The slots of `[from, to)` as `2026-03-08T07:00Z`.
fn fires(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let calendar = Calendar::new(&timing(cron, zone)).unwrap();
    let (from, to) = (at(from), at(to));
    let tick = Span::from_micros(1);
    let slots = calendar.due(from.minus(tick), to.minus(tick), 10_000);
    slots.iter().map(|slot| short(slot.due_at)).collect()
}

fn short(at: Timestamp) -> String {
    format!("{}Z", &at.to_string()[..16])
}

fn check(cron: &str, zone: &str, from: &str, to: &str, expected: &[&str]) {
    let found = fires(cron, zone, from, to);
    assert_eq!(found, expected, "{cron} {zone}");
    // Backwards from each instant the same slots are found.
    let calendar = Calendar::new(&timing(cron, zone)).unwrap();
    for pair in expected.windows(2) {
        let newest = calendar.newest_due(at(pair[1]).minus(Span::from_micros(1))).unwrap();
        assert_eq!(short(newest.due_at), pair[0], "{cron} {zone} before {}", pair[1]);
    }
}

#[test]
fn a_fixed_time_in_a_gap_runs_once_at_its_end() {
    check(
        "30 2 * * *",
        "America/New_York",
        "2026-03-07",
        "2026-03-10",
        &["2026-03-07T07:30Z", "2026-03-08T07:00Z", "2026-03-09T06:30Z"],
    );
    check(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-03-28",
        "2026-03-31",
        &["2026-03-28T01:30Z", "2026-03-29T01:00Z", "2026-03-30T00:30Z"],
    );
    check(
        "0 0 * * *",
        "Africa/Cairo",
        "2026-04-22",
        "2026-04-26",
        &["2026-04-22T22:00Z", "2026-04-23T22:00Z", "2026-04-24T21:00Z", "2026-04-25T21:00Z"],
    );
    check(
        "15 2 * * *",
        "Australia/Lord_Howe",
        "2025-10-03",
        "2025-10-06",
        &["2025-10-03T15:45Z", "2025-10-04T15:30Z", "2025-10-05T15:15Z"],
    );
    check(
        "0 2 * * *",
        "America/New_York",
        "2019-03-10",
        "2019-03-12",
        &["2019-03-10T07:00Z", "2019-03-11T06:00Z"],
    );
    check(
        "30 2 * * 7",
        "Europe/Rome",
        "2025-03-28",
        "2025-04-07",
        &["2025-03-30T01:00Z", "2025-04-06T00:30Z"],
    );
    check("30 2 * * *", "Africa/Casablanca", "2026-03-22", "2026-03-23", &["2026-03-22T02:00Z"]);
    // Two fixed times within one gap are one slot: it has one UTC identity.
    check("0,30 2 * * *", "Europe/Berlin", "2026-03-29", "2026-03-30", &["2026-03-29T01:00Z"]);
    check("0 2,3 * * *", "Europe/Berlin", "2026-03-29", "2026-03-30", &["2026-03-29T01:00Z"]);
}

#[test]
fn a_fixed_time_in_an_overlap_runs_at_the_first_occurrence() {
    check(
        "30 1 * * *",
        "America/New_York",
        "2026-10-31",
        "2026-11-03",
        &["2026-10-31T05:30Z", "2026-11-01T05:30Z", "2026-11-02T06:30Z"],
    );
    check(
        "30 2 * * *",
        "Europe/Berlin",
        "2026-10-24",
        "2026-10-27",
        &["2026-10-24T00:30Z", "2026-10-25T00:30Z", "2026-10-26T01:30Z"],
    );
    check(
        "45 1 * * *",
        "Australia/Lord_Howe",
        "2025-04-04",
        "2025-04-07",
        &["2025-04-04T14:45Z", "2025-04-05T14:45Z", "2025-04-06T15:15Z"],
    );
    check("0 2 * * *", "Africa/Casablanca", "2026-02-15", "2026-02-16", &["2026-02-15T01:00Z"]);
    check("30 1 * * *", "Europe/London", "2026-10-25", "2026-10-26", &["2026-10-25T00:30Z"]);
    check("0 6 * * 1", "America/New_York", "2021-11-08", "2021-11-09", &["2021-11-08T11:00Z"]);
    check(
        "0 8 * * 1",
        "Europe/Amsterdam",
        "2017-10-23",
        "2017-11-07",
        &["2017-10-23T06:00Z", "2017-10-30T07:00Z", "2017-11-06T07:00Z"],
    );
}

#[test]
fn a_wildcard_runs_at_every_real_matching_instant() {
    check(
        "0 * * * *",
        "America/Los_Angeles",
        "2026-11-01T07:00",
        "2026-11-01T11:01",
        &[
            "2026-11-01T07:00Z",
            "2026-11-01T08:00Z",
            "2026-11-01T09:00Z",
            "2026-11-01T10:00Z",
            "2026-11-01T11:00Z",
        ],
    );
    check(
        "*/15 1 * * *",
        "America/New_York",
        "2026-11-01",
        "2026-11-02",
        &[
            "2026-11-01T05:00Z",
            "2026-11-01T05:15Z",
            "2026-11-01T05:30Z",
            "2026-11-01T05:45Z",
            "2026-11-01T06:00Z",
            "2026-11-01T06:15Z",
            "2026-11-01T06:30Z",
            "2026-11-01T06:45Z",
        ],
    );
    check(
        "*/30 * * * *",
        "Europe/Berlin",
        "2026-03-29T00:30",
        "2026-03-29T02:00",
        &["2026-03-29T00:30Z", "2026-03-29T01:00Z", "2026-03-29T01:30Z"],
    );
    let hours = |from, to| fires("0 * * * *", "America/New_York", from, to).len();
    assert_eq!(hours("2026-11-01T04:00", "2026-11-02T05:00"), 25);
    assert_eq!(hours("2026-03-08T05:00", "2026-03-09T04:00"), 23);
}

#[test]
fn reported_schedules_neither_panic_nor_repeat() {
    check(
        "20 */4 * * *",
        "America/Los_Angeles",
        "2023-03-12T08:00",
        "2023-03-13T07:00",
        &[
            "2023-03-12T08:20Z",
            "2023-03-12T11:20Z",
            "2023-03-12T15:20Z",
            "2023-03-12T19:20Z",
            "2023-03-12T23:20Z",
            "2023-03-13T03:20Z",
        ],
    );
    check(
        "0 */2 * * *",
        "America/Toronto",
        "2023-03-12T05:00",
        "2023-03-12T13:00",
        &["2023-03-12T05:00Z", "2023-03-12T08:00Z", "2023-03-12T10:00Z", "2023-03-12T12:00Z"],
    );
    check("4 16 * * *", "America/New_York", "2025-03-09", "2025-03-10", &["2025-03-09T20:04Z"]);
    check("5 0 * * *", "Europe/Amsterdam", "2021-03-28", "2021-03-29", &["2021-03-28T22:05Z"]);
    check("0 0 * * *", "Europe/Warsaw", "2017-03-26", "2017-03-27", &["2017-03-26T22:00Z"]);
}

#[test]
fn a_gap_of_a_day_is_not_caught_up() {
    check(
        "0 12 * * *",
        "Pacific/Apia",
        "2011-12-28",
        "2011-12-31",
        &["2011-12-28T22:00Z", "2011-12-29T22:00Z", "2011-12-30T22:00Z"],
    );
    // Three hours are: Casey moved its clock from 00:01 to 03:01.
    check("30 1 * * *", "Antarctica/Casey", "2020-10-03", "2020-10-04", &["2020-10-03T16:01Z"]);
}

#[test]
fn days_match_as_in_vixie_cron() {
    let days = |cron, from, to| -> Vec<String> {
        fires(cron, "UTC", from, to).iter().map(|t| t[..10].to_owned()).collect()
    };
    assert_eq!(
        days("0 0 */2 * 1", "2025-01-01", "2025-02-04"),
        ["2025-01-13", "2025-01-27", "2025-02-03",]
    );
    assert_eq!(
        days("0 0 15 * */3", "2025-01-01", "2025-06-30"),
        ["2025-01-15", "2025-02-15", "2025-03-15", "2025-06-15",]
    );
    assert_eq!(
        days("0 16 1,2,3 * 5", "2023-05-01", "2023-05-20"),
        ["2023-05-01", "2023-05-02", "2023-05-03", "2023-05-05", "2023-05-12", "2023-05-19",]
    );
    assert_eq!(days("0 9 1-31 * 1", "2025-01-01", "2025-01-11").len(), 10);
    assert_eq!(
        days("0 0 * * */2", "2026-01-02", "2026-01-07"),
        ["2026-01-03", "2026-01-04", "2026-01-06",]
    );
    assert_eq!(days("0 0 31 * *", "2026-01-01", "2027-01-01").len(), 7);
    assert_eq!(days("0 0 29 2 *", "2096-03-01", "2105-01-01"), ["2104-02-29"]);
    assert_eq!(
        days("0 0 * * 7", "2026-01-01", "2026-01-12"),
        days("0 0 * * SUN", "2026-01-01", "2026-01-12")
    );
    assert_eq!(days("0 0 L * *", "2024-01-31", "2024-03-01"), ["2024-01-31", "2024-02-29"]);
    assert_eq!(days("0 0 * * fri#2", "2026-01-01", "2026-03-01"), ["2026-01-09", "2026-02-13"]);
    assert_eq!(days("0 0 15W * *", "2026-02-01", "2026-03-01"), ["2026-02-16"]);
    assert_eq!(fires("*/40 * * * *", "UTC", "2026-01-01T00:00", "2026-01-01T01:00").len(), 2);
}

#[test]
fn an_error_names_the_field_and_the_value() {
    let error = |cron: &str| Cron::parse(cron).unwrap_err().to_string();
    assert_eq!(error("61 * * * *"), "`61` in the minute field: 61 is not in 0 to 59");
    assert_eq!(error("0 25 * * *"), "`25` in the hour field: 25 is not in 0 to 23");
    assert_eq!(error("0 0 0 * *"), "`0` in the day-of-month field: 0 is not in 1 to 31");
    assert_eq!(
        error("0 0 * FOO *"),
        "`FOO` in the month field: `FOO` is neither 1 to 12 nor JAN to DEC"
    );
    assert_eq!(error("5/15 * * * *"), "`5/15` in the minute field: write `5-59/15`");
    assert_eq!(
        error("*/0 * * * *"),
        "`*/0` in the minute field: the step `0` must be a number from 1 up"
    );
    assert_eq!(
        error("0 0 * * FRI-MON"),
        "`FRI-MON` in the day-of-week field: the range `FRI-MON` runs backwards; \
         write `FRI-6,0-MON`"
    );
    assert_eq!(
        error("0 0 * * MONDAY"),
        "`MONDAY` in the day-of-week field: `MONDAY` is neither 0 to 7 nor SUN to SAT"
    );
    assert_eq!(error("* * *"), "`* * *` has 3 of the 5 fields of a cron expression");
    assert_eq!(error("@dayly"), "unknown schedule name `@dayly`");
    for never in ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 0 29 2 * 2026"] {
        assert_eq!(error(never), format!("`{never}` never happens"));
    }
    for zone in ["Europe/Budapesst", "PST", "", "../UTC"] {
        let error = Calendar::new(&timing("@daily", zone)).unwrap_err().to_string();
        assert_eq!(error, format!("unknown time zone `{zone}`"));
    }
    for zone in ["US/Eastern", "Asia/Calcutta", "America/Indianapolis", "europe/berlin"] {
        assert!(Zone::get(zone).is_some(), "{zone}");
    }
}

fn daily(timetable: Timetable) -> Timing {
    Timing {
        start_date: Some(at("2001-01-01")),
        end_date: Some(at("2001-01-31")),
        timetable,
        catchup: Catchup::All,
        ..timing("@daily", "UTC")
    }
}

#[test]
fn a_month_of_days_is_31_slots_in_both_timetables() {
    let far = Timestamp::from_micros(i64::MAX);
    for timetable in [Timetable::Trigger, Timetable::DataInterval] {
        let calendar = Calendar::new(&daily(timetable)).unwrap();
        let slots = calendar.due_since_start(far, 100);
        assert_eq!(slots.len(), 31);
        assert_eq!(slots[0].logical_date, at("2001-01-01"));
        assert_eq!(slots[30].logical_date, at("2001-01-31"));
        for pair in slots.windows(2) {
            assert_eq!(pair[0].interval_end, pair[1].interval_start);
        }
        assert_eq!(calendar.newest_due(far), slots.last().copied());
        assert_eq!(calendar.newest_due(slots[3].due_at), Some(slots[3]));
        assert_eq!(calendar.newest_due(slots[0].due_at.minus(Span::from_micros(1))), None);
        assert_eq!(calendar.next_after(slots[30].due_at), None);
        assert_eq!(slots_after(&daily(timetable), slots[0].due_at, 3).unwrap(), slots[1..4]);
    }
    let trigger = Calendar::new(&daily(Timetable::Trigger)).unwrap();
    assert_eq!(
        trigger.next_after(Timestamp::from_micros(i64::MIN)),
        Some(Slot {
            due_at: at("2001-01-01"),
            logical_date: at("2001-01-01"),
            interval_start: at("2000-12-31"),
            interval_end: at("2001-01-01"),
        })
    );
    let interval = Calendar::new(&daily(Timetable::DataInterval)).unwrap();
    assert_eq!(interval.next_after(Timestamp::from_micros(0)).unwrap().due_at, at("2001-01-02"));
}

#[test]
fn intervals_and_single_instants() {
    let mut timing = Timing { schedule: Schedule::Every(Span::from_mins(15)), ..Timing::manual() };
    let next = |timing: &Timing, after: &str| {
        Calendar::new(timing).unwrap().next_after(at(after)).map(|slot| slot.due_at.to_string())
    };
    assert_eq!(next(&timing, "2026-01-01T00:07").unwrap(), "2026-01-01T00:15:00.000Z");
    timing.start_date = Some(at("2026-01-01T00:05"));
    assert_eq!(next(&timing, "2025-01-01").unwrap(), "2026-01-01T00:05:00.000Z");
    assert_eq!(next(&timing, "2026-01-01T00:05").unwrap(), "2026-01-01T00:20:00.000Z");
    timing.schedule = Schedule::At(at("2026-12-31T23:00"));
    assert_eq!(next(&timing, "2026-01-01").unwrap(), "2026-12-31T23:00:00.000Z");
    assert_eq!(next(&timing, "2026-12-31T23:00"), None);
    timing.schedule = Schedule::Manual;
    assert_eq!(next(&timing, "2026-01-01"), None);
    timing.schedule = Schedule::Every(Span::ZERO);
    assert!(Calendar::new(&timing).is_err());
}

#[test]
fn several_expressions_are_merged() {
    let mut both = timing("0 6 * * *", "UTC");
    both.schedule =
        Schedule::Cron(vec!["0 6 * * *".into(), "0 */12 * * *".into(), "0 6 * * *".into()]);
    let slots = slots_after(&both, at("2026-01-01"), 4).unwrap();
    let due: Vec<String> = slots.iter().map(|s| short(s.due_at)).collect();
    assert_eq!(
        due,
        ["2026-01-01T06:00Z", "2026-01-01T12:00Z", "2026-01-02T00:00Z", "2026-01-02T06:00Z"]
    );
    assert_eq!(slots[1].interval_start, slots[0].due_at);
}

#[test]
fn the_newest_of_ten_million_slots_is_found_at_once() {
    let mut minutely = timing("* * * * *", "Europe/Berlin");
    minutely.start_date = Some(at("2001-01-01"));
    let calendar = Calendar::new(&minutely).unwrap();
    for _ in 0..1_000 {
        let newest = calendar.newest_due(at("2026-11-30T08:00:30Z")).unwrap();
        assert_eq!(newest.due_at, at("2026-11-30T08:00"));
    }
}
