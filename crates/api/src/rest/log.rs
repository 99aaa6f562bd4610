//! The log of an attempt.

use super::Time;
use serde::{Deserialize, Serialize};

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    pub at: Time,
    /// `stdout`, `stderr`, or `fencepost` for remarks of ours.
    pub stream: String,
    /// Without its end; NUL and invalid UTF-8 made printable.
    pub text: String,
    /// The line goes on in the next item (it was longer than a frame, or is not finished).
    #[serde(default)]
    pub partial: bool,
}

/// `GET /attempts/{attempt}/log`, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    pub lines: Vec<LogLine>,
    /// Where to go on reading; always there.
    pub next_cursor: String,
    /// More is there already.
    pub more: bool,
    /// The attempt has ended and this page reaches the end of its log.
    pub ended: bool,
    /// Bytes in the middle that were dropped because the log is over its limit.
    #[serde(default)]
    pub dropped_bytes: u64,
}

/// The query of [`LogPage`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogQuery {
    /// Most lines of a page; default 1,000, at most 10,000.
    pub limit: Option<u32>,
    /// From a page before; null: from the start.
    pub cursor: Option<String>,
    /// Without a cursor: only the last that many lines.
    pub tail: Option<u32>,
    /// Lines from this instant on.
    pub since: Option<Time>,
    /// Lines that match this regular expression (Rust's syntax).
    pub grep: Option<String>,
    /// What came after the attempt was superseded, instead of its log.
    pub late: Option<bool>,
    /// Long poll: with nothing new, wait that long for more; at most 30,000.
    pub wait_ms: Option<u32>,
}
