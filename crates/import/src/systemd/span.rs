//! Time spans of systemd: `1h 30min`, `90`, `2w`.

/// Microseconds; `None` for what is no span, `u64::MAX` for `infinity`.
pub(super) fn micros(text: &str) -> Option<u64> {
    let text = text.trim();
    if text == "infinity" {
        return Some(u64::MAX);
    }
    let mut rest = text;
    let mut total = 0_f64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        total += number * unit(&rest[..letters])?;
        rest = rest[letters..].trim_start();
    }
    let is_span = !text.is_empty() && total < 9.0e18;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was compared with both bounds"
    )]
    is_span.then_some(total.round() as u64)
}

fn unit(name: &str) -> Option<f64> {
    const SECOND: f64 = 1_000_000.0;
    Some(match name {
        "usec" | "us" | "µs" | "μs" => 1.0,
        "msec" | "ms" => 1_000.0,
        "" | "seconds" | "second" | "sec" | "s" => SECOND,
        "minutes" | "minute" | "min" | "m" => 60.0 * SECOND,
        "hours" | "hour" | "hr" | "h" => 3_600.0 * SECOND,
        "days" | "day" | "d" => 86_400.0 * SECOND,
        "weeks" | "week" | "w" => 7.0 * 86_400.0 * SECOND,
        "months" | "month" | "M" => 30.44 * 86_400.0 * SECOND,
        "years" | "year" | "y" => 365.25 * 86_400.0 * SECOND,
        _ => return None,
    })
}

/// A duration of DAG files: whole seconds, where there are some.
pub(super) fn duration(micros: u64) -> String {
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    if rest != 0 {
        return if micros.is_multiple_of(1_000) {
            format!("{}ms", micros / 1_000)
        } else {
            format!("{micros}us")
        };
    }
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let parts = [(hours, 'h'), (minutes, 'm'), (seconds, 's')];
    let given = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}"));
    let text = given.collect::<Vec<_>>().concat();
    if text.is_empty() { "0s".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_systemd_reads_them() {
        let of = |text: &str| micros(text).map(duration);
        for (text, expected) in [
            ("90", "1m30s"),
            ("1h 30min", "1h30m"),
            ("2h30min", "2h30m"),
            ("1d", "24h"),
            ("1w 2d", "216h"),
            ("500ms", "500ms"),
            ("1.5min", "1m30s"),
            ("0", "0s"),
            ("55s500ms", "55500ms"),
        ] {
            assert_eq!(of(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(micros("infinity"), Some(u64::MAX));
        for wrong in ["", "x", "1x", "-1", "1h-"] {
            assert_eq!(micros(wrong), None, "{wrong}");
        }
    }
}
