//! The bytes of a log as they lie on the disk, from a place on: what is sent to a server.

use super::read::segments;
use crate::dir::AttemptDir;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Whole lines of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Raw {
    pub segment: u32,
    /// Bytes of the segment before these.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

/// Up to `most` bytes from a place (segment, offset) on, cut at the end of a line; empty if there is
/// nothing beyond it yet. A segment that was dropped meanwhile is passed over.
pub fn read_raw(dir: &AttemptDir, from: (u32, u64), most: usize) -> io::Result<Raw> {
    let mut place = from;
    for segment in segments(dir).into_iter().filter(|segment| *segment >= from.0) {
        if segment != place.0 {
            place = (segment, 0);
        }
        let bytes = match lines(dir, place, most) {
            Ok(bytes) => bytes,
            // Dropped between the listing and now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if !bytes.is_empty() {
            return Ok(Raw { segment: place.0, offset: place.1, bytes });
        }
    }
    Ok(Raw { segment: place.0, offset: place.1, bytes: Vec::new() })
}

fn lines(dir: &AttemptDir, (segment, offset): (u32, u64), most: usize) -> io::Result<Vec<u8>> {
    let mut file = File::open(dir.log(segment))?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    (&file).take(most as u64).read_to_end(&mut bytes)?;
    let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
        Some(end) => end + 1,
        // No line of ours is that long: it is passed on as it is, or nothing would come after it.
        None if bytes.len() >= most => bytes.len(),
        None => 0,
    };
    bytes.truncate(whole);
    Ok(bytes)
}

/// The place about `most` bytes before the end.
pub fn near_end(dir: &AttemptDir, most: u64) -> io::Result<(u32, u64)> {
    let Some(last) = segments(dir).last().copied() else { return Ok((0, 0)) };
    let size = std::fs::metadata(dir.log(last))?.len();
    Ok((last, size.saturating_sub(most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_read_on_over_segments_and_half_ones_are_left() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path());
        let raw = |from, most| read_raw(&dir, from, most).unwrap();
        assert_eq!(raw((0, 0), 99).bytes, b"");
        std::fs::write(dir.log(0), "one\ntwo\nhal").unwrap();
        assert_eq!(raw((0, 0), 99).bytes, b"one\ntwo\n");
        assert_eq!(raw((0, 0), 5).bytes, b"one\n");
        assert_eq!(raw((0, 8), 99).bytes, b"");
        std::fs::write(dir.log(0), "one\ntwo\nhalf\n").unwrap();
        std::fs::write(dir.log(3), "later\n").unwrap();
        let half = Raw { segment: 0, offset: 8, bytes: b"half\n".to_vec() };
        assert_eq!(raw((0, 8), 99), half);
        let later = Raw { segment: 3, offset: 0, bytes: b"later\n".to_vec() };
        assert_eq!((raw((0, 13), 99), raw((1, 7), 99)), (later.clone(), later));
        assert_eq!(raw((3, 6), 99), Raw { segment: 3, offset: 6, bytes: Vec::new() });
        assert_eq!(near_end(&dir, 4).unwrap(), (3, 2));
        std::fs::write(dir.log(3), "x".repeat(50)).unwrap();
        assert_eq!(raw((3, 0), 20).bytes.len(), 20, "a line longer than a piece goes on");
    }
}
