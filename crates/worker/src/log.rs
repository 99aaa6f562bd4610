//! The log of one attempt: what the task wrote, framed, bounded, readable while it is written.
//!
//! One frame a line, in the log format of the Kubernetes CRI:
//! `2026-11-30T08:00:00.123456Z stdout F bytes`. `P` instead of `F` marks a part of a line whose
//! rest follows. The stream `fencepost` holds the shim's own remarks; the last line of every log
//! is one of them and says how the attempt ended.
//!
//! On disk the log is a head (`log`) that is kept for good and up to two newer segments
//! (`log.1`, `log.2`, ...): when a new one begins, the oldest of them goes, and a remark says how
//! much was dropped. Bytes are stored as they came; only readers make them fit for people.

mod frame;
mod lines;
mod raw;
mod read;
mod write;

pub use frame::{Frame, Stream};
pub use lines::{Line, LineJoiner};
pub use raw::{Raw, near_end, read_raw};
pub use read::{Cursor, LogPage, LogQuery, read};
pub(crate) use write::{Framer, LogWriter};

use crate::dir::AttemptDir;

/// The frames in some whole lines of a log; what is no frame is passed over.
pub fn parse(bytes: &[u8]) -> Vec<Frame> {
    bytes.split(|byte| *byte == b'\n').filter_map(frame::parse).collect()
}

/// Adds a remark to the log of an attempt whose shim is gone: the caller holds its lock.
pub(crate) fn append_remark(dir: &AttemptDir, text: &str) {
    let segment = read::segments(dir).last().copied().unwrap_or(0);
    write::append_remark(dir, segment, text);
}
