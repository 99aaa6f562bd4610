//! The Prometheus text format, 0.0.4.

use std::fmt::Write;

/// What kind of metric a family is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
}

/// A document under construction.
#[derive(Debug, Default)]
pub(super) struct Text(String);

/// A sample's labels and its value.
pub(super) type Sample<'a> = (Vec<(&'a str, &'a str)>, f64);

impl Text {
    /// One family with all of its samples. Each family is written once.
    pub(super) fn family<'a>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'a>>,
    ) {
        let word = if kind == Kind::Counter { "counter" } else { "gauge" };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {word}\n");
        for (labels, value) in samples {
            self.0.push_str(name);
            for (place, (label, text)) in labels.iter().enumerate() {
                let open = if place == 0 { '{' } else { ',' };
                let _ = write!(self.0, "{open}{label}=\"{}\"", escaped(text));
            }
            if !labels.is_empty() {
                self.0.push('}');
            }
            let _ = writeln!(self.0, " {value}");
        }
    }

    /// A gauge without labels.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(Kind::Gauge, name, help, [(vec![], value)]);
    }

    pub(super) fn into_string(self) -> String {
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_values_are_numbers() {
        let mut text = Text::default();
        let strange = "a\\b\"c\nd";
        let samples = [(vec![("pool", strange), ("kind", "x")], 2.0), (vec![], 0.5)];
        text.family(Kind::Gauge, "fencepost_x", "two\nlines", samples);
        assert_eq!(
            text.into_string(),
            "# HELP fencepost_x two\\nlines\n# TYPE fencepost_x gauge\n\
             fencepost_x{pool=\"a\\\\b\\\"c\\nd\",kind=\"x\"} 2\nfencepost_x 0.5\n"
        );
    }
}
