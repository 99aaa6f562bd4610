//! Callbacks: whom a change concerns, what a callback may be, when a deadline is.

use fencepost_core::callback::{
    Callback, Deadline, Occasion, Occasions, Patience, When, check_deadline, raised,
};
use fencepost_core::state::RunType;
use fencepost_core::time::{Span, Timestamp};
use serde_json::{Value, json};

/// AC-61.
#[test]
fn what_is_told_follows_from_the_line_of_the_log() {
    use Occasion::{Deadline, Failure, Lost, Retry, Skipped, Success};
    for (kind, from, to, expected) in [
        ("ti_state", "running", "success", vec![Success]),
        ("ti_state", "running", "failed", vec![Failure]),
        ("ti_state", "running", "up_for_retry", vec![Retry]),
        ("ti_state", "none", "skipped", vec![Skipped]),
        ("ti_state", "none", "upstream_failed", vec![]),
        ("ti_state", "running", "deferred", vec![]),
        ("ti_state", "queued", "scheduled", vec![]),
        ("ti_state", "failed", "failed", vec![]),
        ("attempt_lost", "running", "scheduled", vec![Lost, Retry]),
        ("attempt_lost", "running", "failed", vec![Lost, Failure]),
        ("attempt_lost", "running", "held", vec![Lost]),
        // Its loss was told when it was held.
        ("attempt_lost", "held", "scheduled", vec![Retry]),
        ("attempt_lost", "held", "held", vec![]),
        ("run_state", "running", "success", vec![Success]),
        ("run_state", "running", "failed", vec![Failure]),
        ("run_state", "running", "cancelled", vec![]),
        ("run_state", "queued", "missed", vec![]),
        ("deadline_passed", "running", "running", vec![Deadline]),
        ("write_refused", "running", "success", vec![]),
        ("template_error", "none", "failed", vec![]),
    ] {
        assert_eq!(raised(kind, Some(from), Some(to)), expected, "{kind} {from} -> {to}");
    }
}

#[test]
fn occasions_are_stored_as_bits() {
    for occasion in Occasion::ALL {
        let one: Occasions = [occasion].into_iter().collect();
        let read = Occasions::from_bits(one.bits());
        let has: Vec<Occasion> = Occasion::ALL.into_iter().filter(|of| read.has(*of)).collect();
        assert_eq!(has, [occasion]);
        assert_eq!(Occasion::parse(occasion.as_str()), Some(occasion));
    }
    assert!(Occasions::from_bits(0).is_empty() && !Occasions::from_bits(i64::MAX).is_empty());
}

fn wrong(callback: &Value) -> String {
    Callback::read(callback).map_or_else(|error| error.to_string(), |read| format!("{read:?}"))
}

#[test]
fn a_callback_is_read_exactly_and_its_mistakes_are_named() {
    let read = Callback::read(&json!({ "webhook": { "url": "https://Alerts.corp:8443/x?y" } }));
    assert_eq!(read.unwrap().target(), "alerts.corp:8443");
    let read = Callback::read(&json!({ "slack": { "conn": "oncall", "text": "x" } }));
    assert_eq!(read.unwrap().target(), "conn:oncall");
    assert!(Callback::read(&json!({ "trigger_dag": "other" })).is_ok());
    for (callback, why) in [
        (json!([]), "a callback is an object"),
        (json!({ "pager": {} }), "there is no callback `pager`"),
        (json!({ "run": {"script": "x"} }), "must be text"),
        (json!({ "slack": {}, "email": {} }), "does one thing"),
        (json!({ "webhook": { "url": "ftp://x" } }), "must begin with http"),
        (json!({ "webhook": { "url": "{{ x }}" } }), "must begin with http"),
        (json!({ "webhook": { "url": "https://x", "conn": "y" } }), "exclude each other"),
        (json!({ "webhook": {} }), "is missing"),
        (json!({ "webhook": { "url": "https://x", "methd": "PUT" } }), "unknown key `methd`"),
        (json!({ "webhook": { "url": "https://x", "method": "TRACE" } }), "must be one of"),
        (json!({ "webhook": { "url": "https://x", "headers": { "A": "b\r\nC: d" } } }), "`A`"),
        (json!({ "slack": { "url": "https://x" } }), "`text` is missing"),
        (json!({ "email": { "to": [] } }), "from 1 to 100"),
        (json!({ "email": { "to": ["a@b>\r\nDATA"] } }), "no address"),
        (json!({ "email": { "to": "a@b", "subject": "x\r\nBcc: c@d" } }), "one line"),
        (json!({ "trigger_dag": { "conf": {} } }), "`dag_id` is missing"),
    ] {
        let found = wrong(&callback);
        assert!(found.contains(why), "{callback}: {found}");
    }
    // Before it is rendered a template is taken as right.
    Callback::check(&json!({ "webhook": { "url": "{{ params.url }}" } })).unwrap();
    Callback::check(&json!({ "email": { "to": "{{ dag.owner }}" } })).unwrap();
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap_or_default()
}

fn instant(deadline: Value, zone: &str, run_type: RunType, after: &str, now: &str) -> String {
    let when = match check_deadline(&deadline) {
        Ok(when) => when,
        Err(error) => return error.to_string(),
    };
    let deadline = Deadline { when, callbacks: Vec::new() };
    let found = deadline.instant(zone, run_type, at(after), at(now));
    found.map_or_else(|| "none".into(), |at| at.to_string())
}

#[test]
fn a_deadline_is_the_next_time_of_that_kind_from_the_slot_on() {
    let half = || json!({ "at": "07:30", "callback": [{}] });
    let (slot, late) = ("2026-03-01T04:00:00Z", "2026-03-01T09:00:00Z");
    let of = |zone: &str, run_type| instant(half(), zone, run_type, slot, late);
    assert_eq!(of("Europe/Berlin", RunType::Scheduled), "2026-03-01T06:30:00.000Z");
    assert_eq!(of("UTC", RunType::Scheduled), "2026-03-01T07:30:00.000Z");
    assert_eq!(of("Europe/Berlin", RunType::Manual), "2026-03-02T06:30:00.000Z");
    assert_eq!(of("Europe/Berlin", RunType::Backfill), "none");
    // A slot in the evening: the next morning.
    let evening = "2026-03-01T22:00:00Z";
    let next = instant(half(), "Europe/Berlin", RunType::Scheduled, evening, evening);
    assert_eq!(next, "2026-03-02T06:30:00.000Z");
    let two = || json!({ "after": "2h", "callback": [{}] });
    assert_eq!(instant(two(), "UTC", RunType::Scheduled, slot, late), "2026-03-01T06:00:00.000Z");
    assert_eq!(instant(two(), "UTC", RunType::Backfill, slot, late), "2026-03-01T11:00:00.000Z");
}

/// The rule of schedules: the end of the gap, and the first of two.
#[test]
fn a_deadline_that_the_clock_skips_or_repeats() {
    let of = |time: &str, slot: &str| {
        let deadline = json!({ "at": time, "callback": [{}] });
        instant(deadline, "Europe/Berlin", RunType::Scheduled, slot, slot)
    };
    // 2026-03-29: 02:00 becomes 03:00, which is 01:00 UTC.
    assert_eq!(of("02:30", "2026-03-28T23:00:00Z"), "2026-03-29T01:00:00.000Z");
    // 2026-10-25: 03:00 becomes 02:00; the first 02:30 is 00:30 UTC.
    assert_eq!(of("02:30", "2026-10-24T22:00:00Z"), "2026-10-25T00:30:00.000Z");
}

#[test]
fn a_deadline_says_one_thing() {
    for (written, why) in [
        (json!("07:30"), "object"),
        (json!({ "callback": [{}] }), "`at` is missing"),
        (json!({ "at": "7.30", "callback": [{}] }), "a time of the day"),
        (json!({ "at": "07:30", "after": "1h", "callback": [{}] }), "exclude"),
        (json!({ "after": "soon", "callback": [{}] }), "a duration"),
        (json!({ "at": "07:30" }), "who is to hear"),
        (json!({ "at": "07:30", "callback": [] }), "is empty"),
        (json!({ "at": "07:30", "callbacks": [{}] }), "unknown key `callbacks`"),
    ] {
        let found = check_deadline(&written).unwrap_err().to_string();
        assert!(found.contains(why), "{written}: {found}");
    }
    let one = check_deadline(&json!({ "after": "90m", "callback": [{}] }));
    assert_eq!(one, Ok(When::After(Span::from_mins(90))));
}

#[test]
fn patience_ends_by_tries_and_by_age() {
    let patience = Patience { tries: 4, age: Span::from_hours(2) };
    for random in [0, 1, u64::MAX / 3, u64::MAX] {
        let mut last = Span::ZERO;
        for failed in 1..4 {
            let wait = patience.next(failed, Span::ZERO, random).unwrap();
            assert!(wait >= Span::from_secs(1) && wait <= Span::from_secs(20), "{failed}: {wait}");
            last = last.max(wait);
        }
        assert_eq!(patience.next(4, Span::ZERO, random), None);
        assert_eq!(patience.next(1, Span::from_hours(2), random), None);
    }
    assert!(Patience::default().next(19, Span::ZERO, u64::MAX).unwrap() <= Span::from_hours(1));
}
