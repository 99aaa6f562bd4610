//! When a workflow runs: cron expressions as robfig/cron reads them.

use crate::dag::Draft;
use crate::report::Notes;
use crate::yaml::Fields;
use fencepost_core::schedule::{Cron, Zone};
use fencepost_dagfile::document::{Content, Node};
use serde_json::json;

/// Reads `schedule` and what belongs to it.
pub(super) fn read(fields: &mut Fields<'_>, zone: &str, draft: &mut Draft, notes: &mut Notes) {
    let window = super::text(fields, "catchup_window");
    let policy = super::text(fields, "overlap_policy");
    let Some(field) = fields.take(&["schedule"]) else { return };
    let line = field.line;
    let (starts, others) = if field.value.is_map()
        && field.value.get("expression").is_none()
        && field.value.get("at").is_none()
    {
        (field.value.get("start"), ["stop", "restart"].map(|name| (name, field.value.get(name))))
    } else {
        (Some(field.value), [("stop", None), ("restart", None)])
    };
    for (name, value) in others {
        if let Some(value) = value.filter(|value| !value.is_null()) {
            let todo = "give the DAG a `dagrun_timeout`, or a DAG that cancels it";
            notes.needs(
                line,
                crate::yaml::shown(name, value),
                "a schedule starts runs, and stops none",
                todo,
            );
        }
    }
    let mut crons: Vec<(String, String)> = Vec::new();
    for text in starts.into_iter().flat_map(expressions) {
        match expression(&text, zone) {
            Ok(found) => {
                notes.converted(line, &text, format!("schedule {} in {}", found.0, found.1));
                crons.push(found);
            }
            Err(why) => notes.needs(line, text, why, "write a `schedule`"),
        }
    }
    let Some((_, first)) = crons.first().cloned() else { return };
    let (here, elsewhere): (Vec<_>, Vec<_>) =
        crons.into_iter().partition(|(_, zone)| *zone == first);
    for (cron, zone) in elsewhere {
        notes.needs(
            line,
            format!("{cron} in {zone}"),
            "a DAG has one time zone",
            "write it in the zone of the others, or as a second DAG",
        );
    }
    let here: Vec<String> = here.into_iter().map(|(cron, _)| cron).collect();
    draft.set("schedule", if here.len() == 1 { json!(here[0]) } else { json!(here) });
    draft.set("timezone", first);
    match window.as_deref() {
        // What is older than the window is missed.
        Some(window) if window.parse::<fencepost_core::time::Span>().is_ok() => {
            draft.set("start_deadline", window);
            let todo = "write `catchup: true` with a `start_date`, if each of them counts";
            let why = "the newest slot that was missed is run, if it is not older than that";
            notes.needs(line, format!("catchup_window: {window}"), why, todo);
        }
        Some(window) => notes.needs(
            line,
            format!("catchup_window: {window}"),
            "it is no duration",
            "write `catchup` and `start_deadline`",
        ),
        None => draft.set("catchup", "next"),
    }
    draft.set(
        "overlap",
        match policy.as_deref() {
            Some("all") => "queue",
            Some("latest") => "latest",
            _ => "skip",
        },
    );
}

/// The texts of one or several schedules; an instant as itself.
fn expressions(node: &Node) -> Vec<String> {
    match &node.content {
        Content::Scalar { text, .. } => vec![text.clone()],
        Content::List(items) => items.iter().flat_map(expressions).collect(),
        Content::Map(_) => ["expression", "at"]
            .iter()
            .filter_map(|key| node.get(key)?.text().map(str::to_owned))
            .collect(),
    }
}

/// A cron expression of ours and its zone.
fn expression(text: &str, zone: &str) -> Result<(String, String), String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut zone = zone.to_owned();
    if let Some(named) = words
        .first()
        .and_then(|word| word.strip_prefix("CRON_TZ=").or_else(|| word.strip_prefix("TZ=")))
    {
        if Zone::get(named).is_none() {
            return Err(format!("there is no time zone `{named}`"));
        }
        named.clone_into(&mut zone);
        words.remove(0);
    }
    if text.parse::<jiff::Timestamp>().is_ok() {
        return Err("an instant is a schedule of its own: {at: ...}".into());
    }
    if let [name] = words.as_slice()
        && name.starts_with('@')
    {
        return if Cron::parse(name).is_ok() {
            Ok(((*name).to_owned(), zone))
        } else {
            Err(format!("there is no schedule `{name}`"))
        };
    }
    let Ok(fields) = <[&str; 5]>::try_from(words) else {
        return Err("it has not the five fields of a cron expression".into());
    };
    let most = [59, 23, 31, 12, 6];
    let least = [0, 0, 1, 1, 0];
    let mut out: Vec<String> = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        let items: Vec<String> =
            field.split(',').map(|item| in_full(item, least[place], most[place], place)).collect();
        out.push(items.join(","));
    }
    let cron = out.join(" ");
    Cron::parse(&cron).map_err(|error| error.to_string())?;
    Ok((cron, zone))
}

/// An item whose meaning would be another here. For robfig/cron `*/2` is no star in the rule for day of month and day of
/// week (either matches), for us it is one (both must); `5/15` has no end there and is refused here.
fn in_full(item: &str, least: u32, most: u32, place: usize) -> String {
    let is_day = place == 2 || place == 4;
    match item.split_once('/') {
        None if item == "?" => "*".to_owned(),
        Some(("*" | "?", step)) if is_day && step != "1" => format!("{least}-{most}/{step}"),
        Some(("?", step)) => format!("*/{step}"),
        Some((from, step)) if !from.contains('-') && from != "*" => format!("{from}-{most}/{step}"),
        _ => item.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_robfig_cron() {
        let of = |text: &str| expression(text, "UTC").map(|(cron, zone)| format!("{cron} {zone}"));
        for (text, expected) in [
            ("0 2 * * *", "0 2 * * * UTC"),
            ("5/15 * ? * ?", "5-59/15 * * * * UTC"),
            ("0 0 */2 * 1", "0 0 1-31/2 * 1 UTC"),
            ("0 0 1 * */2", "0 0 1 * 0-6/2 UTC"),
            ("CRON_TZ=Asia/Tokyo 0 9 * * MON-FRI", "0 9 * * MON-FRI Asia/Tokyo"),
            ("@daily", "@daily UTC"),
        ] {
            assert_eq!(of(text).as_deref(), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "* * * *",
            "61 * * * *",
            "CRON_TZ=Mars 0 0 * * *",
            "@sometimes",
            "2026-01-01T00:00:00Z",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
