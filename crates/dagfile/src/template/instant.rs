//! Instants in templates: what Airflow's users do with a pendulum date.

use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::{Span, Zoned};
use minijinja::value::{Kwargs, Object, ObjectRepr, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use std::fmt;
use std::sync::Arc;

/// An instant in the DAG's time zone.
#[derive(Debug, Clone)]
pub(super) struct Instant(pub(super) Zoned);

/// Formats by name, as filters and as the short forms of the context.
pub(super) const FORMS: [(&str, &str); 5] = [
    ("ds", "%Y-%m-%d"),
    ("ds_nodash", "%Y%m%d"),
    ("ts", ISO),
    ("ts_nodash", "%Y%m%dT%H%M%S"),
    ("ts_nodash_with_tz", "%Y%m%dT%H%M%S%z"),
];

const ISO: &str = "%Y-%m-%dT%H:%M:%S%:z";
const ISO_MICROS: &str = "%Y-%m-%dT%H:%M:%S.%6f%:z";

pub(super) fn add_filters(environment: &mut Environment<'static>) {
    for (name, form) in FORMS {
        environment.add_filter(name, move |value: &Value| match value.downcast_object_ref() {
            Some(Instant(at)) => format(at, form),
            None => Err(invalid(format!("`{name}` takes a date such as logical_date"))),
        });
    }
}

/// By strftime's marks; a wrong mark is an error.
pub(super) fn format(at: &Zoned, form: &str) -> Result<String, Error> {
    let form = if form == ISO && at.subsec_nanosecond() != 0 { ISO_MICROS } else { form };
    strtime::format(form, at).map_err(|error| invalid(error.to_string()))
}

pub(super) fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

impl Object for Instant {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let at = &self.0;
        Some(match key.as_str()? {
            "year" => at.year().into(),
            "month" => at.month().into(),
            "day" => at.day().into(),
            "hour" => at.hour().into(),
            "minute" => at.minute().into(),
            "second" => at.second().into(),
            "microsecond" => (at.subsec_nanosecond() / 1_000).into(),
            "day_of_year" => at.day_of_year().into(),
            _ => return None,
        })
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        args: &[Value],
    ) -> Result<Value, Error> {
        match method {
            "strftime" | "format" => {
                let (form,): (&str,) = from_args(args)?;
                format(&self.0, form).map(Value::from)
            }
            "isoformat" => format(&self.0, ISO).map(Value::from),
            "to_date_string" | "date" => format(&self.0, "%Y-%m-%d").map(Value::from),
            "timestamp" | "int_timestamp" => Ok(self.0.timestamp().as_second().into()),
            "weekday" => Ok(self.0.weekday().to_monday_zero_offset().into()),
            "isoweekday" => Ok(self.0.weekday().to_monday_one_offset().into()),
            "add" => self.moved(args, 1),
            "subtract" => self.moved(args, -1),
            "in_timezone" | "in_tz" => {
                let (name,): (&str,) = from_args(args)?;
                let zone = fencepost_core::schedule::Zone::get(name)
                    .ok_or_else(|| invalid(format!("unknown time zone `{name}`")))?;
                let zoned = self.0.with_time_zone(zone.as_jiff().clone());
                Ok(Value::from_object(Self(zoned)))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format(&self.0, ISO).map_err(|_| fmt::Error)?)
    }
}

impl Instant {
    /// `add(days=1, hours=2)`.
    fn moved(&self, args: &[Value], sign: i64) -> Result<Value, Error> {
        let (given,): (Kwargs,) = from_args(args)?;
        let mut moved = self.0.clone();
        for name in ["years", "months", "weeks", "days", "hours", "minutes", "seconds"] {
            let count = given.get::<Option<i64>>(name)?.unwrap_or(0).saturating_mul(sign);
            let span = match name {
                "years" => Span::new().try_years(count),
                "months" => Span::new().try_months(count),
                "weeks" => Span::new().try_weeks(count),
                "days" => Span::new().try_days(count),
                "hours" => Span::new().try_hours(count),
                "minutes" => Span::new().try_minutes(count),
                _ => Span::new().try_seconds(count),
            };
            let next = span.and_then(|span| moved.checked_add(span));
            moved = next.map_err(|error| invalid(error.to_string()))?;
        }
        given.assert_all_used()?;
        Ok(Value::from_object(Self(moved)))
    }
}

/// A date or time of day as Airflow's macros take it, in UTC.
pub(super) fn parse_date(text: &str) -> Result<DateTime, Error> {
    text.parse().map_err(|_| invalid(format!("`{text}` is not a date such as 2026-01-31")))
}
