//! Frames put together into lines for people.

use super::frame::{Frame, Stream};

/// One line, fit to be shown and to be sent as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// When its first part came, in microseconds since 1970.
    pub at: i64,
    /// Where it came from.
    pub stream: Stream,
    /// Colours and other control characters are kept; NUL and invalid UTF-8 are made visible.
    pub text: String,
    /// The line is longer than the bound, and this is its beginning.
    pub cut: bool,
}

/// Joins partial frames, each stream by itself, in bounded memory.
#[derive(Debug)]
pub struct LineJoiner {
    max: usize,
    open: [Option<Frame>; 3],
    cut: [bool; 3],
}

impl LineJoiner {
    /// Lines longer than `max` bytes are cut.
    pub fn new(max: usize) -> Self {
        Self { max, open: [None, None, None], cut: [false; 3] }
    }

    /// Takes the next frame; a line, if it completes one.
    pub fn push(&mut self, frame: Frame) -> Option<Line> {
        let slot = slot(frame.stream);
        let partial = frame.partial;
        let open = match &mut self.open[slot] {
            Some(open) => open,
            empty => empty.insert(Frame { bytes: Vec::new(), ..frame }),
        };
        let room = self.max.saturating_sub(open.bytes.len());
        self.cut[slot] |= frame.bytes.len() > room;
        open.bytes.extend_from_slice(&frame.bytes[..frame.bytes.len().min(room)]);
        if partial { None } else { self.take(slot) }
    }

    /// What is still open, at the end of a log or for a live view.
    pub fn flush(&mut self) -> Vec<Line> {
        (0..3).filter_map(|slot| self.take(slot)).collect()
    }

    fn take(&mut self, slot: usize) -> Option<Line> {
        let cut = std::mem::take(&mut self.cut[slot]);
        let frame = self.open[slot].take()?;
        Some(Line { at: frame.at, stream: frame.stream, text: printable(&frame.bytes), cut })
    }
}

fn slot(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
        Stream::Fencepost => 2,
    }
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{2400}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: Stream, partial: bool, bytes: &[u8]) -> Frame {
        Frame { at: 1, stream, partial, bytes: bytes.to_vec() }
    }

    #[test]
    fn parts_of_two_streams_do_not_mix() {
        let mut joiner = LineJoiner::new(100);
        assert_eq!(joiner.push(frame(Stream::Stdout, true, b"a\xc3")), None);
        assert_eq!(
            joiner.push(frame(Stream::Stderr, false, b"e\0\xff")).unwrap().text,
            "e␀\u{fffd}"
        );
        assert_eq!(joiner.push(frame(Stream::Stdout, false, b"\xa9b")).unwrap().text, "aéb");
        assert_eq!(joiner.push(frame(Stream::Stdout, true, b"prompt> ")), None);
        let rest = joiner.flush();
        assert_eq!((rest.len(), rest[0].text.as_str()), (1, "prompt> "));
    }

    #[test]
    fn a_long_line_is_cut_in_bounded_memory() {
        let mut joiner = LineJoiner::new(10);
        for _ in 0..1000 {
            assert_eq!(joiner.push(frame(Stream::Stdout, true, b"abcdef")), None);
        }
        let line = joiner.push(frame(Stream::Stdout, false, b"end")).unwrap();
        assert_eq!((line.text.as_str(), line.cut), ("abcdefabcd", true));
        assert!(!joiner.push(frame(Stream::Stdout, false, b"next")).unwrap().cut);
    }
}
