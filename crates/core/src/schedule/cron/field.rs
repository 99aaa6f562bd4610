//! The fields of a cron expression, each checked on its own so that an error names the place.

use super::CronError;

pub(super) const MINUTE: &str = "minute";
pub(super) const HOUR: &str = "hour";
pub(super) const DAY: &str = "day-of-month";
pub(super) const WEEKDAY: &str = "day-of-week";

/// What one field may hold.
pub(super) struct Kind {
    pub(super) name: &'static str,
    least: u16,
    greatest: u16,
    words: &'static [&'static str],
}

const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];

static KINDS: [Kind; 7] = [
    Kind { name: "second", least: 0, greatest: 59, words: &[] },
    Kind { name: MINUTE, least: 0, greatest: 59, words: &[] },
    Kind { name: HOUR, least: 0, greatest: 23, words: &[] },
    Kind { name: DAY, least: 1, greatest: 31, words: &[] },
    Kind { name: "month", least: 1, greatest: 12, words: &MONTHS },
    Kind { name: WEEKDAY, least: 0, greatest: 7, words: &WEEKDAYS },
    Kind { name: "year", least: 1970, greatest: 4900, words: &[] },
];

/// The kinds of an expression with that many fields: 5, or 6 with seconds first, or 7 with the
/// year last.
pub(super) fn kinds(count: usize) -> Option<&'static [Kind]> {
    match count {
        5 => Some(&KINDS[1..6]),
        6 => Some(&KINDS[..6]),
        7 => Some(&KINDS),
        _ => None,
    }
}

impl Kind {
    /// Checks each part of a comma-separated list.
    pub(super) fn check(&self, field: &str) -> Result<(), CronError> {
        let upper = field.to_ascii_uppercase();
        let list = match upper.strip_prefix('+') {
            Some(rest) if self.name == WEEKDAY => rest,
            _ => &upper,
        };
        list.split(',').try_for_each(|item| {
            self.check_item(item).map_err(|reason| CronError::Field {
                field: self.name,
                value: field.into(),
                reason,
            })
        })
    }

    fn check_item(&self, item: &str) -> Result<(), String> {
        match item {
            "" => return Err("a list has an empty part".into()),
            "*" => return Ok(()),
            "?" if self.name == DAY || self.name == WEEKDAY => return Ok(()),
            "L" | "LW" if self.name == DAY => return Ok(()),
            _ => {}
        }
        if let Some((range, step)) = item.split_once('/') {
            return self.check_step(range, step);
        }
        if let Some((from, to)) = item.split_once('-') {
            return self.check_range(from, to);
        }
        if self.name == DAY
            && let Some(day) = item.strip_suffix('W')
        {
            return self.number(day).map(drop);
        }
        if self.name == WEEKDAY {
            return self.check_weekday(item);
        }
        self.number(item).map(drop)
    }

    fn check_step(&self, range: &str, step: &str) -> Result<(), String> {
        let Some(step_size) = digits(step).filter(|n| *n > 0) else {
            return Err(format!("the step `{step}` must be a number from 1 up"));
        };
        if range == "*" {
            return Ok(());
        }
        let Some((from, to)) = range.split_once('-') else {
            let from =
                if range.is_empty() { "*".into() } else { format!("{range}-{}", self.greatest) };
            return Err(format!("write `{from}/{step_size}`"));
        };
        self.check_range(from, to)
    }

    fn check_range(&self, from: &str, to: &str) -> Result<(), String> {
        let first = self.number(from)?;
        let last = if self.name == WEEKDAY && to == "SUN" { 7 } else { self.number(to)? };
        if first <= last {
            return Ok(());
        }
        Err(format!(
            "the range `{from}-{to}` runs backwards; write `{from}-{},{}-{to}`",
            if self.name == WEEKDAY { 6 } else { self.greatest },
            self.least,
        ))
    }

    fn check_weekday(&self, item: &str) -> Result<(), String> {
        if let Some((day, nth)) = item.split_once('#') {
            self.number(day)?;
            let is_nth = nth == "L" || digits(nth).is_some_and(|n| (1..=5).contains(&n));
            return if is_nth { Ok(()) } else { Err(format!("`#{nth}` must be `#1` to `#5`")) };
        }
        self.number(item.strip_suffix('L').unwrap_or(item)).map(drop)
    }

    fn number(&self, text: &str) -> Result<u16, String> {
        if let Some(place) = self.words.iter().position(|word| *word == text) {
            return Ok(self.least + u16::try_from(place).unwrap_or(0));
        }
        let (least, greatest) = (self.least, self.greatest);
        match digits(text) {
            Some(number) if (least..=greatest).contains(&number) => Ok(number),
            Some(number) => Err(format!("{number} is not in {least} to {greatest}")),
            None => Err(self.expected(text)),
        }
    }

    fn expected(&self, text: &str) -> String {
        let (least, greatest) = (self.least, self.greatest);
        match self.words.first().zip(self.words.last()) {
            Some((first, last)) => {
                format!("`{text}` is neither {least} to {greatest} nor {first} to {last}")
            }
            None => format!("`{text}` is not a number of {least} to {greatest}"),
        }
    }
}

fn digits(text: &str) -> Option<u16> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}
