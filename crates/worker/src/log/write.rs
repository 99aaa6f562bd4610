//! The writing side: framing of two byte streams, and the bounded files behind them.
//!
//! A write that fails (the disk is full, the directory is gone) costs those bytes and nothing
//! else: they are counted, a remark says so as soon as writing works again, and the task goes on.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use super::frame::{self, FRAME_MAX, Stream};
use crate::clock::{rfc3339_micros, wall_micros};
use crate::dir::AttemptDir;
use crate::reserved;

/// The batch that one write to disk carries.
const BATCH: usize = 48 << 10;
/// A bound below this is raised to it: a segment must hold a batch.
const LIMIT_MIN: u64 = 256 << 10;
/// Newer segments kept beside the head.
const TAILS: usize = 2;

/// Cuts one stream into frames.
pub(crate) struct Framer {
    stream: Stream,
    pending: Vec<u8>,
}

impl Framer {
    pub(crate) fn new(stream: Stream) -> Self {
        Self { stream, pending: Vec::new() }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn feed(&mut self, mut bytes: &[u8], log: &mut LogWriter) {
        let stamp = rfc3339_micros(wall_micros());
        while !bytes.is_empty() {
            let room = FRAME_MAX - self.pending.len();
            let window = &bytes[..bytes.len().min(room)];
            if let Some(end) = window.iter().position(|byte| *byte == b'\n') {
                self.emit(&window[..end], false, &stamp, log);
                bytes = &bytes[end + 1..];
            } else if window.len() == room {
                self.emit(window, true, &stamp, log);
                bytes = &bytes[room..];
            } else {
                self.pending.extend_from_slice(window);
                return;
            }
        }
    }

    fn emit(&mut self, bytes: &[u8], partial: bool, stamp: &str, log: &mut LogWriter) {
        if self.pending.is_empty() {
            log.frame(stamp, self.stream, partial, bytes);
        } else {
            self.pending.extend_from_slice(bytes);
            log.frame(stamp, self.stream, partial, &self.pending);
            self.pending.clear();
        }
    }

    /// True while bytes wait for the rest of their line.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Gives out the part of a line that is there: a prompt without a line end is seen live.
    pub(crate) fn flush(&mut self, log: &mut LogWriter) {
        if self.is_waiting() {
            self.emit(&[], true, &rfc3339_micros(wall_micros()), log);
        }
    }
}

/// The log files of an attempt, held by its shim.
pub(crate) struct LogWriter {
    dir: AttemptDir,
    limit: u64,
    segment: u32,
    file: Option<File>,
    size: u64,
    batch: Vec<u8>,
    tails: VecDeque<(u32, u64)>,
    dropped: u64,
    unwritten: u64,
}

impl LogWriter {
    /// Opens the head; failing to is not an error, the bytes are then counted as unwritten.
    pub(crate) fn open(dir: &AttemptDir, limit: u64) -> Self {
        let mut log = Self {
            dir: dir.clone(),
            limit: limit.max(LIMIT_MIN),
            segment: 0,
            file: None,
            size: 0,
            batch: Vec::new(),
            tails: VecDeque::new(),
            dropped: 0,
            unwritten: 0,
        };
        log.file = open_segment(dir, 0).ok();
        log.size = log.file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |m| m.len());
        log
    }

    /// A remark of the shim itself.
    pub(crate) fn remark(&mut self, text: &str) {
        frame::write_remark(&mut self.batch, text, wall_micros());
        self.write_if_large();
    }

    fn frame(&mut self, stamp: &str, stream: Stream, partial: bool, bytes: &[u8]) {
        frame::write(&mut self.batch, stamp, stream, partial, bytes);
        self.write_if_large();
    }

    fn write_if_large(&mut self) {
        if self.batch.len() >= BATCH - FRAME_MAX - 64 {
            self.write();
        }
    }

    fn segment_limit(&self) -> u64 {
        if self.segment == 0 { self.limit / 2 } else { self.limit / 4 }
    }

    /// Writes what was gathered.
    pub(crate) fn write(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        if self.size + batch.len() as u64 > self.segment_limit() {
            self.begin_segment();
        }
        if let Err(error) = self.append(&batch) {
            self.unwritten += batch.len() as u64;
            self.last_error(&error);
        }
        batch.clear();
        self.batch = batch;
    }

    fn last_error(&mut self, error: &io::Error) {
        // A file that was lost (not only full) is opened anew by the next batch.
        if error.kind() != io::ErrorKind::StorageFull {
            self.file = None;
        }
    }

    fn append(&mut self, batch: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let file = open_segment(&self.dir, self.segment)?;
            self.size = file.metadata()?.len();
            self.file = Some(file);
        }
        if self.unwritten > 0 {
            let mut remark = Vec::new();
            let text = format!("{} bytes of this log could not be written here", self.unwritten);
            frame::write_remark(&mut remark, &text, wall_micros());
            self.append_whole(&remark)?;
            self.unwritten = 0;
        }
        self.append_whole(batch)
    }

    /// All of it or nothing: half a frame would spoil the one after it.
    fn append_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        match file.write_all(bytes) {
            Ok(()) => {
                self.size += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                let _ = file.set_len(self.size);
                Err(error)
            }
        }
    }

    /// The next segment, and away with the oldest that is not the head.
    fn begin_segment(&mut self) {
        if self.segment > 0 {
            self.tails.push_back((self.segment, self.size));
        }
        while self.tails.len() >= TAILS {
            if let Some((oldest, size)) = self.tails.pop_front() {
                let _ = fs::remove_file(self.dir.log(oldest));
                self.dropped += size;
            }
        }
        self.segment += 1;
        self.file = None;
        self.size = 0;
        if self.dropped > 0 {
            let mut remark = Vec::new();
            let text = format!(
                "log limit of {} bytes reached: {} bytes dropped between the beginning and here",
                self.limit, self.dropped
            );
            frame::write_remark(&mut remark, &text, wall_micros());
            self.file = open_segment(&self.dir, self.segment).ok();
            let _ = self.append_whole(&remark);
        }
    }

    /// The last line of the log: how the attempt ended. On a full disk it goes into the room that
    /// was taken for it, as a segment of its own.
    pub(crate) fn end(&mut self, text: &str) {
        self.write();
        frame::write_remark(&mut self.batch, text, wall_micros());
        let end = std::mem::take(&mut self.batch);
        let written = self.append(&end);
        let reserved = self.dir.log_end();
        if written.is_ok() || !reserved.exists() {
            let _ = fs::remove_file(reserved);
            return;
        }
        let mut bytes = Vec::new();
        let lost = format!("{} bytes of this log could not be written here", self.unwritten);
        frame::write_remark(&mut bytes, &lost, wall_micros());
        bytes.extend_from_slice(&end);
        if reserved::fill(&reserved, &bytes).is_ok() {
            let _ = fs::rename(reserved, self.dir.log(self.segment + 1));
        }
    }
}

fn open_segment(dir: &AttemptDir, segment: u32) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o600).open(dir.log(segment))
}

/// Appends a remark to a segment, or on a full disk into the room that was taken for it.
pub(super) fn append_remark(dir: &AttemptDir, segment: u32, text: &str) {
    let mut bytes = Vec::new();
    frame::write_remark(&mut bytes, text, wall_micros());
    // The shim may have died within a frame: its line is ended first.
    let start: &[u8] = if ends_in_line_end(dir, segment) { b"" } else { b"\n" };
    let size = fs::metadata(dir.log(segment)).map_or(0, |meta| meta.len());
    let written = open_segment(dir, segment).and_then(|mut file| {
        file.write_all(&[start, &bytes].concat()).inspect_err(|_| {
            let _ = file.set_len(size);
        })
    });
    let reserved = dir.log_end();
    if written.is_err() && reserved.exists() && reserved::fill(&reserved, &bytes).is_ok() {
        let _ = fs::rename(reserved, dir.log(segment + 1));
    }
}

fn ends_in_line_end(dir: &AttemptDir, segment: u32) -> bool {
    use std::os::unix::fs::FileExt;
    let Ok(file) = File::open(dir.log(segment)) else { return true };
    let Ok(size) = file.metadata().map(|meta| meta.len()) else { return true };
    let mut last = [0u8];
    size == 0 || (file.read_exact_at(&mut last, size - 1).is_ok() && last[0] == b'\n')
}

#[cfg(test)]
mod tests {
    use super::super::read::segments;
    use super::super::{LineJoiner, LogQuery, read};
    use super::*;

    fn dir(temp: &tempfile::TempDir) -> AttemptDir {
        AttemptDir::new(temp.path())
    }

    #[test]
    fn the_head_and_the_newest_tail_are_kept_within_the_limit() {
        let temp = tempfile::tempdir().unwrap();
        let dir = dir(&temp);
        let mut log = LogWriter::open(&dir, 300 << 10);
        let mut framer = Framer::new(Stream::Stdout);
        for line in 0..100_000 {
            framer.feed(format!("line {line}\n").as_bytes(), &mut log);
        }
        log.end("ended: exited, exit code 0");
        let on_disk: u64 =
            segments(&dir).iter().map(|s| fs::metadata(dir.log(*s)).unwrap().len()).sum();
        assert!(on_disk <= 300 << 10, "{on_disk}");
        let text = all_text(&dir);
        assert!(text.starts_with("line 0\nline 1\n"));
        assert!(text.contains("bytes dropped between the beginning and here"));
        assert!(text.ends_with("line 99999\nended: exited, exit code 0\n"));
    }

    fn all_text(dir: &AttemptDir) -> String {
        let page = read(dir, &LogQuery::default()).unwrap();
        let mut joiner = LineJoiner::new(1 << 20);
        let mut lines: Vec<_> = page.frames.into_iter().filter_map(|f| joiner.push(f)).collect();
        lines.extend(joiner.flush());
        lines.iter().fold(String::new(), |text, line| text + &line.text + "\n")
    }

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_line() {
        for size in [1, 7, FRAME_MAX - 1, FRAME_MAX, FRAME_MAX + 1, 100_000] {
            let temp = tempfile::tempdir().unwrap();
            let dir = dir(&temp);
            let mut log = LogWriter::open(&dir, 1 << 20);
            let mut framer = Framer::new(Stream::Stderr);
            let line = "é".repeat(20_000);
            for chunk in format!("{line}\n").as_bytes().chunks(size) {
                framer.feed(chunk, &mut log);
            }
            assert!(!framer.is_waiting());
            log.write();
            assert_eq!(all_text(&dir), format!("{line}\n"), "chunks of {size}");
        }
    }

    #[test]
    fn a_directory_that_is_gone_costs_bytes_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path().join("a"));
        let mut log = LogWriter::open(&dir, 1 << 20);
        log.remark("lost");
        log.write();
        assert!(log.unwritten > 0);
        fs::create_dir(dir.path()).unwrap();
        log.end("kept");
        assert!(all_text(&dir).ends_with("bytes of this log could not be written here\nkept\n"));
    }

    #[test]
    fn a_remark_after_half_a_frame_is_a_line_of_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let dir = dir(&temp);
        fs::write(dir.log(0), "1970-01-01T00:00:00.000005Z stdout F whole\n1970-01-01T0").unwrap();
        super::super::append_remark(&dir, "ended: gone");
        assert_eq!(all_text(&dir), "whole\nended: gone\n");
    }
}
