//! Checkpoints: a small file of a task that is kept in the store, for the attempt that follows.
//!
//! A file is read again when it has changed; on the wire and in the store it is hexadecimal, since
//! its bytes are the task's own.

use crate::dir::AttemptDir;
use std::collections::BTreeMap;
use std::io::Read;
use std::time::SystemTime;

/// Largest checkpoint in bytes.
const MAX: u64 = 256 << 10;

/// Which state of its file was sent, by token.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeMap<String, (u64, Option<SystemTime>)>);

impl Seen {
    /// The content of a checkpoint that has changed since it was looked at last, in hexadecimal.
    /// One that is larger than the limit is none.
    pub(super) fn look(&mut self, token: &str, dir: &AttemptDir) -> Option<String> {
        let path = super::work::checkpoint_out(dir);
        let meta = std::fs::metadata(&path).ok().filter(|meta| meta.is_file())?;
        let stamp = (meta.len(), meta.modified().ok());
        if meta.len() > MAX || self.0.get(token) == Some(&stamp) {
            return None;
        }
        let mut content = Vec::new();
        std::fs::File::open(path).ok()?.take(MAX).read_to_end(&mut content).ok()?;
        self.0.insert(token.to_owned(), stamp);
        Some(content.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
    }

    /// Forgets those that are over.
    pub(super) fn keep(&mut self, tokens: &[String]) {
        self.0.retain(|token, _| tokens.contains(token));
    }
}

/// The bytes of a checkpoint; `None` if the text is not hexadecimal.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect::<Option<Vec<u8>>>()
        .filter(|_| digits.len().is_multiple_of(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_sent_when_it_changes_and_reads_back() {
        let temp = tempfile::tempdir().unwrap();
        let dir = AttemptDir::new(temp.path());
        std::fs::create_dir(dir.io()).unwrap();
        let mut seen = Seen::default();
        assert_eq!(seen.look("1", &dir), None);
        std::fs::write(super::super::work::checkpoint_out(&dir), b"page=\x00\xff").unwrap();
        let sent = seen.look("1", &dir).unwrap();
        assert_eq!(decode(&sent).unwrap(), b"page=\x00\xff");
        assert_eq!(seen.look("1", &dir), None, "unchanged");
        seen.keep(&[]);
        assert_eq!(seen.look("1", &dir), Some(sent));
        assert_eq!((decode("0"), decode("zz")), (None, None));
    }
}
