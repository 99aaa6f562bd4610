//! Secrets taken out of a stream of bytes, wherever its pieces are cut.
//!
//! What may be the beginning of a secret is held back until it is known whether it is one: at most one byte
//! less than the longest of them, and only while nothing more comes. It is given out at the end.

use std::borrow::Cow;

/// What stands in a secret's place.
const MASK: &[u8] = b"***";

/// A whole text without these.
pub(crate) fn masked(secrets: &[String], text: &str) -> String {
    let mut masker = Masker::new(secrets);
    let mut shown = masker.feed(text.as_bytes()).into_owned();
    shown.extend(masker.finish());
    String::from_utf8_lossy(&shown).into_owned()
}

/// Hides texts in one stream.
#[derive(Debug, Clone)]
pub(crate) struct Masker {
    /// Longest first: of two that begin alike the longer one is hidden whole.
    secrets: Vec<Vec<u8>>,
    /// Whether a secret begins with that byte.
    begins: [bool; 256],
    held: Vec<u8>,
}

impl Masker {
    pub(crate) fn new(secrets: &[String]) -> Self {
        let texts = secrets.iter().map(|secret| secret.as_bytes().to_vec());
        let mut secrets: Vec<Vec<u8>> = texts.filter(|secret| !secret.is_empty()).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let mut begins = [false; 256];
        for secret in &secrets {
            begins[usize::from(secret[0])] = true;
        }
        Self { secrets, begins, held: Vec::new() }
    }

    /// The next bytes of the stream, without secrets.
    pub(crate) fn feed<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.secrets.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(bytes);
        Cow::Owned(self.hide(&text, false))
    }

    /// What was held back, at the end of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let text = std::mem::take(&mut self.held);
        self.hide(&text, true)
    }

    fn hide(&mut self, text: &[u8], is_end: bool) -> Vec<u8> {
        let mut shown = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if !self.begins[usize::from(rest[0])] {
                shown.push(rest[0]);
                at += 1;
                continue;
            }
            // A longer one may be under way: nothing is decided before it is known.
            let may_grow =
                |secret: &&Vec<u8>| secret.len() > rest.len() && secret.starts_with(rest);
            if !is_end && self.secrets.iter().any(|secret| may_grow(&secret)) {
                self.held = rest.to_vec();
                break;
            }
            let hidden = self.secrets.iter().find(|secret| rest.starts_with(secret));
            if let Some(secret) = hidden {
                shown.extend_from_slice(MASK);
                at += secret.len();
            } else {
                shown.push(rest[0]);
                at += 1;
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use fencepost_core::connection::Connection;
    use fencepost_core::kept::hidden;

    fn in_pieces(secrets: &[&str], text: &str, size: usize) -> String {
        let secrets: Vec<String> = secrets.iter().map(ToString::to_string).collect();
        let mut masker = Masker::new(&secrets);
        let mut out = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            out.extend_from_slice(&masker.feed(piece));
        }
        out.extend(masker.finish());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_secret_is_hidden_however_the_stream_is_cut() {
        let secrets = ["hunter22", "hunter", "line one\nline two", "aab"];
        let text = "x hunter22y hunter hunte\n[line one\nline two] aaab line one\nline";
        let shown = "x ***y *** hunte\n[***] a*** line one\nline";
        for size in 1..=text.len() {
            assert_eq!(in_pieces(&secrets, text, size), shown, "pieces of {size}");
        }
        assert_eq!(in_pieces(&[], text, 3), text);
        assert_eq!(in_pieces(&[""], text, 3), text);
    }

    /// As `curl -u` sends them, and as a longer text holds them.
    #[test]
    fn credentials_are_hidden_in_base64_wherever_it_begins() {
        let warehouse = Connection {
            conn_type: "http".into(),
            login: Some("ann".into()),
            password: Some("hunter22".into()),
            ..Connection::default()
        };
        let secrets: Vec<String> = hidden(warehouse.secrets()).into_iter().collect();
        let basic = STANDARD.encode("ann:hunter22");
        let shown = masked(&secrets, &format!("Authorization: Basic {basic}"));
        assert_eq!(shown, "Authorization: Basic ***");
        for before in ["", "x", "xy", "xyz", "bob:"] {
            let whole = STANDARD.encode(format!("{before}hunter22 and more"));
            let shown = masked(&secrets, &whole);
            let is_gone = (0..=whole.len() - 6).all(|at| {
                let rest = &whole[at..at + 6];
                !shown.contains(rest) || !secrets.iter().any(|secret| secret.contains(rest))
            });
            assert!(shown.contains("***") && is_gone, "{whole} is shown as {shown}");
        }
    }

    #[test]
    fn nothing_is_held_back_that_cannot_become_a_secret() {
        let mut masker = Masker::new(&["secret".into()]);
        assert_eq!(&*masker.feed(b"no prompt: "), b"no prompt: ");
        assert_eq!(&*masker.feed(b"sec"), b"");
        assert_eq!(&*masker.feed(b"ond"), b"second");
        assert_eq!(&*masker.feed(b"s"), b"");
        assert_eq!(masker.finish(), b"s");
    }
}
