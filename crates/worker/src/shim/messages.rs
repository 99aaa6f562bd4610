//! What the processes below the shim tell it, one line each over a pipe.
//!
//! Every line is shorter than PIPE_BUF, so lines of several writers never mix.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::{read, write};

/// The longest line.
const MAX: usize = 2_000;

/// How the main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MainEnd {
    Exit(i32),
    Signal(i32),
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// Contained, and waiting for the gate.
    Ready,
    /// This level of containment is not to be had.
    NoLevel(String),
    /// The program could not be executed: exit code and why.
    NoExec(i32, String),
    /// The main process ended; how many others of the tree are left, and their names.
    Main(MainEnd, u64, String),
    /// Ticks of CPU that the tree has used.
    Cpu(u64),
}

impl Message {
    fn encode(&self) -> String {
        match self {
            Self::Ready => "ready".to_owned(),
            Self::NoLevel(why) => format!("level {why}"),
            Self::NoExec(code, why) => format!("exec {code} {why}"),
            Self::Main(MainEnd::Exit(code), left, names) => format!("exit {code} {left} {names}"),
            Self::Main(MainEnd::Signal(signal), left, names) => {
                format!("signal {signal} {left} {names}")
            }
            Self::Cpu(ticks) => format!("cpu {ticks}"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbers = |rest: &str| -> Option<(i32, u64, String)> {
            let (first, rest) = rest.split_once(' ')?;
            let (left, names) = rest.split_once(' ').unwrap_or((rest, ""));
            Some((first.parse().ok()?, left.parse().ok()?, names.to_owned()))
        };
        match word {
            "ready" => Some(Self::Ready),
            "level" => Some(Self::NoLevel(rest.to_owned())),
            "exec" => {
                let (code, why) = rest.split_once(' ')?;
                Some(Self::NoExec(code.parse().ok()?, why.to_owned()))
            }
            "exit" => {
                let (code, left, names) = numbers(rest)?;
                Some(Self::Main(MainEnd::Exit(code), left, names))
            }
            "signal" => {
                let (signal, left, names) = numbers(rest)?;
                Some(Self::Main(MainEnd::Signal(signal), left, names))
            }
            "cpu" => rest.parse().ok().map(Self::Cpu),
            _ => None,
        }
    }

    /// Sends this line. A shim that is gone is nobody to tell.
    pub(super) fn send(&self, to: impl AsFd) {
        let mut line = self.encode().replace(['\n', '\0'], " ");
        let mut end = line.len().min(MAX);
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        line.truncate(end);
        line.push('\n');
        let _ = write(to, line.as_bytes());
    }
}

/// The reading end.
pub(super) struct Messages {
    fd: OwnedFd,
    bytes: Vec<u8>,
    pub(super) at_end: bool,
}

impl Messages {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, bytes: Vec::new(), at_end: false }
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// The next whole line that has arrived; reads (and may block, if the descriptor does).
    pub(super) fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                match Message::parse(&String::from_utf8_lossy(&line[..end])) {
                    Some(message) => return Some(message),
                    None => continue,
                }
            }
            let mut buffer = [0; 4096];
            match read(&self.fd, &mut buffer[..]) {
                Ok(0) => {
                    self.at_end = true;
                    return None;
                }
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_read_as_it_was_sent() {
        let (from, to) = rustix::pipe::pipe().unwrap();
        let sent = [
            Message::Ready,
            Message::NoLevel("no such thing".into()),
            Message::NoExec(127, "`x` does not exist".into()),
            Message::Main(MainEnd::Exit(3), 0, String::new()),
            Message::Main(MainEnd::Signal(9), 2, "sleep sh".into()),
            Message::Cpu(12),
        ];
        for message in &sent {
            message.send(&to);
        }
        Message::NoExec(126, "é\n".repeat(5_000)).send(&to);
        drop(to);
        let mut messages = Messages::new(from);
        for message in sent {
            assert_eq!(messages.next(), Some(message));
        }
        let Some(Message::NoExec(126, why)) = messages.next() else { panic!("the long line") };
        assert!(why.len() <= MAX && !why.contains('\n'));
        assert_eq!((messages.next(), messages.at_end), (None, true));
    }
}
