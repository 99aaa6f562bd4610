//! Logs of attempts, read from the home by whichever process serves it.

use fencepost_core::time::Timestamp;
use fencepost_server::rest::{LogFrame, LogPage, LogQueryArgs, LogSource};
use fencepost_worker::log::{Cursor, Frame, LogQuery, read};
use fencepost_worker::supervisor::log_dir;
use std::path::PathBuf;

/// The logs below a home.
pub(super) struct HomeLogs(pub(super) PathBuf);

impl LogSource for HomeLogs {
    fn read(&self, token: &str, query: LogQueryArgs) -> Result<LogPage, String> {
        let after: Option<Cursor> = match &query.cursor {
            Some(text) => Some(text.parse().map_err(|_| format!("`{text}` is no place in a log"))?),
            None => None,
        };
        let query =
            LogQuery { after, tail: query.tail, stream: None, max_bytes: Some(query.max_bytes) };
        let page = read(&log_dir(&self.0, token), &query).map_err(|error| error.to_string())?;
        Ok(LogPage {
            frames: page.frames.into_iter().map(frame).collect(),
            next_cursor: page.next.to_string(),
            more: page.more,
            dropped_bytes: 0,
        })
    }
}

fn frame(frame: Frame) -> LogFrame {
    LogFrame {
        at: Timestamp::from_micros(frame.at),
        stream: frame.stream.as_str().into(),
        text: String::from_utf8_lossy(&frame.bytes).replace('\0', "\u{2400}"),
        partial: frame.partial,
    }
}
