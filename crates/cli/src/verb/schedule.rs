//! `fencepost schedule preview`: when a schedule fires, exactly, without a server.

use crate::cx::Cx;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use clap::{Args, Subcommand};
use fencepost_api::rest;
use fencepost_core::schedule::{Calendar, Schedule, Slot, Timing};
use fencepost_core::time::{Span, Timestamp};
use std::path::{Path, PathBuf};

/// Work out schedules
#[derive(Debug, Subcommand)]
pub(crate) enum Schedules {
    /// Print the exact instants at which a schedule fires, in UTC
    #[command(after_help = "\
Examples:
  fencepost schedule preview \"30 2 * * *\" --tz Europe/Berlin --from 2026-03-28 --to 2026-04-01
  fencepost schedule preview @daily -n 3
  fencepost schedule preview 15m --from 2026-01-01 -n 4 -o wide
  fencepost schedule preview --dag dags/sales.yaml")]
    Preview(Preview),
}

/// What is previewed.
#[derive(Debug, Args)]
pub(crate) struct Preview {
    /// A cron expression, @daily and the like, an interval (15m), or an instant
    #[arg(value_name = "EXPR", required_unless_present = "dag", conflicts_with = "dag")]
    expression: Option<String>,
    /// The time zone [default: UTC, or the DAG's]
    #[arg(long = "tz", value_name = "ZONE")]
    timezone: Option<String>,
    /// From this instant on [default: now]
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Before this instant
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// The schedule of this DAG file
    #[arg(long, value_name = "FILE")]
    dag: Option<PathBuf>,
    /// At most so many [default: 10, or all up to --to]
    #[arg(short, value_name = "N")]
    n: Option<usize>,
}

/// Without `--to` there is no end.
const SOME: usize = 10;
/// Nobody reads more.
const MOST: usize = 1_000_000;

/// Prints them.
pub(super) fn run(cx: &Cx, verb: Schedules) -> Outcome {
    let Schedules::Preview(args) = verb;
    let timing = timing(&args)?;
    if timing.schedule.assets().is_some() {
        return Err(CliError::usage("the DAG runs by events of assets, which have no set times"));
    }
    if !timing.schedule.has_slots() {
        return Err(CliError::usage("the DAG has no schedule: it runs only when triggered"));
    }
    let calendar = Calendar::new(&timing).map_err(|error| CliError::usage(error.to_string()))?;
    let slots = slots(&calendar, &args);
    if cx.out.data(&slots.iter().map(wire).collect::<Vec<_>>())? {
        return Ok(Exit::Done);
    }
    if cx.out.format == crate::global::Format::Wide {
        let items = slots.iter().map(|slot| serde_json::to_value(wire(slot)).unwrap_or_default());
        cx.out.list::<rest::Slot>(items.collect(), crate::clock::now())?;
    } else {
        let lines: Vec<String> = slots.iter().map(|slot| slot.due_at.to_string() + "\n").collect();
        cx.out.print(&lines.concat())?;
    }
    Ok(Exit::Done)
}

/// From the first instant (inclusive) to the last (exclusive).
fn slots(calendar: &Calendar, args: &Preview) -> Vec<Slot> {
    let most = args.n.unwrap_or(if args.to.is_some() { MOST } else { SOME }).min(MOST);
    let from = args.from.unwrap_or_else(crate::clock::now);
    let mut after = from.minus(Span::from_micros(1));
    let mut slots = Vec::new();
    while slots.len() < most {
        match calendar.next_after(after) {
            Some(slot) if args.to.is_none_or(|to| slot.due_at < to) => {
                after = slot.due_at;
                slots.push(slot);
            }
            _ => break,
        }
    }
    slots
}

fn timing(args: &Preview) -> Outcome<Timing> {
    let mut timing = match (&args.dag, &args.expression) {
        (Some(file), _) => timing_of(file)?,
        (None, Some(text)) => Timing { schedule: schedule(text), ..Timing::manual() },
        (None, None) => Timing::manual(),
    };
    if let Some(zone) = &args.timezone {
        timing.timezone.clone_from(zone);
    }
    Ok(timing)
}

/// An interval or an instant if it reads as one, else cron, whose reader says what is wrong.
fn schedule(text: &str) -> Schedule {
    let text = text.trim();
    let interval = text.strip_prefix("every ").unwrap_or(text);
    if let Ok(span) = interval.parse::<Span>() {
        return Schedule::Every(span);
    }
    match text.parse::<Timestamp>() {
        Ok(at) => Schedule::At(at),
        Err(_) => Schedule::Cron(vec![text.into()]),
    }
}

fn timing_of(file: &Path) -> Outcome<Timing> {
    let shown = file.display().to_string();
    let bytes = fencepost_dagfile::read_bounded(file)
        .map_err(|error| CliError::usage(format!("cannot read {shown}: {error}")))?;
    match fencepost_dagfile::parse(&bytes, &shown).dag {
        Some(dag) => Ok(dag.timing),
        None => Err(CliError::usage(format!("{shown} has mistakes"))
            .hint(format!("see  fencepost validate {shown}"))),
    }
}

fn wire(slot: &Slot) -> rest::Slot {
    rest::Slot {
        due_at: slot.due_at.to_string(),
        logical_date: slot.logical_date.to_string(),
        data_interval_start: slot.interval_start.to_string(),
        data_interval_end: slot.interval_end.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_intervals_instants_or_cron() {
        assert_eq!(schedule("15m"), Schedule::Every(Span::from_mins(15)));
        assert_eq!(schedule("every 1h30m"), Schedule::Every(Span::from_mins(90)));
        assert!(matches!(schedule("2026-12-31T23:00:00Z"), Schedule::At(_)));
        assert_eq!(schedule(" 0 5 * * * "), Schedule::Cron(vec!["0 5 * * *".into()]));
        assert_eq!(schedule("@daily"), Schedule::Cron(vec!["@daily".into()]));
    }
}
