//! Functions of templates: shell quoting and the part of Airflow's `macros` that is pure.

use super::instant::{Instant, invalid, parse_date};
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::{Span, tz::TimeZone};
use minijinja::{Error, State, Value};

/// One word of a shell for a value, or one for each element of a list.
pub(super) fn sh(state: &mut State<'_, '_>, value: &Value) -> Result<String, Error> {
    if value.is_undefined() {
        // Any filter of text fails with the name of what is undefined.
        state.apply_filter("upper", std::slice::from_ref(value))?;
    }
    words(value)
}

fn words(value: &Value) -> Result<String, Error> {
    if value.kind() == minijinja::value::ValueKind::Seq {
        let words: Result<Vec<String>, Error> =
            value.try_iter()?.map(|item| words(&item)).collect();
        return Ok(words?.join(" "));
    }
    Ok(quote(&if value.is_none() { String::new() } else { value.to_string() }))
}

/// The text as one word of a POSIX shell.
fn quote(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(&b);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The value of `macros`.
pub(super) fn module() -> Value {
    Value::from_pairs([
        ("ds_add", Value::from_function(ds_add)),
        ("ds_format", Value::from_function(ds_format)),
        ("datetime", Value::from_function(datetime)),
    ])
}

/// `ds_add("2026-01-31", 1)` is `2026-02-01`.
fn ds_add(ds: &str, days: i64) -> Result<String, Error> {
    let span = Span::new().try_days(days).map_err(|error| invalid(error.to_string()))?;
    let moved = parse_date(ds)?.date().checked_add(span);
    moved.map(|date| date.to_string()).map_err(|error| invalid(error.to_string()))
}

/// `ds_format("2026-01-31", "%Y-%m-%d", "%d.%m.%Y")` is `31.01.2026`.
fn ds_format(ds: &str, input: &str, output: &str) -> Result<String, Error> {
    let parsed = strtime::parse(input, ds).map_err(|error| invalid(error.to_string()))?;
    let at = parsed.to_datetime().or_else(|_| parsed.to_date().map(DateTime::from));
    let at = at.map_err(|error| invalid(error.to_string()))?;
    strtime::format(output, at).map_err(|error| invalid(error.to_string()))
}

/// `datetime(2026, 1, 31, 5)` in UTC.
fn datetime(
    year: i16,
    month: i8,
    day: i8,
    hour: Option<i8>,
    minute: Option<i8>,
) -> Result<Value, Error> {
    let wrong = |error: jiff::Error| invalid(error.to_string());
    let (hour, minute) = (hour.unwrap_or(0), minute.unwrap_or(0));
    let at = DateTime::new(year, month, day, hour, minute, 0, 0).map_err(wrong)?;
    let zoned = at.to_zoned(TimeZone::UTC).map_err(wrong)?;
    Ok(Value::from_object(Instant(zoned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (text, word) in [
            ("", "''"),
            ("a-b_c/d.e", "a-b_c/d.e"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(rm -rf /)", "'$(rm -rf /)'"),
            ("~", "'~'"),
            ("é\n", "'é\n'"),
        ] {
            assert_eq!(quote(text), word);
        }
        assert_eq!(words(&Value::from(vec!["a", "b c"])).unwrap(), "a 'b c'");
        assert_eq!(words(&Value::from(7)).unwrap(), "7");
    }
}
