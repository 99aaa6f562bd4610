//! The core schema of YAML 1.2 (section 10.3): what a plain scalar means.

use serde_json::Number;

/// What a scalar is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Null,
    Flag(bool),
    Number(Number),
    /// A number that JSON cannot hold: `.inf`, `.nan`, an integer beyond 64 bits.
    NotJson,
    Text,
}

/// What an unquoted, untagged scalar is. A number with a leading zero (`007`, `0755`) is text:
/// readers of YAML differ over its value, so nothing is guessed.
pub(super) fn resolve(text: &str) -> Kind {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Kind::Null,
        "true" | "True" | "TRUE" => return Kind::Flag(true),
        "false" | "False" | "FALSE" => return Kind::Flag(false),
        ".nan" | ".NaN" | ".NAN" => return Kind::NotJson,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Kind::NotJson;
    }
    if let Some(number) = radix(text) {
        return number;
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Kind::Text;
    }
    if unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return integer(text, unsigned);
    }
    if is_float(unsigned) { float(text) } else { Kind::Text }
}

fn integer(text: &str, digits: &str) -> Kind {
    if digits.len() > 1 && digits.starts_with('0') {
        return Kind::Text;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    let signed = text.parse::<i64>().map(Number::from);
    signed.or_else(|_| text.parse::<u64>().map(Number::from)).map_or(Kind::NotJson, Kind::Number)
}

fn radix(text: &str) -> Option<Kind> {
    let (digits, radix) = match text.get(..2)? {
        "0o" => (&text[2..], 8),
        "0x" => (&text[2..], 16),
        _ => return None,
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    Some(u64::from_str_radix(digits, radix).map_or(Kind::NotJson, |n| Kind::Number(n.into())))
}

/// `( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?`
fn is_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    let leading_zero = whole.len() > 1 && whole.starts_with('0');
    let exponent_fits = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    has_digits && !leading_zero && digits(whole) && digits(fraction) && exponent_fits
}

fn float(text: &str) -> Kind {
    text.parse().ok().and_then(Number::from_f64).map_or(Kind::NotJson, Kind::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_read_by_the_core_schema() {
        for text in [
            "no",
            "on",
            "off",
            "yes",
            "y",
            "0755",
            "08",
            "12:30",
            "1_000",
            "2026-01-01",
            "0o8",
            "0x",
            "1e",
            "-",
            ".",
            "+",
            "1.2.3",
            "NaN",
            "inf",
            "-x",
            "é",
        ] {
            assert_eq!(resolve(text), Kind::Text, "{text}");
        }
        let number = |n: i64| Kind::Number(n.into());
        assert_eq!(resolve("-7"), number(-7));
        assert_eq!(resolve("+7"), number(7));
        assert_eq!(resolve("0"), number(0));
        assert_eq!(resolve("0o17"), number(15));
        assert_eq!(resolve("0xFf"), number(255));
        assert_eq!(resolve("18446744073709551615"), Kind::Number(u64::MAX.into()));
        for text in ["18446744073709551616", ".inf", "-.INF", ".nan", "1e999"] {
            assert_eq!(resolve(text), Kind::NotJson, "{text}");
        }
        for (text, value) in [("1.10", 1.1), (".5", 0.5), ("-1.", -1.0), ("2e-3", 0.002)] {
            assert_eq!(resolve(text), Kind::Number(Number::from_f64(value).unwrap()), "{text}");
        }
        assert_eq!(resolve("~"), Kind::Null);
        assert_eq!(resolve("True"), Kind::Flag(true));
    }
}
