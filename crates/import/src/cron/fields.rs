//! The fields of a crontab line, by the rules of cron: what cron would refuse is refused here too, though
//! the schedules of DAG files know more (`L`, `W`, `#`, seconds).

/// A field: least and greatest value, and its names from the least on.
struct Field {
    name: &'static str,
    least: u32,
    greatest: u32,
    words: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", least: 0, greatest: 59, words: &[] },
    Field { name: "hour", least: 0, greatest: 23, words: &[] },
    Field { name: "day of month", least: 1, greatest: 31, words: &[] },
    Field {
        name: "month",
        least: 1,
        greatest: 12,
        words: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    Field {
        name: "day of week",
        least: 0,
        greatest: 7,
        words: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

/// Why fields are no schedule of cron.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// cron picks a value at random each time it reads the crontab.
    Random,
    No(String),
}

/// The five fields as a cron expression.
pub(super) fn expression(fields: &[&str; 5]) -> Result<String, Wrong> {
    for (field, text) in FIELDS.iter().zip(fields) {
        for item in text.split(',') {
            if item.contains('~') {
                return Err(Wrong::Random);
            }
            field.check(item).map_err(|why| {
                Wrong::No(format!("`{text}` is no {} of cron: {why}", field.name))
            })?;
        }
    }
    Ok(fields.join(" "))
}

impl Field {
    fn check(&self, item: &str) -> Result<(), String> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (item, None),
        };
        if let Some(step) = step {
            let is_whole = |n: u32| n > 0;
            if !step.parse::<u32>().is_ok_and(is_whole) || !step.bytes().all(|b| b.is_ascii_digit())
            {
                return Err(format!("the step `{step}` is no number from 1 up"));
            }
        }
        if range == "*" {
            return Ok(());
        }
        let Some((from, to)) = range.split_once('-') else {
            self.value(range)?;
            return match step {
                None => Ok(()),
                Some(_) => Err("a step follows `*` or a range".into()),
            };
        };
        let (from, to) = (self.value(from)?, self.value(to)?);
        if from <= to { Ok(()) } else { Err("the range runs backwards".into()) }
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        let lower = text.to_ascii_lowercase();
        if let Some(place) = self.words.iter().position(|word| *word == lower) {
            return Ok(self.least + u32::try_from(place).unwrap_or(0));
        }
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse::<u32>() {
            Ok(number) if is_number && (self.least..=self.greatest).contains(&number) => Ok(number),
            _ => Err(format!("`{text}` is not {} to {}", self.least, self.greatest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, Wrong> {
        let fields: Vec<&str> = text.split(' ').collect();
        expression(&fields.try_into().unwrap())
    }

    #[test]
    fn what_cron_knows_is_taken_as_it_is_and_the_rest_refused() {
        for sound in [
            "* * * * *",
            "*/5 0-23/2 1,15 jan-mar MON-fri",
            "0 0 * * 7",
            "0 0 */2 * 5-7",
            "59 23 31 12 0",
        ] {
            assert_eq!(of(sound).as_deref(), Ok(sound));
            assert!(fencepost_core::schedule::Cron::parse(sound).is_ok(), "{sound}");
        }
        for wrong in [
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * L * *",
            "* * 15W * *",
            "* * * * MON#2",
            "5/10 * * * *",
            "*/0 * * * *",
            "5-1 * * * *",
            "* * * foo *",
            ", * * * *",
            "1,,2 * * * *",
            "? * * * *",
            "* * * * 8",
            "+1 * * * *",
            "*/+5 * * * *",
        ] {
            assert!(matches!(of(wrong), Err(Wrong::No(_))), "{wrong}");
        }
        assert_eq!(of("0~59 * * * *"), Err(Wrong::Random));
    }
}
