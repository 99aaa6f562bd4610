//! Values of Airflow: spans, counts, params.

use crate::report::Notes;
use crate::yaml::{self, Field};
use fencepost_dagfile::document::Node;
use serde_json::{Map, Value, json};

/// A whole number from `least` up; a note if it is none.
pub(super) fn whole(field: &Field<'_>, to: &str, least: i64, notes: &mut Notes) -> Option<i64> {
    let number = field.value.text().and_then(|text| text.trim().parse::<i64>().ok());
    let number = number.filter(|number| (least..=1_000_000).contains(number));
    if number.is_none() {
        notes.needs(
            field.line,
            field.shown(),
            format!("it is no number for `{to}`"),
            format!("write `{to}`"),
        );
    }
    number
}

/// A span as a duration: seconds, `5 minutes`, or an object that says so; a note if it is none.
pub(super) fn duration(field: &Field<'_>, notes: &mut Notes) -> Option<String> {
    let span = span(field.value);
    if span.is_none() {
        let todo = "write it as 30s, 5m, 1h30m";
        notes.needs(field.line, field.shown(), "it is no span that could be read", todo);
    }
    span.map(yaml::seconds)
}

/// Seconds.
pub(super) fn span(value: &Node) -> Option<u64> {
    if value.is_map() {
        let is_delta = value
            .get("__type__")
            .and_then(Node::text)
            .is_some_and(|name| name.ends_with("timedelta"));
        return if is_delta { parts_of(value) } else { None };
    }
    let text = value.text()?.trim().to_ascii_lowercase();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds);
    }
    if let Some((hours, rest)) = text.split_once(':') {
        let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
        let number = |text: &str| text.parse::<u64>().ok();
        return Some(number(hours)? * 3_600 + number(minutes)? * 60 + number(seconds)?);
    }
    let mut words = text.trim_end_matches(',').split_whitespace();
    let mut total = 0_u64;
    while let Some(number) = words.next() {
        let number = number.parse::<u64>().ok()?;
        total = total.checked_add(number.checked_mul(unit(words.next()?)?)?)?;
    }
    Some(total)
}

fn unit(word: &str) -> Option<u64> {
    Some(match word.trim_end_matches([',', 's']) {
        "second" | "sec" => 1,
        "minute" | "min" => 60,
        "hour" => 3_600,
        "day" => 86_400,
        "week" => 604_800,
        _ => return None,
    })
}

fn parts_of(value: &Node) -> Option<u64> {
    let mut total = 0_u64;
    for entry in value.entries().iter().filter(|entry| entry.key != "__type__") {
        let number = entry.value.text()?.parse::<u64>().ok()?;
        total = total.checked_add(number.checked_mul(unit(&entry.key)?)?)?;
    }
    Some(total)
}

/// Params: values, or what Airflow's `Param` takes.
pub(super) fn params(field: &Field<'_>, notes: &mut Notes) -> Map<String, Value> {
    const KEYWORDS: [&str; 12] = [
        "type",
        "enum",
        "items",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "default",
        "description",
        "const",
        "properties",
    ];
    let mut params = Map::new();
    for entry in field.value.entries() {
        if !crate::names::is_variable(&entry.key) {
            notes.needs(
                entry.place.line,
                yaml::shown(&entry.key, &entry.value),
                "no param can have that name",
                "rename it",
            );
            continue;
        }
        let json = entry.value.to_json();
        let is_declared = json.as_object().is_some_and(|map| {
            map.contains_key("default") && map.keys().all(|key| KEYWORDS.contains(&key.as_str()))
        });
        let value = if json.is_object() && !is_declared {
            json!({ "type": "object", "default": json })
        } else {
            json
        };
        params.insert(entry.key.clone(), value);
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_dagfile::document::read;

    #[test]
    fn spans_of_airflow_are_seconds() {
        let of = |text: &str| span(&read(text).unwrap());
        for (text, seconds) in [
            ("300", 300),
            ("5 minutes", 300),
            ("1 hours", 3_600),
            ("1 days,", 86_400),
            ("00:05:00", 300),
            ("1 day 2 hours", 93_600),
            ("{__type__: datetime.timedelta, minutes: 5, seconds: 1}", 301),
        ] {
            assert_eq!(of(text), Some(seconds), "{text}");
        }
        for wrong in [
            "soon",
            "-1",
            "1.5",
            "{minutes: 5}",
            "[1]",
            "5 parsecs",
            "99999999999999999999 days",
            "5",
        ] {
            assert_eq!(of(wrong).is_none(), wrong != "5", "{wrong}");
        }
    }
}
