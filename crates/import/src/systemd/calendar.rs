//! Calendar events (`OnCalendar=`, systemd.time(7)) as cron expressions with seconds.
//!
//! An event is weekdays, a date and a time, all of which must match; a cron expression whose day of month
//! and day of week are both given matches either, unless the latter begins with `+`.

mod component;

use component::{Bounds, Component, DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};

/// A calendar event that has no cron expression, or is none at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrong {
    /// systemd refuses it too.
    NoEvent(String),
    /// It cannot be said as cron.
    NoCron(&'static str),
}

/// What an event says: cron expressions that fire at its instants, in its own zone, if it names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) crons: Vec<String>,
    pub(super) zone: Option<String>,
}

/// Names that stand for events.
const NAMES: [(&str, &str); 12] = [
    ("minutely", "*-*-* *:*:00"),
    ("hourly", "*-*-* *:00:00"),
    ("daily", "*-*-* 00:00:00"),
    ("monthly", "*-*-01 00:00:00"),
    ("weekly", "Mon *-*-* 00:00:00"),
    ("yearly", "*-01-01 00:00:00"),
    ("annually", "*-01-01 00:00:00"),
    ("quarterly", "*-01,04,07,10-01 00:00:00"),
    ("semiannually", "*-01,07-01 00:00:00"),
    ("biannually", "*-01,07-01 00:00:00"),
    ("semi-annually", "*-01,07-01 00:00:00"),
    ("bi-annually", "*-01,07-01 00:00:00"),
];

/// Reads an event.
pub(super) fn read(text: &str) -> Result<Event, Wrong> {
    let no = |why: &str| Wrong::NoEvent(why.to_owned());
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut zone = None;
    if words.len() > 1
        && let Some(name) = words.last().copied().filter(|word| is_zone(word))
    {
        words.pop();
        zone = Some(name.to_owned());
    }
    if let [name] = words.as_slice()
        && let Some((_, event)) = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))
    {
        words = event.split_whitespace().collect();
    }
    if words.first().is_some_and(|word| word.starts_with('@')) {
        return Err(Wrong::NoCron("it is a count of seconds since 1970"));
    }
    let days = match words.first() {
        Some(word) if word.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            let days = weekdays(word).ok_or_else(|| no("the weekdays"))?;
            words.remove(0);
            Some(days)
        }
        _ => None,
    };
    let (date, time) = match words.as_slice() {
        [] if days.is_some() => (None, None),
        [one] if one.contains(':') => (None, Some(*one)),
        [one] => (Some(*one), None),
        [date, time] => (Some(*date), Some(*time)),
        _ => return Err(no("the number of its parts")),
    };
    let date = Date::read(date.unwrap_or("*-*-*")).ok_or_else(|| no("the date"))?;
    let time = time_of(time.unwrap_or("00:00:00"))?;
    Ok(Event { crons: crons(days.as_deref(), &date, &time)?, zone })
}

fn is_zone(word: &str) -> bool {
    word == "UTC"
        || (word.contains('/') && word.starts_with(|c: char| c.is_ascii_alphabetic()))
        || (word.chars().all(|c| c.is_ascii_uppercase())
            && fencepost_core::schedule::Zone::get(word).is_some())
}

const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// `Mon..Fri,Sun` as cron's numbers, 0 for Sunday.
fn weekdays(text: &str) -> Option<Vec<u32>> {
    // systemd's week begins with Monday.
    let place = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let at = WEEKDAYS
            .iter()
            .position(|day| *day == lower || (lower.len() == 3 && day.starts_with(&lower)))?;
        Some((u32::try_from(at).ok()? + 6) % 7)
    };
    let mut days = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (from, to) =
            part.split_once("..").or_else(|| part.split_once('-')).unwrap_or((part, part));
        let (from, to) = (place(from)?, place(to)?);
        if from > to {
            return None;
        }
        days.extend((from..=to).map(|day| (day + 1) % 7));
    }
    days.sort_unstable();
    days.dedup();
    if days.is_empty() { None } else { Some(days) }
}

#[derive(Debug)]
struct Date {
    year: Component,
    month: Component,
    day: Component,
    /// The day counts back from the end of the month: 1 is the last one.
    is_from_end: bool,
}

impl Date {
    fn read(text: &str) -> Option<Self> {
        let (text, last, is_from_end) = match text.rsplit_once('~') {
            Some((rest, day)) => (rest, day, true),
            None => match text.rsplit_once('-') {
                Some((rest, day)) => (rest, day, false),
                None if text == "*" => ("*-*", "*", false),
                None => return None,
            },
        };
        let (year, month) = text.rsplit_once('-').unwrap_or(("*", text));
        Some(Self {
            year: Component::read(year, &YEAR)?,
            month: Component::read(month, &MONTH)?,
            day: Component::read(last, &DAY)?,
            is_from_end,
        })
    }
}

fn time_of(text: &str) -> Result<[Component; 3], Wrong> {
    if text.contains('.') && text.rsplit(':').next().is_some_and(has_fraction) {
        return Err(Wrong::NoCron("it has fractions of a second"));
    }
    let parts: Vec<&str> = text.split(':').collect();
    let of = |part: &str, bounds: &Bounds| {
        Component::read(part, bounds).ok_or_else(|| Wrong::NoEvent(format!("the {}", bounds.name)))
    };
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute] => (*hour, *minute, "0"),
        [hour, minute, second] => (*hour, *minute, *second),
        _ => return Err(Wrong::NoEvent("the time".into())),
    };
    Ok([of(second, &SECOND)?, of(minute, &MINUTE)?, of(hour, &HOUR)?])
}

/// Whether a dot is one of a number and not one of a range.
fn has_fraction(second: &str) -> bool {
    second.replace("..", "").contains('.')
}

/// The date of an event, as day, month, weekday of cron.
struct Days {
    day: String,
    month: String,
    weekday: String,
}

fn crons(days: Option<&[u32]>, date: &Date, time: &[Component; 3]) -> Result<Vec<String>, Wrong> {
    let [second, minute, hour] = time.each_ref().map(Component::cron);
    let year = date.year.cron();
    let (second_is, year_is) = (second != "0", year != "*");
    let expression = |days: Days| {
        let Days { day, month, weekday } = days;
        match (second_is, year_is) {
            (false, false) => format!("{minute} {hour} {day} {month} {weekday}"),
            (true, false) => format!("{second} {minute} {hour} {day} {month} {weekday}"),
            (_, true) => format!("{second} {minute} {hour} {day} {month} {weekday} {year}"),
        }
    };
    let found = if date.is_from_end { from_end(days, date)? } else { vec![plain(days, date)] };
    Ok(found.into_iter().map(expression).collect())
}

fn plain(days: Option<&[u32]>, date: &Date) -> Days {
    let day = date.day.cron();
    let weekday = match days {
        None => "*".to_owned(),
        // Both must match, which cron says with a plus sign.
        Some(days) if day != "*" => format!("+{}", list(days)),
        Some(days) => list(days),
    };
    Days { day, month: date.month.cron(), weekday }
}

fn list(numbers: &[u32]) -> String {
    let texts: Vec<String> = numbers.iter().map(u32::to_string).collect();
    texts.join(",")
}

/// Days counted from the end of the month.
fn from_end(days: Option<&[u32]>, date: &Date) -> Result<Vec<Days>, Wrong> {
    let back = date.day.values_from_end(&DAY);
    let month = date.month.cron();
    if let (Some(days), [1, 2, 3, 4, 5, 6, 7]) = (days, back.as_slice()) {
        let last: Vec<String> = days.iter().map(|day| format!("{day}L")).collect();
        return Ok(vec![Days { day: "*".into(), month, weekday: last.join(",") }]);
    }
    let weekday = |weekdays: Option<&[u32]>| {
        weekdays.map_or_else(|| "*".to_owned(), |days| format!("+{}", list(days)))
    };
    if back == [1] && days.is_none() {
        return Ok(vec![Days { day: "L".into(), month, weekday: "*".into() }]);
    }
    let months = date.month.values(&MONTH);
    if months.contains(&2) {
        return Err(Wrong::NoCron(
            "it counts days back from the end of February, which has 28 or 29",
        ));
    }
    let length = |month: u32| if [4, 6, 9, 11].contains(&month) { 30 } else { 31 };
    let mut found = Vec::new();
    for of in [30, 31] {
        let months: Vec<u32> =
            months.iter().copied().filter(|month| length(*month) == of).collect();
        let mut at: Vec<u32> = back.iter().filter(|n| **n <= of).map(|n| of + 1 - n).collect();
        at.sort_unstable();
        if !months.is_empty() && !at.is_empty() {
            found.push(Days { day: list(&at), month: list(&months), weekday: weekday(days) });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crons_of(text: &str) -> String {
        read(text).unwrap().crons.join(" | ")
    }

    #[test]
    fn events_become_cron_expressions() {
        for (event, cron) in [
            ("hourly", "0 * * * *"),
            ("weekly", "0 0 * * 1"),
            ("quarterly", "0 0 1 1,4,7,10 *"),
            ("Mon..Fri 9..17:30", "30 9-17 * * 1,2,3,4,5"),
            ("Sat,Sun 12-05 08:05:40", "40 5 8 5 12 +0,6"),
            ("*:0/15", "0-59/15 * * * *"),
            ("*-*-* *:*:0/30", "0-59/30 * * * * *"),
            ("Mon *-*-01..07 06:00", "0 6 1-7 * +1"),
            ("Mon *-05~07/1", "0 0 * 5 1L"),
            ("Fri *-*~1..7 18:00", "0 18 * * 5L"),
            ("*-*~01", "0 0 L * *"),
            ("*-04,05~03", "0 0 28 4 * | 0 0 29 5 *"),
            ("12-10-15 1:2:3", "3 2 1 15 10 * 2012"),
            ("Fri 18:00/20", "0-59/20 18 * * 5"),
            ("wed,  17:48", "48 17 * * 3"),
            ("Mon-Fri 10:00", "0 10 * * 1,2,3,4,5"),
            ("Sunday 3:7", "7 3 * * 0"),
            ("*-1/3-1 0/6:0", "0 0-23/6 1 1-12/3 *"),
            ("2026..2028-01-01", "0 0 0 1 1 * 2026-2028"),
        ] {
            assert_eq!(crons_of(event), cron, "{event}");
            for cron in cron.split(" | ") {
                assert!(fencepost_core::schedule::Cron::parse(cron).is_ok(), "{cron}");
            }
        }
        assert_eq!(
            read("*-*-* 02:30 Europe/Berlin").unwrap().zone.as_deref(),
            Some("Europe/Berlin")
        );
        assert_eq!(read("weekly UTC").unwrap().zone.as_deref(), Some("UTC"));
    }

    #[test]
    fn what_is_no_event_and_what_is_no_cron_are_told_apart() {
        for wrong in [
            "", "x", "Sat..Thu", "25:00", "*-13-01", "*-*-32", "10:60", "1-2-3-4", "a b c d",
            "Mon..", "10:00:61", "*-*~0", "9..17", "0/0:00",
        ] {
            assert!(matches!(read(wrong), Err(Wrong::NoEvent(_))), "{wrong}: {:?}", read(wrong));
        }
        for never in ["*:*:0.5", "@1700000000", "*-*~03", "*-02~03..05", "Mon *-*~01"] {
            assert!(matches!(read(never), Err(Wrong::NoCron(_))), "{never}: {:?}", read(never));
        }
    }
}
