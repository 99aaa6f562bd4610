//! `[Timer]`: when.

use super::calendar::{self, Event, Wrong};
use super::span;
use super::unit::{Assignment, Unit, flag};
use crate::report::Notes;
use std::collections::BTreeMap;

/// When a timer fires, as far as a schedule can say it.
#[derive(Debug, Default)]
pub(super) struct Timing {
    /// Cron expressions by zone.
    pub(super) crons: BTreeMap<String, Vec<String>>,
    /// An interval in microseconds.
    pub(super) every: Option<u64>,
    /// What fell due while the machine was off is made up for, once.
    pub(super) is_persistent: bool,
}

/// Reads the section. `zone`: that of the machine.
pub(super) fn read(timer: &Unit, zone: &str, notes: &mut Notes) -> Timing {
    let mut timing = Timing::default();
    for assignment in timer.all("Timer", "OnCalendar") {
        let what = format!("OnCalendar={}", assignment.value);
        match calendar::read(&assignment.value) {
            Ok(Event { crons, zone: own }) => {
                let zone = own.unwrap_or_else(|| zone.to_owned());
                notes.converted(
                    assignment.line,
                    what,
                    format!("schedule {} in {zone}", crons.join(", ")),
                );
                timing.crons.entry(zone).or_default().extend(crons);
            }
            Err(Wrong::NoEvent(part)) => {
                notes.needs(
                    assignment.line,
                    what,
                    format!("it is no calendar event: {part}"),
                    "systemd refuses it too; mend it",
                );
            }
            Err(Wrong::NoCron(why)) => {
                notes.needs(
                    assignment.line,
                    what,
                    format!("cron has no word for it: {why}"),
                    "write a `schedule`",
                );
            }
        }
    }
    timing.is_persistent =
        timer.last("Timer", "Persistent").and_then(|a| flag(&a.value)).unwrap_or(false);
    monotonic(timer, &mut timing, notes);
    for assignment in
        timer.assignments.iter().filter(|a| a.section == "Timer" && !a.value.is_empty())
    {
        other(assignment, notes);
    }
    timing
}

/// Spans from some moment on: those that repeat are intervals.
fn monotonic(timer: &Unit, timing: &mut Timing, notes: &mut Notes) {
    let has_calendar = !timing.crons.is_empty();
    for name in ["OnUnitActiveSec", "OnUnitInactiveSec"] {
        for assignment in timer.all("Timer", name) {
            let what = format!("{name}={}", assignment.value);
            let span =
                span::micros(&assignment.value).filter(|span| (1_000_000..u64::MAX).contains(span));
            match span {
                Some(span) if !has_calendar && timing.every.is_none() => {
                    timing.every = Some(span);
                    let into = format!("schedule every {}", span::duration(span));
                    if name == "OnUnitActiveSec" {
                        notes.converted(
                            assignment.line,
                            what,
                            format!("{into}, at fixed instants"),
                        );
                    } else {
                        let why = format!(
                            "it counts from the end of the run before; {into} counts from fixed instants and skips those that fall into a run"
                        );
                        notes.needs(
                            assignment.line,
                            what,
                            why,
                            "make the interval longer if runs take long",
                        );
                    }
                }
                Some(_) => notes.needs(
                    assignment.line,
                    what,
                    "a DAG has either cron expressions or one interval",
                    "make a second DAG of it",
                ),
                None => notes.needs(
                    assignment.line,
                    what,
                    "it is no span from 1s up",
                    "write a `schedule`",
                ),
            }
        }
    }
    let repeats = timing.every.is_some() || has_calendar;
    for name in ["OnActiveSec", "OnBootSec", "OnStartupSec"] {
        for assignment in timer.all("Timer", name) {
            let what = format!("{name}={}", assignment.value);
            if repeats {
                notes.ignored(
                    assignment.line,
                    what,
                    "the schedule does not begin anew with the machine",
                );
            } else {
                let why = "it counts from a start of the machine, which is no time";
                notes.needs(
                    assignment.line,
                    what,
                    why,
                    "make it a service that starts at boot, or trigger it",
                );
            }
        }
    }
}

fn other(assignment: &Assignment, notes: &mut Notes) {
    let what = format!("{}={}", assignment.name, assignment.value);
    let line = assignment.line;
    let is_nothing = matches!(assignment.value.as_str(), "0" | "0s" | "no" | "false" | "off");
    match assignment.name.as_str() {
        "OnCalendar" | "OnUnitActiveSec" | "OnUnitInactiveSec" | "OnActiveSec" | "OnBootSec"
        | "OnStartupSec" | "Unit" => {}
        "Persistent" => notes.converted(line, what, "catchup"),
        "AccuracySec" => notes.ignored(line, what, "slots are exact to the second"),
        "RandomizedDelaySec" | "RandomizedOffsetSec" | "FixedRandomDelay" if !is_nothing => {
            notes.needs(
                line,
                what,
                "starts are not delayed at random",
                "spread the schedules, or limit what runs at once by a pool",
            );
        }
        "RemainAfterElapse"
        | "FixedRandomDelay"
        | "RandomizedDelaySec"
        | "DeferReactivation"
        | "RandomizedOffsetSec" => {
            notes.ignored(line, what, "a schedule stays until its file is changed");
        }
        "WakeSystem" if is_nothing => notes.ignored(line, what, "nothing wakes the machine"),
        "OnClockChange" | "OnTimezoneChange" if is_nothing => {
            notes.ignored(line, what, "clocks and zones start nothing");
        }
        "WakeSystem" => {
            notes.needs(line, what, "nothing wakes the machine", "let it be on, or use `catchup`");
        }
        "OnClockChange" | "OnTimezoneChange" => {
            notes.needs(
                line,
                what,
                "a change of the clock or the zone starts nothing",
                "leave it to systemd",
            );
        }
        _ => notes.needs(line, what, "it is not known", "look it up in systemd.timer(5)"),
    }
}
