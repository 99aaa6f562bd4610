//! A range of logical dates as people write it.

use super::Zone;
use crate::time::{Span, Timestamp};
use jiff::civil::{Date, DateTime, Time};

/// First and last logical date, both inclusive. A date is its whole day in the DAG's zone.
pub fn read_range(from: &str, to: &str, zone: &str) -> Result<(Timestamp, Timestamp), String> {
    let zone = Zone::get(zone).ok_or_else(|| format!("unknown time zone `{zone}`"))?;
    let first = instant(from, &zone, false).ok_or_else(|| mistake("from_date", from))?;
    let last = instant(to, &zone, true).ok_or_else(|| mistake("to_date", to))?;
    if last < first {
        return Err(format!("from_date ({from}) is after to_date ({to})"));
    }
    Ok((first, last))
}

fn mistake(name: &str, text: &str) -> String {
    format!("{name}: `{text}` is neither a date (2026-01-31) nor an instant (2026-01-31T05:00:00Z)")
}

fn instant(text: &str, zone: &Zone, is_end: bool) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(at) = text.parse::<jiff::Timestamp>() {
        return Some(Timestamp::from_jiff(at));
    }
    let local = |at: DateTime| at.to_zoned(zone.as_jiff().clone()).ok();
    // A date also reads as a local time, at midnight: which of the two it is, its length says.
    if text.len() <= "2026-01-31".len() {
        let day = text.parse::<Date>().ok()?;
        let day = if is_end { day.tomorrow().ok()? } else { day };
        let start = local(day.to_datetime(Time::midnight()))?;
        let at = Timestamp::from_jiff(start.timestamp());
        return Some(if is_end { at.minus(Span::from_micros(1)) } else { at });
    }
    let at = local(text.parse::<DateTime>().ok()?)?;
    Some(Timestamp::from_jiff(at.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(from: &str, to: &str, zone: &str) -> Result<(String, String), String> {
        let (from, to) = read_range(from, to, zone)?;
        Ok((from.to_jiff().to_string(), to.to_jiff().to_string()))
    }

    #[test]
    fn a_date_is_its_whole_day_in_the_zone_of_the_dag() {
        let read = shown("2026-03-29", "2026-03-29", "Europe/Berlin").unwrap();
        // The day of the gap has 23 hours.
        assert_eq!(read, ("2026-03-28T23:00:00Z".into(), "2026-03-29T21:59:59.999999Z".into()));
        let read = shown("2026-01-01T05:00", "2026-01-01T04:30:00Z", "Europe/Berlin").unwrap();
        assert_eq!(read, ("2026-01-01T04:00:00Z".into(), "2026-01-01T04:30:00Z".into()));
    }

    #[test]
    fn what_is_no_range_is_refused_by_name() {
        assert!(shown("2026-02-30", "2026-03-01", "UTC").unwrap_err().starts_with("from_date"));
        assert!(shown("2026-02-01", "soon", "UTC").unwrap_err().starts_with("to_date: `soon`"));
        assert!(shown("2026-02-02", "2026-02-01", "UTC").unwrap_err().contains("is after"));
    }
}
