//! The reading side: from a cursor on, or the newest frames, while the log is written or after.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::str::FromStr;

use super::frame::{self, Frame, Stream};
use crate::dir::AttemptDir;

/// Bytes that one [`read`] looks at, unless the query says otherwise.
const READ_MAX: usize = 4 << 20;
/// A line of a file that is longer is no frame; it is passed over.
const LINE_MAX: usize = 64 << 10;

/// A place in a log, between two frames. It stays valid while the log grows; when its segment was
/// dropped meanwhile, reading goes on with the oldest one that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Cursor {
    segment: u32,
    offset: u64,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}

/// A text that is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a log cursor: SEGMENT:OFFSET")]
pub struct CursorError;

impl FromStr for Cursor {
    type Err = CursorError;
    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (segment, offset) = text.split_once(':').ok_or(CursorError)?;
        Ok(Self {
            segment: segment.parse().map_err(|_| CursorError)?,
            offset: offset.parse().map_err(|_| CursorError)?,
        })
    }
}

/// What to read.
#[derive(Debug, Clone, Default)]
pub struct LogQuery {
    /// Only what comes after this place; from the beginning without one.
    pub after: Option<Cursor>,
    /// Only the newest so many frames (that match `stream`), looked for within the byte bound.
    pub tail: Option<usize>,
    /// Only this stream.
    pub stream: Option<Stream>,
    /// Bytes to look at; 4 MiB without one.
    pub max_bytes: Option<usize>,
}

/// Some frames, and where to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// In the order in which they were written.
    pub frames: Vec<Frame>,
    /// Where the next read begins.
    pub next: Cursor,
    /// There was more than the byte bound: read on at once.
    pub more: bool,
}

/// Reads frames of an attempt's log. A log that does not exist (yet) is empty. Half a frame at the
/// end is left for the next read. Lines that are no frames are passed over.
pub fn read(dir: &AttemptDir, query: &LogQuery) -> io::Result<LogPage> {
    let max = query.max_bytes.unwrap_or(READ_MAX).max(LINE_MAX);
    let from = match query.tail {
        Some(_) => query.after.unwrap_or_default().max(near_end(dir, max)?),
        None => query.after.unwrap_or_default(),
    };
    let mut page = LogPage { frames: Vec::new(), next: from, more: false };
    let mut left = max;
    for segment in segments(dir).into_iter().filter(|segment| *segment >= from.segment) {
        if page.next.segment != segment {
            page.next = Cursor { segment, offset: 0 };
        }
        page.more = read_segment(dir, &mut page, query.stream, &mut left)?;
        if page.more {
            break;
        }
    }
    if let Some(count) = query.tail {
        let surplus = page.frames.len().saturating_sub(count);
        page.frames.drain(..surplus);
    }
    Ok(page)
}

/// The numbers of the segments that exist, in order.
pub(super) fn segments(dir: &AttemptDir) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(dir.path()) else { return Vec::new() };
    let mut found: Vec<u32> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name();
            match name.to_str()? {
                "log" => Some(0),
                name => name.strip_prefix("log.")?.parse().ok().filter(|n| *n > 0),
            }
        })
        .collect();
    found.sort_unstable();
    found
}

/// The place `max` bytes before the end. It may lie within a frame, which is then passed over.
fn near_end(dir: &AttemptDir, max: usize) -> io::Result<Cursor> {
    let mut left = max as u64;
    let mut place = Cursor::default();
    for segment in segments(dir).into_iter().rev() {
        let size = match fs::metadata(dir.log(segment)) {
            Ok(meta) => meta.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        place = Cursor { segment, offset: size.saturating_sub(left) };
        if size >= left {
            break;
        }
        left -= size;
    }
    Ok(place)
}

/// Reads one segment from `page.next` on; true if the byte bound ended it.
fn read_segment(
    dir: &AttemptDir,
    page: &mut LogPage,
    stream: Option<Stream>,
    left: &mut usize,
) -> io::Result<bool> {
    let mut file = match File::open(dir.log(page.next.segment)) {
        Ok(file) => file,
        // Dropped between the listing and now.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    file.seek(SeekFrom::Start(page.next.offset))?;
    let mut bytes = Vec::new();
    (&file).take(*left as u64).read_to_end(&mut bytes)?;
    let mut bounded = bytes.len() == *left && *left > 0;
    *left -= bytes.len();
    let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        // No frame is that long: pass over it, or the cursor would stand still for ever.
        None if bytes.len() >= LINE_MAX => bytes.len(),
        None => 0,
    };
    if *left == 0 && !bounded {
        bounded = file.metadata()?.len() > page.next.offset;
    }
    page.next.offset += whole as u64;
    let lines = bytes[..whole].split(|byte| *byte == b'\n');
    page.frames.extend(lines.filter_map(frame::parse).filter(|frame| matches(frame, stream)));
    Ok(bounded)
}

fn matches(frame: &Frame, stream: Option<Stream>) -> bool {
    stream.is_none_or(|stream| frame.stream == stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &AttemptDir, segment: u32, lines: std::ops::Range<u32>) {
        let text = lines.fold(String::new(), |text, n| {
            let stream = if n % 2 == 0 { "stdout" } else { "stderr" };
            text + &format!("1970-01-01T00:00:00.{n:06}Z {stream} F line {n}\n")
        });
        fs::write(dir.log(segment), text).unwrap();
    }

    fn numbers(page: &LogPage) -> Vec<i64> {
        page.frames.iter().map(|frame| frame.at).collect()
    }

    #[test]
    fn a_cursor_goes_on_where_it_stopped_also_over_dropped_segments() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path());
        assert_eq!(read(&dir, &LogQuery::default()).unwrap().frames, []);
        write(&dir, 0, 0..3);
        let first = read(&dir, &LogQuery::default()).unwrap();
        assert_eq!(numbers(&first), [0, 1, 2]);
        write(&dir, 1, 3..5);
        let after = |cursor| LogQuery { after: Some(cursor), ..LogQuery::default() };
        let second = read(&dir, &after(first.next)).unwrap();
        assert_eq!(numbers(&second), [3, 4]);
        fs::remove_file(dir.log(1)).unwrap();
        write(&dir, 2, 5..7);
        write(&dir, 3, 7..9);
        let third = read(&dir, &after(second.next)).unwrap();
        assert_eq!(numbers(&third), [5, 6, 7, 8]);
        assert_eq!(third.next.to_string().parse(), Ok(third.next));
        assert_eq!(read(&dir, &after(third.next)).unwrap().frames, []);
    }

    #[test]
    fn half_a_frame_is_left_for_the_next_read() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path());
        let frame = "1970-01-01T00:00:00.000001Z stdout F whole\n";
        fs::write(dir.log(0), format!("{frame}{}", &frame[..30])).unwrap();
        let first = read(&dir, &LogQuery::default()).unwrap();
        assert_eq!(first.frames.len(), 1);
        fs::write(dir.log(0), format!("{frame}{frame}")).unwrap();
        let query = LogQuery { after: Some(first.next), ..LogQuery::default() };
        assert_eq!(read(&dir, &query).unwrap().frames.len(), 1);
    }

    #[test]
    fn tail_and_stream_choose_the_newest_of_one_stream() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path());
        write(&dir, 0, 0..10);
        write(&dir, 2, 10..20);
        let query = LogQuery { tail: Some(6), stream: Some(Stream::Stdout), ..LogQuery::default() };
        assert_eq!(numbers(&read(&dir, &query).unwrap()), [8, 10, 12, 14, 16, 18]);
    }

    #[test]
    fn a_bounded_read_says_that_there_is_more_and_the_rest_follows() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path());
        write(&dir, 0, 0..4_000);
        write(&dir, 1, 4_000..5_000);
        let mut query = LogQuery { max_bytes: Some(LINE_MAX), ..LogQuery::default() };
        let mut seen = Vec::new();
        loop {
            let page = read(&dir, &query).unwrap();
            seen.extend(numbers(&page));
            query.after = Some(page.next);
            if !page.more {
                break;
            }
        }
        assert_eq!(seen, (0..5_000).collect::<Vec<i64>>());
    }

    #[test]
    fn a_line_that_is_no_frame_never_stops_the_reader() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path());
        let good = "\n1970-01-01T00:00:00.000001Z stdout F good\n";
        fs::write(dir.log(0), format!("{}{good}", "x".repeat(3 * LINE_MAX))).unwrap();
        let mut query = LogQuery { max_bytes: Some(LINE_MAX), ..LogQuery::default() };
        let mut found = 0;
        for _ in 0..5 {
            let page = read(&dir, &query).unwrap();
            found += page.frames.len();
            query.after = Some(page.next);
        }
        assert_eq!(found, 1);
    }
}
