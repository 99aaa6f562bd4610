//! When a DAG runs: `schedule`, `start_date`, `end_date`, `catchup`.

use super::values;
use crate::dag::Draft;
use crate::report::Notes;
use crate::yaml::{Field, Fields, seconds};
use fencepost_core::schedule::Cron;
use serde_json::json;

/// Reads them, from the DAG and from its `default_args`.
pub(super) fn read(
    fields: &mut Fields<'_>,
    args: &mut Fields<'_>,
    draft: &mut Draft,
    notes: &mut Notes,
) {
    let zone = args.take(&["timezone"]).and_then(|field| field.value.text().map(str::to_owned));
    if let Some(zone) = zone.filter(|_| draft.keys.get("timezone").is_none()) {
        draft.set("timezone", zone);
    }
    let catchup = fields.take(&["catchup"]);
    let catches_up = catchup.as_ref().is_some_and(Field::is_true);
    if catches_up {
        draft.set("catchup", true);
    }
    // In default_args dag-factory passes it on to tasks, which know no schedule.
    for field in args.take(&["schedule"]).into_iter().chain(args.take(&["schedule_interval"])) {
        notes.ignored(
            field.line,
            field.shown(),
            "tasks have no schedule: Airflow passes over it too",
        );
    }
    if let Some(field) = fields.take(&["schedule", "schedule_interval"]) {
        schedule(&field, draft, notes);
    }
    if let Some(field) = fields.take(&["timetable"]) {
        notes.needs(
            field.line,
            field.shown(),
            "there are no timetables of one's own",
            "write a `schedule`",
        );
    }
    for name in ["start_date", "end_date"] {
        let own = fields.take(&[name]);
        let of_args = args.take(&[name]);
        if let Some(field) = own.or(of_args) {
            date(name, &field, catches_up, draft, notes);
        } else if let Some(catchup) =
            catchup.as_ref().filter(|_| catches_up && name == "start_date")
        {
            let todo = "write a `start_date` and `catchup: true`";
            notes.needs(catchup.line, catchup.shown(), "it does not say from when", todo);
        }
    }
    if draft.keys.get("start_date").is_none() {
        draft.keys.shift_remove("catchup");
    }
}

fn schedule(field: &Field<'_>, draft: &mut Draft, notes: &mut Notes) {
    let text = field.value.text().map(str::trim).unwrap_or_default();
    if text.eq_ignore_ascii_case("none") {
        return;
    }
    if Cron::parse(text).is_ok() {
        draft.set("schedule", text);
        notes.converted(field.line, field.shown(), "schedule");
        return;
    }
    if let Some(span) = values::span(field.value).filter(|span| *span > 0) {
        draft.set("schedule", json!({ "every": seconds(span) }));
        notes.converted(field.line, field.shown(), "schedule, at fixed instants");
        return;
    }
    let (why, todo) = match text {
        "@once" => (
            "once is an instant here",
            "write `schedule: {at: 2026-12-31T23:00:00Z}`, or trigger it",
        ),
        "@continuous" => (
            "no schedule starts a run when the one before ends",
            "write a short `{every: ...}` with `overlap: skip`",
        ),
        "" => ("it is about datasets, assets or a class of one's own", "write a `schedule`"),
        _ => ("it is no cron expression", "write a `schedule`"),
    };
    notes.needs(
        field.line,
        field.shown(),
        format!("{why}; the DAG is written without a schedule"),
        todo,
    );
}

fn date(name: &str, field: &Field<'_>, catches_up: bool, draft: &mut Draft, notes: &mut Notes) {
    let text = field.value.text().unwrap_or_default().trim().replace(' ', "T");
    let is_date = text.parse::<jiff::civil::Date>().is_ok()
        || text.parse::<jiff::civil::DateTime>().is_ok()
        || text.parse::<jiff::Timestamp>().is_ok();
    if is_date && text.starts_with(|c: char| c.is_ascii_digit()) && text.len() >= 10 {
        draft.set(name, text);
    } else if name == "start_date" && !catches_up {
        notes.ignored(
            field.line,
            field.shown(),
            "without catchup it makes no difference: a new DAG begins with its newest slot",
        );
    } else {
        notes.needs(
            field.line,
            field.shown(),
            "it depends on the day on which it is read",
            format!("write a date as `{name}`"),
        );
    }
}
