//! The clocks of the shim: the page's clock for deadlines, the wall clock for people.
//!
//! The rest of the installation gets time as a parameter; the shim is a program of its own that
//! has to know by itself when its lease ends, also while nobody talks to it.

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;

use rustix::time::{ClockId, TimerfdClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds in a millisecond.
pub const NS_PER_MS: u64 = 1_000_000;

/// The clock that a page, its kernel timer and its lease file count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClockKind {
    /// Stands still while the machine is suspended (standalone mode).
    Monotonic,
    /// Counts the time of a suspend (leases between machines).
    Boottime,
}

impl ClockKind {
    /// The time on this clock in nanoseconds.
    pub fn now_ns(self) -> u64 {
        let id = match self {
            Self::Monotonic => ClockId::Monotonic,
            Self::Boottime => ClockId::Boottime,
        };
        let now = clock_gettime(id);
        u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(now.tv_nsec).unwrap_or(0)
    }

    /// The number by which Linux knows this clock; also its code in the page.
    pub fn code(self) -> u64 {
        match self {
            Self::Monotonic => 1,
            Self::Boottime => 7,
        }
    }

    /// The clock of a code of [`ClockKind::code`].
    pub fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Monotonic),
            7 => Some(Self::Boottime),
            _ => None,
        }
    }

    pub(crate) fn timerfd(self) -> TimerfdClockId {
        match self {
            Self::Monotonic => TimerfdClockId::Monotonic,
            Self::Boottime => TimerfdClockId::Boottime,
        }
    }
}

impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Monotonic => "monotonic",
            Self::Boottime => "boottime",
        })
    }
}

/// Microseconds since 1970, for display only: nothing is decided by it.
pub fn wall_micros() -> i64 {
    let now = clock_gettime(ClockId::Realtime);
    now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
}

/// `YYYY-MM-DDTHH:MM:SS.ffffffZ`: the form of the log's frames, always 27 bytes.
pub fn rfc3339_micros(micros: i64) -> String {
    let micros = micros.clamp(0, 253_402_300_799_999_999);
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{fraction:06}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

/// The microseconds since 1970 of a text that [`rfc3339_micros`] wrote.
pub fn parse_rfc3339_micros(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00.000000Z";
    let fits = bytes.len() == shape.len()
        && bytes
            .iter()
            .zip(shape)
            .all(|(b, s)| if s.is_ascii_digit() { b.is_ascii_digit() } else { b == s });
    if !fits {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let second = number(11, 13)? * 3_600 + number(14, 16)? * 60 + number(17, 19)?;
    Some((days_from_civil(year, month, day) * 86_400 + second) * 1_000_000 + number(20, 26)?)
}

/// Year, month and day of a number of days since 1970 (Howard Hinnant, `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The inverse of [`civil`].
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The kernel's id of this boot: a free lock and a pid mean something only under the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootId(u128);

impl BootId {
    /// The boot id of the running kernel.
    pub fn current() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        text.trim().parse().map_err(io::Error::other)
    }

    pub(crate) const fn from_words(high: u64, low: u64) -> Self {
        Self((high as u128) << 64 | low as u128)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves of 128 bits")]
    pub(crate) const fn words(self) -> (u64, u64) {
        ((self.0 >> 64) as u64, self.0 as u64)
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A text that is not a boot id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a boot id: 32 hexadecimal digits")]
pub struct BootIdError;

impl FromStr for BootId {
    type Err = BootIdError;
    fn from_str(text: &str) -> Result<Self, BootIdError> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        if digits.len() != 32 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(BootIdError);
        }
        u128::from_str_radix(&digits, 16).map(Self).map_err(|_| BootIdError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_times_are_written_and_read_back() {
        let check = |micros: i64, text: &str| {
            assert_eq!(rfc3339_micros(micros), text);
            assert_eq!(parse_rfc3339_micros(text), Some(micros));
        };
        check(0, "1970-01-01T00:00:00.000000Z");
        check(951_782_400_000_001, "2000-02-29T00:00:00.000001Z");
        check(1_796_025_600_123_456, "2026-11-30T08:00:00.123456Z");
        check(4_107_542_399_999_999, "2100-02-28T23:59:59.999999Z");
        assert_eq!(parse_rfc3339_micros("2026-11-30 08:00:00.123456Z"), None);
        assert_eq!(parse_rfc3339_micros("2026-1é-30T08:00:00.12345Z"), None);
    }

    #[test]
    fn boot_ids_are_read_with_and_without_dashes() {
        let id: BootId = "6ba7b810-9dad-11d1-80b4-00c04fd430c8".parse().unwrap();
        assert_eq!(id.to_string().parse(), Ok(id));
        let (high, low) = id.words();
        assert_eq!(BootId::from_words(high, low), id);
        assert_eq!("6ba7".parse::<BootId>(), Err(BootIdError));
    }
}
