//! When a DAG runs: `schedule`, `timezone`, `timetable`, the dates and `catchup`.

use super::assets;
use super::fields::{Field, Fields, read_duration, wrong_type};
use crate::diagnostic::{Findings, Place, quoted};
use crate::suggest::did_you_mean;
use crate::yaml::{Entry, Node};
use fencepost_core::schedule::{
    Catchup, Cron, CronError, Overlap, Schedule, SlotPolicy, Timetable, Timing, Zone,
};
use fencepost_core::time::{Span, Timestamp};
use jiff::civil::DateTime;

/// Never `None` but for a database of zones without UTC.
pub(super) fn read(fields: &Fields<'_>, findings: &mut Findings) -> Option<Timing> {
    let zone = match zone(fields, findings) {
        Some(zone) => zone,
        None => Zone::get("UTC")?,
    };
    let timing = Timing {
        schedule: schedule(fields, &zone, findings),
        timezone: zone.name().to_owned(),
        timetable: match fields.choice("timetable", findings) {
            Some("data_interval") => Timetable::DataInterval,
            _ => Timetable::Trigger,
        },
        start_date: date(fields, "start_date", &zone, findings),
        end_date: date(fields, "end_date", &zone, findings),
        catchup: catchup(fields, findings),
    };
    check_order(fields, &timing, findings);
    Some(timing)
}

/// What becomes of a slot that cannot start when it is due.
pub(super) fn slots(
    fields: &Fields<'_>,
    schedule: &Schedule,
    findings: &mut Findings,
) -> SlotPolicy {
    let policy = SlotPolicy {
        start_deadline: fields.duration("start_deadline", findings),
        overlap: fields.choice("overlap", findings).and_then(Overlap::parse).unwrap_or_default(),
    };
    if *schedule == Schedule::Manual && policy != SlotPolicy::default() {
        let message = |name| format!("`{name}` is about slots, and there is no `schedule`");
        no_effect(fields, &["start_deadline", "overlap"], message, findings);
    }
    if schedule.assets().is_some() {
        const OF_SLOTS: [&str; 6] =
            ["start_deadline", "overlap", "catchup", "timetable", "start_date", "end_date"];
        let message = |name| format!("`{name}` is about slots, and events of assets have none");
        no_effect(fields, &OF_SLOTS, message, findings);
    }
    policy
}

/// Keys that change nothing with this schedule.
fn no_effect(
    fields: &Fields<'_>,
    names: &[&'static str],
    message: impl Fn(&'static str) -> String,
    findings: &mut Findings,
) {
    for name in names {
        let is_default = |value: &Node| value.as_written() == Some("false");
        if let Some(field) = fields.get(name).filter(|field| !is_default(&field.entry.value)) {
            let hint = "add a schedule with slots, or drop it";
            findings.warn(field.entry.key_place, "no-effect", message(name), hint);
        }
    }
}

fn zone(fields: &Fields<'_>, findings: &mut Findings) -> Option<Zone> {
    let text = fields.text("timezone", findings)?;
    let zone = Zone::get(&text);
    if zone.is_none() {
        let place = fields.get("timezone")?.entry.value.place;
        let names = Zone::names();
        let near = did_you_mean(&text, names.iter().map(String::as_str));
        let hint = if near.is_empty() { "an IANA name such as Europe/Berlin".into() } else { near };
        findings.error(
            place,
            "unknown-timezone",
            format!("unknown time zone {}", quoted(&text)),
            hint,
        );
    }
    zone
}

fn schedule(fields: &Fields<'_>, zone: &Zone, findings: &mut Findings) -> Schedule {
    let Some(field) = fields.get("schedule") else { return Schedule::Manual };
    let value = &field.entry.value;
    let items = value.as_list().unwrap_or(std::slice::from_ref(value));
    if let Some(entries) = value.as_map() {
        return rule(field, entries, zone, findings).unwrap_or(Schedule::Manual);
    }
    if items.is_empty() {
        let hint = "write null for no schedule";
        findings.error(value.place, "bad-value", "`schedule` is an empty list", hint);
    }
    let mut crons = Vec::new();
    for item in items {
        match item.as_text() {
            Some(text) if is_cron(text, item.place, findings) => crons.push(text.trim().to_owned()),
            Some(_) => {}
            None => {
                let hint = "write a cron expression such as \"0 5 * * *\"";
                wrong_type(
                    field,
                    "a cron expression, a list of them, or a mapping",
                    hint,
                    findings,
                );
                break;
            }
        }
    }
    if crons.is_empty() { Schedule::Manual } else { Schedule::Cron(crons) }
}

fn is_cron(text: &str, place: Place, findings: &mut Findings) -> bool {
    let Err(error) = Cron::parse(text) else { return true };
    let hint = match (&error, text.trim()) {
        (_, "@once") => "write {at: 2026-12-31T23:00:00Z}".to_owned(),
        (_, "@continuous" | "@reboot") => "write {every: 1m}, or null and trigger it".to_owned(),
        (_, "none" | "None" | "manual" | "never") => "write null".to_owned(),
        (_, text) if text.parse::<Span>().is_ok() => format!("write {{every: {text}}}"),
        (CronError::UnknownName(name), _) => did_you_mean(name, Cron::names()),
        (CronError::Never(_), _) => "no month has such a day".to_owned(),
        _ => "minute hour day-of-month month day-of-week, such as \"0 5 * * MON-FRI\"".to_owned(),
    };
    findings.error(place, "bad-cron", error.to_string(), hint);
    false
}

/// `{every: 15m}` or `{at: ...}`.
fn rule(
    field: Field<'_>,
    entries: &[Entry],
    zone: &Zone,
    findings: &mut Findings,
) -> Option<Schedule> {
    let [entry] = entries else {
        wrong_type(field, "one of {every: 15m}, {at: INSTANT} and {assets: [NAME]}", "", findings);
        return None;
    };
    match entry.key.as_str() {
        "every" => every(&entry.value, findings).map(Schedule::Every),
        "at" => instant("at", &entry.value, zone, findings).map(Schedule::At),
        "assets" => assets::condition(&entry.value, findings).map(Schedule::Assets),
        "datasets" => {
            let message = "unknown key `datasets`";
            findings.error(entry.key_place, "unknown-key", message, "did you mean `assets`?");
            None
        }
        other => {
            let near = did_you_mean(other, ["every", "at", "assets"].into_iter());
            let hint = if near.is_empty() { "one of every, at, assets".into() } else { near };
            let message = format!("unknown key {}", quoted(other));
            findings.error(entry.key_place, "unknown-key", message, hint);
            None
        }
    }
}

fn every(value: &Node, findings: &mut Findings) -> Option<Span> {
    let span = read_duration("every", value, findings)?;
    if span < Span::from_secs(1) {
        let message = format!("an interval of `{span}` is too short");
        findings.error(value.place, "out-of-range", message, "the shortest is 1s");
        return None;
    }
    Some(span)
}

fn date(
    fields: &Fields<'_>,
    name: &str,
    zone: &Zone,
    findings: &mut Findings,
) -> Option<Timestamp> {
    instant(name, &fields.get(name)?.entry.value, zone, findings)
}

/// An instant with an offset, or a local date or time in the DAG's zone.
fn instant(name: &str, value: &Node, zone: &Zone, findings: &mut Findings) -> Option<Timestamp> {
    let text = value.as_text().unwrap_or_default().trim();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp::from_jiff(at));
    }
    let local = text.parse::<DateTime>().ok();
    let zoned = local.and_then(|local| local.to_zoned(zone.as_jiff().clone()).ok());
    if zoned.is_none() {
        let message = format!("`{name}` must be a date or an instant, not {}", value.description());
        let hint = "write 2026-01-31 or 2026-01-31T05:00:00Z";
        findings.error(value.place, "bad-date", message, hint);
    }
    zoned.map(|zoned| Timestamp::from_jiff(zoned.timestamp()))
}

fn catchup(fields: &Fields<'_>, findings: &mut Findings) -> Catchup {
    let Some(field) = fields.get("catchup") else { return Catchup::Newest };
    match field.entry.value.as_written() {
        Some("true" | "True" | "TRUE") => Catchup::All,
        Some("false" | "False" | "FALSE") => Catchup::Newest,
        Some("next") => Catchup::Next,
        _ => {
            wrong_type(field, "true, false or next", "", findings);
            Catchup::Newest
        }
    }
}

fn check_order(fields: &Fields<'_>, timing: &Timing, findings: &mut Findings) {
    if let (Some(start), Some(end)) = (timing.start_date, timing.end_date)
        && end < start
        && let Some(field) = fields.get("end_date")
    {
        let hint = format!("`start_date` is {start}");
        let message = "`end_date` is before `start_date`";
        findings.error(field.entry.value.place, "bad-date", message, hint);
    }
    let is_manual = !timing.schedule.has_slots();
    if timing.catchup == Catchup::All
        && !is_manual
        && !fields.has("start_date")
        && let Some(field) = fields.get("catchup")
    {
        let message = "`catchup: true` without a `start_date`";
        let hint = "say from when: start_date: 2026-01-01";
        findings.error(field.entry.value.place, "no-start-date", message, hint);
    }
}
