//! The task's two output pipes, read without ever waiting for their end.

use std::os::fd::OwnedFd;

use rustix::io::{Errno, read};

use crate::clock::NS_PER_MS;
use crate::log::{Framer, LogWriter, Stream};
use crate::mask::Masker;

/// A line that has no end for this long is shown as far as it is there.
const IDLE: u64 = 100 * NS_PER_MS;
/// Bytes taken from one pipe before the loop looks at the clock again.
const TURN_MAX: usize = 256 << 10;
/// Bytes taken after the tree is empty: more than a pipe holds, less than for ever.
const DRAIN_MAX: usize = 4 << 20;

/// One of the two pipes.
pub(super) struct Output {
    fd: Option<OwnedFd>,
    masker: Masker,
    framer: Framer,
    waiting_since: Option<u64>,
    pub(super) bytes: u64,
}

impl Output {
    pub(super) fn new(fd: OwnedFd, stream: Stream, masker: Masker) -> Self {
        let framer = Framer::new(stream);
        Self { fd: Some(fd), masker, framer, waiting_since: None, bytes: 0 }
    }

    /// The pipe, until the task has closed it.
    pub(super) fn fd(&self) -> Option<&OwnedFd> {
        self.fd.as_ref()
    }

    /// Reads what is there, within bounds. True if there was anything.
    pub(super) fn take(&mut self, buffer: &mut [u8], log: &mut LogWriter, now: u64) -> bool {
        self.take_up_to(TURN_MAX, buffer, log, now)
    }

    fn take_up_to(&mut self, max: usize, buffer: &mut [u8], log: &mut LogWriter, now: u64) -> bool {
        let mut taken = 0;
        while taken < max {
            let Some(fd) = &self.fd else { break };
            match read(fd, &mut *buffer) {
                Ok(0) => {
                    self.fd = None;
                    self.end(log);
                }
                Ok(count) => {
                    taken += count;
                    self.framer.feed(&self.masker.feed(&buffer[..count]), log);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => self.fd = None,
            }
        }
        if taken > 0 {
            self.bytes += taken as u64;
            self.waiting_since = self.framer.is_waiting().then_some(now);
        }
        taken > 0
    }

    /// When a line without an end is due to be shown.
    pub(super) fn flush_at(&self) -> u64 {
        self.waiting_since.map_or(u64::MAX, |since| since.saturating_add(IDLE))
    }

    pub(super) fn flush_if_due(&mut self, log: &mut LogWriter, now: u64) {
        if now >= self.flush_at() {
            self.flush(log);
        }
    }

    fn flush(&mut self, log: &mut LogWriter) {
        self.framer.flush(log);
        self.waiting_since = None;
    }

    /// Nothing comes any more.
    fn end(&mut self, log: &mut LogWriter) {
        self.framer.feed(&self.masker.finish(), log);
        self.flush(log);
    }

    /// Takes what is still in the pipe of an empty tree. Its end may never come: somebody outside
    /// the tree can have been handed the writing end.
    pub(super) fn drain(&mut self, buffer: &mut [u8], log: &mut LogWriter) {
        self.take_up_to(DRAIN_MAX, buffer, log, 0);
        self.end(log);
        self.fd = None;
    }
}
