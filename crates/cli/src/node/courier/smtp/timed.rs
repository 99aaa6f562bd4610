//! One deadline for a whole delivery: the look-up of the name, the connection, and each step on it.
//!
//! A limit for each read alone would let a server that sends a byte now and then hold a delivery for as
//! long as it likes, until another scheduler takes the callback for abandoned and delivers it again.

use fencepost_worker::clock::ClockKind;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::Duration;

/// When a delivery is over, however far it has come.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Deadline {
    at_ns: u64,
    patience: Duration,
}

impl Deadline {
    /// So long from now.
    pub(in super::super) fn after(patience: Duration) -> Self {
        let nanos = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        Self { at_ns: ClockKind::Monotonic.now_ns().saturating_add(nanos), patience }
    }

    /// What is left of the time; an error once nothing is.
    pub(in super::super) fn left(&self) -> io::Result<Duration> {
        match self.at_ns.saturating_sub(ClockKind::Monotonic.now_ns()) {
            0 => Err(self.missed()),
            left => Ok(Duration::from_nanos(left)),
        }
    }

    fn missed(&self) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, format!("not done in {:?}", self.patience))
    }

    /// The system says of a limit that was reached that it would block.
    fn told(&self, error: io::Error) -> io::Error {
        let limits = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        if limits.contains(&error.kind()) { self.missed() } else { error }
    }
}

/// A connection that is good until its deadline.
pub(super) struct Timed {
    stream: TcpStream,
    until: Deadline,
}

impl Timed {
    /// Connects to one address, within `most` and the deadline.
    pub(super) fn connect(
        address: &SocketAddr,
        most: Duration,
        until: Deadline,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(address, until.left()?.min(most))?;
        Ok(Self { stream, until })
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.until.left()?))?;
        self.stream.read(into).map_err(|error| self.until.told(error))
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.until.left()?))?;
        self.stream.write(bytes).map_err(|error| self.until.told(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The addresses of a name. The system's resolver knows no limit: it is asked on a thread of its own, which
/// is left behind when it answers too late.
pub(super) fn look_up(name: &str, port: u16, until: Deadline) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let name = name.to_owned();
    within(until, move || Ok((name.as_str(), port).to_socket_addrs()?.collect()))
}

fn within<T: Send + 'static>(
    until: Deadline,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (done, went) = mpsc::channel();
    let thread = std::thread::Builder::new().name("callback-name".into());
    // Whoever asked may have gone.
    thread.spawn(move || drop(done.send(work())))?;
    match went.recv_timeout(until.left()?) {
        Ok(went) => went,
        Err(mpsc::RecvTimeoutError::Timeout) => Err(until.missed()),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err(io::Error::other("the look-up of its name ended by a panic"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_that_takes_too_long_is_left_behind() {
        let (release, held) = mpsc::channel::<()>();
        let until = Deadline::after(Duration::from_millis(50));
        let error = within(until, move || {
            let _ = held.recv();
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "not done in 50ms");
        assert!(until.left().is_err());
        drop(release);
        let later = Deadline::after(Duration::from_mins(1));
        assert_eq!(look_up("::1", 25, later).unwrap(), ["[::1]:25".parse().unwrap()]);
        assert!(!look_up("localhost", 25, later).unwrap().is_empty());
    }
}
