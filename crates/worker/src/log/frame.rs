//! One line of a log file.

use crate::clock::{parse_rfc3339_micros, rfc3339_micros};

/// Bytes of content in one frame at most.
pub(super) const FRAME_MAX: usize = 16 << 10;

/// Where a frame came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// The task's standard output.
    Stdout,
    /// The task's standard error.
    Stderr,
    /// Remarks of the shim.
    Fencepost,
}

impl Stream {
    /// The word in the frame.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Fencepost => "fencepost",
        }
    }

    fn parse(word: &[u8]) -> Option<Self> {
        [Self::Stdout, Self::Stderr, Self::Fencepost]
            .into_iter()
            .find(|stream| stream.as_str().as_bytes() == word)
    }
}

/// One frame, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Microseconds since 1970 on the host's clock.
    pub at: i64,
    /// Where it came from.
    pub stream: Stream,
    /// The line goes on in the next frame of this stream.
    pub partial: bool,
    /// The content, without the line end.
    pub bytes: Vec<u8>,
}

/// Appends one frame to `out`.
pub(super) fn write(out: &mut Vec<u8>, stamp: &str, stream: Stream, partial: bool, bytes: &[u8]) {
    out.extend_from_slice(stamp.as_bytes());
    out.push(b' ');
    out.extend_from_slice(stream.as_str().as_bytes());
    out.extend_from_slice(if partial { b" P " } else { b" F " });
    out.extend_from_slice(bytes);
    out.push(b'\n');
}

/// Appends a remark; a line end within it would end the frame, so it becomes a space.
pub(super) fn write_remark(out: &mut Vec<u8>, text: &str, at: i64) {
    let text = text.replace(['\n', '\r', '\0'], " ");
    let mut end = text.len().min(FRAME_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    write(out, &rfc3339_micros(at), Stream::Fencepost, false, &text.as_bytes()[..end]);
}

/// Reads one line (without its line end). `None` for a line that no frame looks like.
pub(super) fn parse(line: &[u8]) -> Option<Frame> {
    let mut fields = line.splitn(4, |byte| *byte == b' ');
    let at = parse_rfc3339_micros(std::str::from_utf8(fields.next()?).ok()?)?;
    let stream = Stream::parse(fields.next()?)?;
    let partial = match fields.next()? {
        b"P" => true,
        b"F" => false,
        _ => return None,
    };
    Some(Frame { at, stream, partial, bytes: fields.next()?.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        let mut out = Vec::new();
        write(&mut out, &rfc3339_micros(5), Stream::Stderr, true, b"a \xff\0 b");
        let line = out.strip_suffix(b"\n").unwrap();
        let frame =
            Frame { at: 5, stream: Stream::Stderr, partial: true, bytes: b"a \xff\0 b".to_vec() };
        assert_eq!(parse(line), Some(frame));
        for broken in ["", "x", "1970-01-01T00:00:00.000005Z stdout F", "now stdout F x"] {
            assert_eq!(parse(broken.as_bytes()), None, "{broken}");
        }
    }

    #[test]
    fn a_remark_is_one_line_of_bounded_size() {
        let mut out = Vec::new();
        write_remark(&mut out, &format!("a\nb\r\0{}", "é".repeat(FRAME_MAX)), 0);
        assert_eq!(out.iter().position(|byte| *byte == b'\n'), Some(out.len() - 1));
        assert!(out.len() < FRAME_MAX + 64);
    }
}
