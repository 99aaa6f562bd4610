//! Logs of attempts: of a standalone from its home, else from what workers have sent to the store.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fencepost_core::id::Token;
use fencepost_core::time::Timestamp;
use fencepost_server::rest::{LogFrame, LogPage, LogQueryArgs, LogSource};
use fencepost_store::query::attempt_log::{self, Piece};
use fencepost_store::{Store, StoreError};
use fencepost_worker::log::{Cursor, Frame, LogQuery, parse, read};
use fencepost_worker::supervisor::log_dir;
use std::path::PathBuf;
use tokio::runtime::Handle;

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
            frames: page.frames.into_iter().map(|found| frame(found, false)).collect(),
            next_cursor: page.next.to_string(),
            more: page.more,
            dropped_bytes: 0,
        })
    }
}

/// Pieces of a log that are read from the store at once.
const PIECES: u32 = 64;

/// The logs that workers have sent.
pub(crate) struct StoreLogs {
    store: Store,
    /// Sources are read where blocking is allowed, and the store is asked on this.
    runtime: Handle,
}

impl StoreLogs {
    /// On the runtime that it is called on.
    pub(crate) fn new(store: Store) -> Self {
        Self { store, runtime: Handle::current() }
    }

    async fn pieces(
        &self,
        token: Token,
        from: (u32, u64),
        tail: bool,
    ) -> Result<Vec<Piece>, StoreError> {
        let tx = self.store.read("read_log").await?;
        if !tail {
            return attempt_log::from(&tx, token, from, PIECES).await;
        }
        let mut newest = attempt_log::newest(&tx, token, PIECES).await?;
        newest.reverse();
        Ok(newest)
    }
}

impl LogSource for StoreLogs {
    fn read(&self, token: &str, query: LogQueryArgs) -> Result<LogPage, String> {
        let token: Token = token.parse().map_err(|_| format!("`{token}` is no token"))?;
        let from = match &query.cursor {
            Some(text) => place(text).ok_or_else(|| format!("`{text}` is no place in a log"))?,
            None => (0, 0),
        };
        let tail = query.tail.is_some();
        let reading = self.pieces(token, from, tail);
        let pieces = self.runtime.block_on(reading).map_err(|error| error.to_string())?;
        let more = !tail && pieces.len() == PIECES as usize;
        let mut page = cut(&pieces, from)?;
        if let Some(count) = query.tail {
            let surplus = page.frames.len().saturating_sub(count);
            page.frames.drain(..surplus);
        }
        page.more = more;
        Ok(page)
    }
}

fn place(text: &str) -> Option<(u32, u64)> {
    let (segment, offset) = text.split_once(':')?;
    Some((segment.parse().ok()?, offset.parse().ok()?))
}

/// The frames in some pieces beyond a place. Pieces end with whole lines.
fn cut(pieces: &[Piece], from: (u32, u64)) -> Result<LogPage, String> {
    let mut page = LogPage { next_cursor: format!("{}:{}", from.0, from.1), ..LogPage::default() };
    for piece in pieces {
        let bytes = STANDARD.decode(&piece.content).map_err(|error| error.to_string())?;
        let passed = if piece.segment == from.0 { from.1.saturating_sub(piece.offset) } else { 0 };
        let passed = usize::try_from(passed).unwrap_or(usize::MAX).min(bytes.len());
        page.frames
            .extend(parse(&bytes[passed..]).into_iter().map(|found| frame(found, piece.late)));
        let (segment, offset) = piece.end();
        page.next_cursor = format!("{segment}:{offset}");
    }
    Ok(page)
}

fn frame(frame: Frame, late: bool) -> LogFrame {
    LogFrame {
        at: Timestamp::from_micros(frame.at),
        stream: frame.stream.as_str().into(),
        text: String::from_utf8_lossy(&frame.bytes).replace('\0', "\u{2400}"),
        partial: frame.partial,
        late,
    }
}
