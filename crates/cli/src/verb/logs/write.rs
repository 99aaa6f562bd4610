//! How log lines are printed.

use crate::cx::Cx;
use crate::error::Outcome;
use crate::output::paint::Paint;
use fencepost_api::rest::{LogLine, LogPage};
use serde_json::json;

/// Prints pages: lines for people, an array (or, when following, objects by line) as data.
pub(super) struct Writer<'a> {
    cx: &'a Cx,
    timestamps: bool,
    /// Objects by line instead of one array at the end.
    stream: bool,
    kept: Vec<serde_json::Value>,
    /// The last thing printed has no line end yet.
    open: bool,
}

impl<'a> Writer<'a> {
    /// For output that ends.
    pub(super) const fn new(cx: &'a Cx, timestamps: bool) -> Self {
        Self { cx, timestamps, stream: false, kept: Vec::new(), open: false }
    }

    /// For output that goes on.
    pub(super) fn streaming(cx: &'a Cx, timestamps: bool) -> Self {
        Self { stream: true, ..Self::new(cx, timestamps) }
    }

    /// One page; `label` is empty where one log is printed.
    pub(super) fn page(&mut self, label: &str, page: &LogPage) -> Outcome<()> {
        if page.dropped_bytes > 0 && self.kept.is_empty() {
            let bytes = page.dropped_bytes;
            self.cx.out.remark(&format!("{bytes} bytes in the middle were dropped (log limit)"));
        }
        if self.cx.out.format.is_data() {
            return self.data(label, &page.lines);
        }
        let text: String = page.lines.iter().map(|line| self.line(label, line)).collect();
        if text.is_empty() { Ok(()) } else { self.cx.out.print(&text) }
    }

    fn data(&mut self, label: &str, lines: &[LogLine]) -> Outcome<()> {
        for line in lines {
            let mut value = serde_json::to_value(line).unwrap_or_default();
            if !label.is_empty() {
                value["task"] = json!(label);
            }
            if self.stream {
                self.cx.out.print(&format!("{value}\n"))?;
            } else {
                self.kept.push(value);
            }
        }
        Ok(())
    }

    fn line(&mut self, label: &str, line: &LogLine) -> String {
        let mut text = String::new();
        if !self.open || !label.is_empty() {
            if self.timestamps {
                text.push_str(&format!("{} ", line.at));
            }
            if !label.is_empty() {
                let prefix = format!("{label} │ ");
                text.push_str(&Paint::Active.apply(&prefix, self.cx.out.colour()));
            }
        }
        if line.stream == "fencepost" {
            let remark = format!("[fencepost] {}", line.text);
            text.push_str(&Paint::Dim.apply(&remark, self.cx.out.colour()));
        } else {
            text.push_str(&line.text);
        }
        self.open = line.partial && label.is_empty();
        if !self.open {
            text.push('\n');
        }
        text
    }

    /// What is left: the array, or the end of an unfinished line.
    pub(super) fn finish(self) -> Outcome<()> {
        if self.cx.out.format.is_data() && !self.stream {
            return self.cx.out.data(&self.kept).map(|_| ());
        }
        if self.open { self.cx.out.print("\n") } else { Ok(()) }
    }
}
