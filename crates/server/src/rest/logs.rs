//! Logs of attempts, read from whoever keeps them, by page and as a long poll.
//!
//! A source reads frames from a place on; its places lie between reads of it. A page holds as many
//! lines as were asked for, so its cursor is a place of the source and how many frames after it were
//! looked at already: a log only grows, so a second read from the same place gives the same frames.

use super::answer::{Answer, Done};
use super::call::{Call, instant};
use super::failure::Failure;
use super::{attempts, cursor};
use fencepost_api::problem::ProblemCode;
use fencepost_api::rest::{self, LogLine, LogQuery};
use fencepost_core::state::AttemptState;
use fencepost_core::time::Timestamp;
use fencepost_store::query::attempt::Attempt;
use regex::{Regex, RegexBuilder};
use std::sync::Arc;

/// Lines of a page.
const LINES: u32 = 1_000;
const LINES_MAX: u32 = 10_000;
/// Bytes that one read of the source looks at.
const READ_MAX: usize = 256 << 10;
/// Reads for one page: a filter that passes little ends the page early, to be gone on with.
const READS: usize = 64;
/// Bytes that a filtered tail is looked for in.
const TAIL_MAX: usize = 4 << 20;
const PATTERN_MAX: usize = 1_000;
const PATTERN_SIZE: usize = 1 << 20;

/// One piece of a log: a line, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFrame {
    pub at: Timestamp,
    /// `stdout`, `stderr`, `fencepost`.
    pub stream: String,
    /// NUL and invalid UTF-8 made printable.
    pub text: String,
    /// The line goes on in the next frame of its stream.
    pub partial: bool,
    /// It came after the attempt was ended by somebody else than its worker.
    pub late: bool,
}

/// What a source reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogQueryArgs {
    /// A place that the source gave, `SEGMENT:OFFSET`; `None`: the beginning.
    pub cursor: Option<String>,
    /// Only the newest so many frames.
    pub tail: Option<usize>,
    /// Bytes to look at.
    pub max_bytes: usize,
}

/// What a source gives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPage {
    pub frames: Vec<LogFrame>,
    /// Where the next read begins.
    pub next_cursor: String,
    /// There was more than the byte bound: read on at once.
    pub more: bool,
    /// Bytes in the middle that were dropped because the log is over its limit.
    pub dropped_bytes: u64,
}

/// Where the logs of attempts are.
pub trait LogSource: Send + Sync {
    /// Reads frames of the attempt with that token (decimal), from a place on. A log that is not
    /// there (yet) is empty. May block on files: it is called where that is allowed.
    fn read(&self, token: &str, query: LogQueryArgs) -> Result<LogPage, String>;
}

/// A place in a log as the wire has it: the source's, and frames after it that were looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place {
    base: Option<String>,
    passed: usize,
}

impl Place {
    fn read(text: Option<&str>) -> Result<Self, Failure> {
        let Some(text) = text else { return Ok(Self::default()) };
        let wrong = || Failure::new(ProblemCode::BadRequest, "?cursor: not a cursor of a log");
        let (base, passed) = text.split_once('.').unwrap_or((text, "0"));
        let (segment, offset) = base.split_once(':').ok_or_else(wrong)?;
        let sound = segment.parse::<u32>().is_ok() && offset.parse::<u64>().is_ok();
        let passed = passed.parse().map_err(|_| wrong())?;
        if sound { Ok(Self { base: Some(base.into()), passed }) } else { Err(wrong()) }
    }

    fn write(&self) -> String {
        let base = self.base.as_deref().unwrap_or("0:0");
        if self.passed == 0 { base.into() } else { format!("{base}.{}", self.passed) }
    }
}

/// What a reader wants to see.
#[derive(Debug, Clone)]
struct Wanted {
    limit: usize,
    tail: Option<usize>,
    since: Option<Timestamp>,
    grep: Option<Regex>,
    late: bool,
}

impl Wanted {
    fn of(query: &LogQuery) -> Result<Self, Failure> {
        Ok(Self {
            limit: cursor::count(query.limit.unwrap_or(LINES).clamp(1, LINES_MAX)),
            tail: query.tail.filter(|_| query.cursor.is_none()).map(cursor::count),
            since: instant("since", query.since.as_deref())?,
            grep: query.grep.as_deref().map(pattern).transpose()?,
            late: query.late.unwrap_or(false),
        })
    }

    fn has(&self, frame: &LogFrame, ended_at: Option<Timestamp>) -> bool {
        // What an attempt wrote after its end: nothing, as long as it has none.
        let is_late = frame.late || (self.late && ended_at.is_some_and(|end| frame.at > end));
        is_late == self.late
            && self.since.is_none_or(|since| frame.at >= since)
            && self.grep.as_ref().is_none_or(|pattern| pattern.is_match(&frame.text))
    }

    fn line(&self, frame: LogFrame) -> LogLine {
        // Of a line that was filtered by its parts, no rest is promised.
        let partial = frame.partial && self.grep.is_none();
        LogLine { at: frame.at.to_string(), stream: frame.stream, text: frame.text, partial }
    }
}

fn pattern(text: &str) -> Result<Regex, Failure> {
    if text.len() > PATTERN_MAX {
        return Err(Failure::field("?grep", format!("at most {PATTERN_MAX} bytes")));
    }
    let built = RegexBuilder::new(text).size_limit(PATTERN_SIZE).build();
    built.map_err(|error| Failure::field("?grep", error.to_string()))
}

pub(super) async fn show(call: &Call) -> Done {
    let query: LogQuery = call.query()?;
    let wanted = Arc::new(Wanted::of(&query)?);
    let place = Place::read(query.cursor.as_deref())?;
    let token = {
        let tx = call.read().await?;
        attempts::find(&tx, call.arg(0)).await?.token
    };
    let name = token.as_i64().to_string();
    let page = call
        .poll(query.wait_ms, false, || async {
            // The end is looked for before the log is read, so that what it ends with is in it.
            let attempt = {
                let tx = call.read().await?;
                attempts::find(&tx, &name).await?
            };
            let page = read(call, &attempt, &wanted, place.clone()).await?;
            let worth = !page.lines.is_empty() || page.more || page.ended;
            Ok((page, worth))
        })
        .await?;
    Answer::ok(&page)
}

async fn read(
    call: &Call,
    attempt: &Attempt,
    wanted: &Arc<Wanted>,
    place: Place,
) -> Result<rest::LogPage, Failure> {
    let last = Arc::clone(wanted);
    let (source, wanted) = (Arc::clone(&call.server.state.logs), Arc::clone(wanted));
    let (token, ended_at) = (attempt.token.as_i64().to_string(), attempt.ended_at);
    let reading = tokio::task::spawn_blocking(move || {
        let log = Log { source: source.as_ref(), token: &token, wanted: &wanted, ended_at };
        if let Some(tail) = wanted.tail { log.tail(tail) } else { log.page(place) }
    });
    let internal = |text: String| Failure::new(ProblemCode::Internal, text);
    let read = reading.await.map_err(|error| internal(error.to_string()))?;
    let mut page = read.map_err(|why| internal(format!("the log cannot be read: {why}")))?;
    page.ended = attempt.state == AttemptState::Ended && !page.more;
    if page.ended {
        let words = last_words(attempt).filter(|frame| last.has(frame, None));
        page.lines.extend(words.map(|frame| last.line(frame)));
    }
    Ok(page)
}

/// How the log of an attempt ends whose worker said nothing about it (I21).
fn last_words(attempt: &Attempt) -> Option<LogFrame> {
    let evidence: serde_json::Value = serde_json::from_str(attempt.evidence.as_deref()?).ok()?;
    let kind = evidence.get("kind")?.as_str()?;
    if !matches!(kind, "expiry" | "person" | "executor") {
        return None;
    }
    let outcome = attempt.outcome.map_or("ended", fencepost_core::state::Outcome::as_str);
    let reason = attempt.reason.as_deref().unwrap_or(kind);
    Some(LogFrame {
        at: attempt.ended_at?,
        stream: "fencepost".into(),
        text: format!("{outcome}: {reason} (known by {kind}); its worker said nothing of an end"),
        partial: false,
        late: false,
    })
}

/// The log of one attempt, as one reader sees it.
struct Log<'a> {
    source: &'a dyn LogSource,
    token: &'a str,
    wanted: &'a Wanted,
    ended_at: Option<Timestamp>,
}

impl Log<'_> {
    /// Lines from a place on.
    fn page(&self, mut place: Place) -> Result<rest::LogPage, String> {
        let mut lines = Vec::new();
        let mut dropped_bytes = 0;
        for _ in 0..READS {
            let args = LogQueryArgs { cursor: place.base.clone(), tail: None, max_bytes: READ_MAX };
            let read = self.source.read(self.token, args)?;
            dropped_bytes = read.dropped_bytes;
            let total = read.frames.len();
            for frame in read.frames.into_iter().skip(place.passed) {
                if lines.len() == self.wanted.limit {
                    return Ok(page(lines, &place, true, dropped_bytes));
                }
                place.passed += 1;
                if self.wanted.has(&frame, self.ended_at) {
                    lines.push(self.wanted.line(frame));
                }
            }
            if read.more || place.passed >= total {
                place = Place { base: Some(read.next_cursor), passed: 0 };
            }
            if !read.more {
                return Ok(page(lines, &place, false, dropped_bytes));
            }
        }
        Ok(page(lines, &place, true, dropped_bytes))
    }

    /// The last lines.
    fn tail(&self, count: usize) -> Result<rest::LogPage, String> {
        let count = count.min(self.wanted.limit);
        let plain = self.wanted.since.is_none() && self.wanted.grep.is_none() && !self.wanted.late;
        let tail = if plain { count } else { usize::MAX };
        let args = LogQueryArgs { cursor: None, tail: Some(tail), max_bytes: TAIL_MAX };
        let mut read = self.source.read(self.token, args)?;
        read.frames.retain(|frame| self.wanted.has(frame, self.ended_at));
        let surplus = read.frames.len().saturating_sub(count);
        let lines = read.frames.drain(surplus..).map(|frame| self.wanted.line(frame)).collect();
        let place = Place { base: Some(read.next_cursor), passed: 0 };
        Ok(page(lines, &place, read.more, read.dropped_bytes))
    }
}

fn page(lines: Vec<LogLine>, place: &Place, more: bool, dropped_bytes: u64) -> rest::LogPage {
    rest::LogPage { lines, next_cursor: place.write(), more, ended: false, dropped_bytes }
}
