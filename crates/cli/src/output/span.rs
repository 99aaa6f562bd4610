//! Times as people read them: ages, durations, clock times.

use fencepost_core::time::{Span, Timestamp};

/// What stands for nothing in a table.
pub(crate) const NOTHING: &str = "–";

/// A length of time in at most two units: `0.4s`, `12.3s`, `4m05s`, `3h12m`, `2d4h`.
pub(crate) fn duration(span: Span) -> String {
    let millis = span.as_millis().max(0);
    let secs = millis / 1_000;
    match secs {
        0..60 => format!("{}.{}s", secs, millis % 1_000 / 100),
        60..3_600 => format!("{}m{:02}s", secs / 60, secs % 60),
        3_600..86_400 => format!("{}h{:02}m", secs / 3_600, secs % 3_600 / 60),
        _ => format!("{}d{}h", secs / 86_400, secs % 86_400 / 3_600),
    }
}

/// How long ago, coarser than a duration: `5s`, `4m`, `3h12m`, `2d4h`.
pub(crate) fn age(at: Option<&str>, now: Timestamp) -> String {
    let Some(at) = parse(at) else { return NOTHING.into() };
    let secs = now.since(at).as_secs();
    match secs {
        // The server's time is told in whole seconds: what is younger than that is now.
        -1 => coarse(0),
        i64::MIN..-1 => format!("in {}", coarse(-secs)),
        _ => coarse(secs),
    }
}

fn coarse(secs: i64) -> String {
    match secs {
        0..60 => format!("{secs}s"),
        60..600 => format!("{}m{:02}s", secs / 60, secs % 60),
        600..3_600 => format!("{}m", secs / 60),
        _ => duration(Span::from_secs(secs)),
    }
}

/// From the first instant to the second, or to now while that is open.
pub(crate) fn between(from: Option<&str>, to: Option<&str>, now: Timestamp) -> String {
    match parse(from) {
        Some(from) => duration(parse(to).unwrap_or(now).since(from)),
        None => NOTHING.into(),
    }
}

/// `2026-09-22 05:10:02`, in UTC.
pub(crate) fn date_time(at: Option<&str>) -> String {
    match at {
        Some(at) => at.get(..19).unwrap_or(at).replace('T', " "),
        None => NOTHING.into(),
    }
}

/// `05:10:02` if it is within a day of now, else with the date.
pub(crate) fn clock(at: Option<&str>, now: Timestamp) -> String {
    match (at, parse(at)) {
        (Some(text), Some(instant)) if now.since(instant).as_secs().abs() < 86_400 => {
            text.get(11..19).unwrap_or(text).into()
        }
        _ => date_time(at),
    }
}

fn parse(at: Option<&str>) -> Option<Timestamp> {
    at.and_then(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        for (millis, want) in [
            (0, "0.0s"),
            (450, "0.4s"),
            (14_000, "14.0s"),
            (245_000, "4m05s"),
            (11_520_000, "3h12m"),
            (187_200_000, "2d4h"),
            (-5, "0.0s"),
        ] {
            assert_eq!(duration(Span::from_millis(millis)), want);
        }
    }

    #[test]
    fn ages_and_clock_times() {
        let now: Timestamp = "2026-09-22T05:13:16Z".parse().unwrap();
        let at = Some("2026-09-22T05:10:04.000Z");
        assert_eq!(age(at, now), "3m12s");
        assert_eq!(age(Some("2026-09-22T05:13:26.000Z"), now), "in 10s");
        assert_eq!(age(Some("2026-09-22T05:13:16.900Z"), now), "0s");
        assert_eq!(age(None, now), "–");
        assert_eq!(clock(at, now), "05:10:04");
        assert_eq!(clock(Some("2026-09-20T05:10:04.000Z"), now), "2026-09-20 05:10:04");
        assert_eq!(clock(Some("weird"), now), "weird");
        let foreign = "2026-09-22T05:10:0é.000Z";
        assert_eq!(clock(Some(foreign), now), foreign.replace('T', " "));
        assert_eq!(between(at, None, now), "3m12s");
        assert_eq!(between(None, None, now), "–");
    }
}
