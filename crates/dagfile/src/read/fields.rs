//! The fields of a mapping by the key table: unknown and later keys are reported, the others are
//! read by their shape. A field that is wrong is reported once and then counts as not given.

use crate::diagnostic::{Findings, quoted};
use crate::keys::{self, Key, Level, Shape};
use crate::suggest::did_you_mean;
use crate::yaml::{Content, Entry, Kind, Node};
use fencepost_core::time::Span;
use std::collections::BTreeMap;

/// The known, supported fields of one mapping.
#[derive(Debug, Default, Clone)]
pub(super) struct Fields<'a> {
    by_name: BTreeMap<&'static str, Field<'a>>,
}

/// A field with its key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) key: &'static Key,
    pub(super) entry: &'a Entry,
}

impl<'a> Fields<'a> {
    /// Sorts the entries of a mapping by the key table.
    pub(super) fn of(entries: &'a [Entry], level: Level, findings: &mut Findings) -> Self {
        let mut fields = Self::default();
        for entry in entries {
            match keys::find(&entry.key, level) {
                Some(key) if key.shape.is_later() => report_later(entry, findings),
                Some(key) => {
                    fields.by_name.insert(key.name, Field { key, entry });
                }
                None => report_unknown(entry, level, findings),
            }
        }
        fields
    }

    /// These fields over those of `defaults`; null takes a default away.
    pub(super) fn over(&self, defaults: &Self) -> Self {
        let mut by_name = defaults.by_name.clone();
        by_name.extend(self.by_name.iter().map(|(name, field)| (*name, *field)));
        Self { by_name }
    }

    /// The field of that name, unless it is null.
    pub(super) fn get(&self, name: &str) -> Option<Field<'a>> {
        self.written(name).filter(|field| !field.entry.value.is_null())
    }

    /// The field of that name, null or not.
    pub(super) fn written(&self, name: &str) -> Option<Field<'a>> {
        self.by_name.get(name).copied()
    }

    pub(super) fn text(&self, name: &str, findings: &mut Findings) -> Option<String> {
        let field = self.get(name)?;
        let value = &field.entry.value;
        if let Some(text) = value.as_text() {
            return Some(text.to_owned());
        }
        let hint = value.as_written().map_or_else(String::new, |text| format!("write \"{text}\""));
        wrong_type(field, "text", &hint, findings);
        None
    }

    pub(super) fn flag(&self, name: &str, findings: &mut Findings) -> Option<bool> {
        let field = self.get(name)?;
        match &field.entry.value.content {
            Content::Scalar(scalar) if matches!(scalar.kind, Kind::Flag(_)) => {
                Some(scalar.kind == Kind::Flag(true))
            }
            Content::Scalar(_) | Content::List(_) | Content::Map(_) => {
                let hint = match field.entry.value.as_written() {
                    Some("yes" | "on" | "1" | "true" | "True") => "write true",
                    Some("no" | "off" | "0" | "false" | "False") => "write false",
                    _ => "",
                };
                wrong_type(field, "true or false", hint, findings);
                None
            }
        }
    }

    pub(super) fn whole<T: TryFrom<i64>>(&self, name: &str, findings: &mut Findings) -> Option<T> {
        let field = self.get(name)?;
        let Shape::Whole { least, greatest } = field.key.shape else { return None };
        let number = whole_number(
            &field.entry.value,
            |hint, findings| {
                wrong_type(field, "a whole number", hint, findings);
            },
            findings,
        )?;
        if (least..=greatest).contains(&number) {
            return T::try_from(number).ok();
        }
        let message = format!("`{name}` is {number}");
        let hint = format!("it must be from {least} to {greatest}");
        findings.error(field.entry.value.place, "out-of-range", message, hint);
        None
    }

    pub(super) fn duration(&self, name: &str, findings: &mut Findings) -> Option<Span> {
        let field = self.get(name)?;
        let span = read_duration(name, &field.entry.value, findings)?;
        let may_be_zero = matches!(name, "retry_delay" | "kill_grace");
        if span == Span::ZERO && !may_be_zero {
            let message = format!("`{name}` is no time at all");
            let hint = "leave it out for none, or write a duration such as 5m";
            findings.error(field.entry.value.place, "out-of-range", message, hint);
            return None;
        }
        Some(span)
    }

    /// One of the values of a `Choice`.
    pub(super) fn choice(&self, name: &str, findings: &mut Findings) -> Option<&'static str> {
        let field = self.get(name)?;
        let Shape::Choice { values, later } = field.key.shape else { return None };
        let value = &field.entry.value;
        let text = value.as_written().unwrap_or_default();
        if let Some(known) = values.iter().find(|known| **known == text) {
            return Some(known);
        }
        if later.contains(&text) {
            let message = format!("`{name}: {text}` is not supported yet");
            findings.error(value.place, NOT_YET, message, instead(values));
            return None;
        }
        let message = match value.as_written() {
            Some(text) => format!("`{name}` cannot be {}", quoted(text)),
            None => format!("`{name}` must be a word, not {}", value.description()),
        };
        let near = did_you_mean(text, values.iter().chain(later).copied());
        let hint = if near.is_empty() { instead(values) } else { near };
        findings.error(value.place, "bad-value", message, hint);
        None
    }

    /// Whether that field is there (null counts as not given).
    pub(super) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The entries of a mapping-valued field.
    pub(super) fn map(&self, name: &str, findings: &mut Findings) -> Option<&'a [Entry]> {
        let field = self.get(name)?;
        let entries = field.entry.value.as_map();
        if entries.is_none() {
            wrong_type(field, "a mapping", "", findings);
        }
        entries
    }

    /// The items of a list-valued field.
    pub(super) fn list(&self, name: &str, findings: &mut Findings) -> Option<&'a [Node]> {
        let field = self.get(name)?;
        let items = field.entry.value.as_list();
        if items.is_none() {
            let written = field.entry.value.as_written();
            let hint = written.map_or_else(String::new, |text| format!("write [{text}]"));
            wrong_type(field, "a list", &hint, findings);
        }
        items
    }

    /// A list of text.
    pub(super) fn texts(&self, name: &str, findings: &mut Findings) -> Option<Vec<String>> {
        let mut texts = Vec::new();
        for item in self.list(name, findings)? {
            match item.as_written() {
                Some(text) => texts.push(text.to_owned()),
                None => item_type(name, item, "text", findings),
            }
        }
        Some(texts)
    }
}

/// The code of what is known and refused.
pub(super) const NOT_YET: &str = "not-supported-yet";

fn report_later(entry: &Entry, findings: &mut Findings) {
    let message = format!("`{}` is not supported yet", entry.key);
    findings.error(entry.key_place, NOT_YET, message, "leave it out for now");
}

fn report_unknown(entry: &Entry, level: Level, findings: &mut Findings) {
    let message = format!("unknown key {}", quoted(&entry.key));
    let elsewhere = keys::all().find(|key| key.name == entry.key);
    let hint = match (elsewhere, level) {
        (Some(key), Level::TaskOrDefault) if key.level == Level::Task => {
            "it belongs to each task, not to `default_args`".to_owned()
        }
        (Some(key), Level::Group) if key.level == Level::TaskOrDefault => {
            "write it under the group's `default_args`".to_owned()
        }
        (Some(key), _) if key.level == Level::Group => "it belongs to a task group".to_owned(),
        (Some(key), _) if key.level == Level::Dag => "it belongs to the top of the file".to_owned(),
        (Some(_), _) => "it belongs to a task".to_owned(),
        _ if findings.is_full() => String::new(),
        _ => did_you_mean(&entry.key, keys::at(level).map(|key| key.name)),
    };
    findings.error(entry.key_place, "unknown-key", message, hint);
}

fn instead(values: &[&str]) -> String {
    match values {
        [only] => format!("only `{only}` is"),
        _ => format!("one of {}", values.join(", ")),
    }
}

pub(super) fn wrong_type(field: Field<'_>, expected: &str, hint: &str, findings: &mut Findings) {
    let (name, value) = (field.key.name, &field.entry.value);
    let message = format!("`{name}` must be {expected}, not {}", value.description());
    findings.error(value.place, "wrong-type", message, hint);
}

/// An item of a list or mapping is of the wrong type.
pub(super) fn item_type(name: &str, item: &Node, expected: &str, findings: &mut Findings) {
    let message = format!("an item of `{name}` must be {expected}, not {}", item.description());
    findings.error(item.place, "wrong-type", message, "");
}

/// A whole number, or a report through `wrong` with a mend.
pub(super) fn whole_number(
    value: &Node,
    wrong: impl FnOnce(&str, &mut Findings),
    findings: &mut Findings,
) -> Option<i64> {
    if let Content::Scalar(scalar) = &value.content {
        if let Kind::Number(number) = &scalar.kind
            && let Some(number) = number.as_i64()
        {
            return Some(number);
        }
        if let Ok(number) = scalar.text.trim().parse::<i64>() {
            wrong(&format!("write {number}"), findings);
            return None;
        }
    }
    wrong("", findings);
    None
}

/// A duration, written as text.
pub(super) fn read_duration(name: &str, value: &Node, findings: &mut Findings) -> Option<Span> {
    const FORM: &str = "write it as 30s, 5m, 1h30m or PT1H30M";
    let message = match value.as_text() {
        Some(text) => match text.parse() {
            Ok(span) => return Some(span),
            Err(_) => format!("`{name}` must be a duration, not {}", value.description()),
        },
        None => format!("`{name}` must be a duration, not {}", value.description()),
    };
    let hint = match whole_number(value, |_, _| (), findings) {
        Some(seconds) if seconds >= 0 => format!("write {seconds}s if you mean seconds"),
        _ => FORM.to_owned(),
    };
    findings.error(value.place, "bad-duration", message, hint);
    None
}
