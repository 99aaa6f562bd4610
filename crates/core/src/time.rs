//! Instants and durations of the domain: whole microseconds, saturating, no clock.
//!
//! `Timestamp` is an instant in UTC as the store keeps it (BIGINT microseconds since 1970);
//! `Span` is a length of time. Nothing here reads a clock: `now` is always a parameter.

use core::fmt;
use core::str::FromStr;

/// Microseconds in one second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;

/// An instant in UTC, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The instant that many microseconds after (or before) 1970.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This instant moved forward by `span`, saturating at the ends of the range.
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// This instant moved back by `span`, saturating.
    pub const fn minus(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// The time from `earlier` to this instant (negative if it is later).
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The same instant as a jiff timestamp; out-of-range instants saturate.
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_microsecond(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        })
    }

    /// From a jiff timestamp, truncated to microseconds.
    pub fn from_jiff(at: jiff::Timestamp) -> Self {
        Self(at.as_microsecond())
    }
}

/// An instant on the CLOCK_BOOTTIME of one host (it counts suspend): microseconds since that host's
/// boot. It is compared with instants of the same host only, which is why it is no [`Timestamp`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BootInstant(i64);

impl BootInstant {
    /// That many microseconds after the boot.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }
    /// Microseconds since the boot.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
    /// This instant moved forward by `span`, saturating.
    pub const fn plus(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
    /// The time from `earlier` to this instant (negative if it is later).
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// RFC 3339 in UTC with milliseconds: `2026-11-30T07:52:31.123Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
    }
}

/// Accepts RFC 3339 with any offset, and a plain date (midnight UTC).
impl FromStr for Timestamp {
    type Err = TimeError;
    fn from_str(text: &str) -> Result<Self, TimeError> {
        if let Ok(at) = text.parse::<jiff::Timestamp>() {
            return Ok(Self::from_jiff(at));
        }
        let date: jiff::civil::Date = text.parse().map_err(|_| TimeError::instant(text))?;
        let zoned = date.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| TimeError::instant(text))?;
        Ok(Self::from_jiff(zoned.timestamp()))
    }
}

/// A length of time in microseconds; may be negative as a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(i64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything that can be waited for.
    pub const MAX: Self = Self(i64::MAX);

    /// That many microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }
    /// That many milliseconds, saturating.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000))
    }
    /// That many seconds, saturating.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(MICROS_PER_SECOND))
    }
    /// That many minutes, saturating.
    pub const fn from_mins(mins: i64) -> Self {
        Self::from_secs(mins.saturating_mul(60))
    }
    /// That many hours, saturating.
    pub const fn from_hours(hours: i64) -> Self {
        Self::from_mins(hours.saturating_mul(60))
    }
    /// Microseconds.
    pub const fn as_micros(self) -> i64 {
        self.0
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }
    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(MICROS_PER_SECOND)
    }
    /// The whole seconds of it, for people.
    pub const fn in_secs(self) -> Self {
        Self::from_secs(self.as_secs())
    }
    /// As a standard duration; negative spans become zero.
    pub fn to_std(self) -> core::time::Duration {
        core::time::Duration::from_micros(u64::try_from(self.0).unwrap_or(0))
    }
    /// The sum, saturating.
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
    /// The difference, saturating.
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// That part of it.
    pub const fn over(self, divisor: i64) -> Self {
        Self(self.0 / if divisor == 0 { 1 } else { divisor })
    }
    /// The product, saturating.
    pub const fn times(self, factor: i64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// The way people write it: `1d2h`, `1h30m`, `45s`, `250ms`, `0s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0.unsigned_abs();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        for (unit, name) in UNITS {
            let count = rest / unit;
            if count > 0 {
                write!(f, "{count}{name}")?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

const UNITS: [(u64, &str); 6] = [
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "m"),
    (1_000_000, "s"),
    (1_000, "ms"),
    (1, "us"),
];

/// Accepts `30s`, `5m`, `1h30m`, `2d`, `250ms`, and ISO 8601 (`PT1H30M`). Never negative.
impl FromStr for Span {
    type Err = TimeError;
    fn from_str(text: &str) -> Result<Self, TimeError> {
        let wrong = || TimeError::duration(text);
        let text = text.trim();
        if text.starts_with(['P', 'p']) {
            let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
            let micros = i64::try_from(span.as_micros()).map_err(|_| wrong())?;
            return if micros < 0 { Err(wrong()) } else { Ok(Self(micros)) };
        }
        let mut rest = text;
        let mut total: u64 = 0;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let count: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
            let unit =
                UNITS.iter().find(|(_, name)| *name == &rest[..letters]).ok_or_else(wrong)?;
            total =
                count.checked_mul(unit.0).and_then(|n| total.checked_add(n)).ok_or_else(wrong)?;
            rest = &rest[letters..];
        }
        i64::try_from(total).map(Self).map_err(|_| wrong())
    }
}

/// A text that is not an instant or a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {expected}")]
pub struct TimeError {
    text: String,
    expected: &'static str,
}

impl TimeError {
    fn instant(text: &str) -> Self {
        Self {
            text: text.into(),
            expected: "an instant (write 2026-09-22 or 2026-09-22T05:00:00Z)",
        }
    }
    fn duration(text: &str) -> Self {
        Self { text: text.into(), expected: "a duration (write 30s, 5m, 1h30m or PT1H30M)" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_read_what_they_print() {
        for text in ["30s", "5m", "1h30m", "2d", "250ms", "1d1h1m1s1ms1us"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("PT1H30M".parse::<Span>().unwrap(), Span::from_mins(90));
        for text in ["", "5", "m", "-5m", "5 m", "1h-3m", "99999999999999d", "5x", "é"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn instants_read_dates_and_offsets() {
        let midnight: Timestamp = "2026-09-22".parse().unwrap();
        assert_eq!(midnight.to_string(), "2026-09-22T00:00:00.000Z");
        assert_eq!("2026-09-22T02:00:00+02:00".parse::<Timestamp>().unwrap(), midnight);
        assert!("yesterday".parse::<Timestamp>().is_err());
    }
}
