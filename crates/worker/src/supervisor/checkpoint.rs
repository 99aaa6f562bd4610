//! Checkpoints: a small file of a task that is kept in the store, for the attempt that follows.
//!
//! A file is read again when it has changed; on the wire and in the store it is hexadecimal, since
//! its bytes are the task's own.

use crate::attempt::{AttemptHost, FromTask, Stamp};
use std::collections::BTreeMap;

/// Largest checkpoint in bytes.
const MAX: u64 = 256 << 10;

/// Which state of its file was sent, by token.
#[derive(Debug, Default)]
pub(super) struct Seen(BTreeMap<String, Stamp>);

impl Seen {
    /// The content of a checkpoint that has changed since it was looked at last, in hexadecimal.
    /// One that is larger than the limit is none.
    pub(super) fn look(
        &mut self,
        host: &dyn AttemptHost,
        token: &str,
        name: &str,
    ) -> Option<String> {
        let stamp = host.stamp(name, FromTask::Checkpoint)?;
        if stamp.0 > MAX || self.0.get(token) == Some(&stamp) {
            return None;
        }
        let content = host.read_file(name, FromTask::Checkpoint, MAX)?;
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
    use crate::attempt::{HomeBoot, OsHost};

    #[test]
    fn a_checkpoint_is_sent_when_it_changes_and_reads_back() {
        let temp = tempfile::tempdir().unwrap();
        let host = OsHost::new(temp.path(), "shim", Vec::new(), HomeBoot::Same).unwrap();
        let dir = host.dir("7");
        std::fs::create_dir_all(dir.io()).unwrap();
        let mut seen = Seen::default();
        assert_eq!(seen.look(&host, "1", "7"), None);
        std::fs::write(FromTask::Checkpoint.path(&dir), b"page=\x00\xff").unwrap();
        let sent = seen.look(&host, "1", "7").unwrap();
        assert_eq!(decode(&sent).unwrap(), b"page=\x00\xff");
        assert_eq!(seen.look(&host, "1", "7"), None, "unchanged");
        seen.keep(&[]);
        assert_eq!(seen.look(&host, "1", "7"), Some(sent));
        assert_eq!((decode("0"), decode("zz")), (None, None));
    }
}
