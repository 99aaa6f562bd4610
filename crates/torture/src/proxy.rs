//! A TCP proxy of the harness's own: the network between two parties, which can be cut, held up and
//! robbed of answers while they live.
//!
//! It runs on a thread of its own. A cable has one listening port and one or more addresses behind it,
//! which take turns, so that it stands for a load balancer too.

use std::io::Result;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, tcp};
use tokio::sync::watch;

/// What a cable does to what passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It passes.
    Open,
    /// Connections end, new ones are refused.
    Refuse,
    /// Nothing passes in either direction, and nobody is told: half-open connections. What was sent
    /// meanwhile arrives once the cable is whole, as after a partition.
    Hold,
    /// Everything passes, that much later each way.
    Delay(u64),
    /// What is asked arrives, the answer is lost with its connection.
    LoseAnswers,
    /// What is asked is held up, what is said without being asked passes.
    HoldQuestions,
}

/// A cable: its port, and what is done to it.
#[derive(Debug, Clone)]
pub struct Cable {
    port: u16,
    mode: Arc<watch::Sender<Mode>>,
}

impl Cable {
    /// Where to connect to.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// From now on it does this.
    pub fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

/// The thread that all cables run on.
#[derive(Debug)]
pub struct Exchange {
    runtime: tokio::runtime::Runtime,
}

impl Exchange {
    /// Starts it.
    pub fn start() -> Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("proxy").enable_all().build()?;
        Ok(Self { runtime })
    }

    /// Lays a cable to these addresses of this host.
    pub fn lay(&self, ports: Vec<u16>) -> Result<Cable> {
        let listener = self.runtime.block_on(TcpListener::bind(("127.0.0.1", 0)))?;
        let port = listener.local_addr()?.port();
        let (mode, seen) = watch::channel(Mode::Open);
        let turn = Arc::new(AtomicUsize::new(0));
        self.runtime.spawn(async move {
            loop {
                let Ok((client, _)) = listener.accept().await else {
                    pause(50).await;
                    continue;
                };
                // A connection that fails is its parties' business.
                let (seen, ports, turn) = (seen.clone(), ports.clone(), Arc::clone(&turn));
                tokio::spawn(async move { drop(serve(client, &ports, &turn, seen).await) });
            }
        });
        Ok(Cable { port, mode: Arc::new(mode) })
    }
}

#[expect(clippy::disallowed_methods, reason = "a slow cable")]
async fn pause(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

async fn connect(ports: &[u16], turn: &AtomicUsize) -> Result<TcpStream> {
    let first = turn.fetch_add(1, Ordering::Relaxed);
    let mut last = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    for n in 0..ports.len() {
        let port = ports[(first + n) % ports.len()];
        match TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], port))).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

async fn serve(
    client: TcpStream,
    ports: &[u16],
    turn: &AtomicUsize,
    mut mode: watch::Receiver<Mode>,
) -> Result<()> {
    if *mode.borrow() == Mode::Refuse {
        return Ok(());
    }
    // Nobody answers at the other end of a cable that is cut.
    let passes = |mode: &Mode| !matches!(mode, Mode::Hold | Mode::HoldQuestions);
    drop(mode.wait_for(passes).await);
    let server = connect(ports, turn).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let asked = pass(from_client, to_server, Way::Questions, mode.clone());
    let answered = pass(from_server, to_client, Way::Answers, mode.clone());
    let refused = async {
        drop(mode.wait_for(|mode| *mode == Mode::Refuse).await);
    };
    tokio::select! {
        both = async { tokio::try_join!(asked, answered) } => both.map(drop),
        () = refused => Ok(()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Questions,
    Answers,
}

/// Carries bytes one way, until an end or an error; an error ends the connection both ways.
async fn pass(
    mut from: tcp::OwnedReadHalf,
    mut to: tcp::OwnedWriteHalf,
    way: Way,
    mut mode: watch::Receiver<Mode>,
) -> Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let count = from.read(&mut buffer).await?;
        let held = |mode: &Mode| match mode {
            Mode::Hold => true,
            Mode::HoldQuestions => way == Way::Questions,
            Mode::Open | Mode::Refuse | Mode::Delay(_) | Mode::LoseAnswers => false,
        };
        drop(mode.wait_for(|mode| !held(mode)).await);
        let now = *mode.borrow();
        match now {
            Mode::Delay(ms) => pause(ms).await,
            Mode::LoseAnswers if way == Way::Answers && count > 0 => {
                return Err(std::io::ErrorKind::ConnectionReset.into());
            }
            Mode::Open | Mode::Refuse | Mode::Hold | Mode::HoldQuestions | Mode::LoseAnswers => {}
        }
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener as Listener, TcpStream as Stream};

    /// Sends back what it gets.
    fn echo() -> Result<u16> {
        let listener = Listener::bind(("127.0.0.1", 0))?;
        let port = listener.local_addr()?.port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut reader = &stream;
                    let mut writer = &stream;
                    std::io::copy(&mut reader, &mut writer)
                });
            }
        });
        Ok(port)
    }

    fn ask(stream: &mut Stream) -> Result<u8> {
        stream.write_all(b"x")?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        Ok(answer[0])
    }

    #[test]
    fn a_cable_is_cut_held_up_and_robbed_of_answers() -> Result<()> {
        let exchange = Exchange::start()?;
        let cable = exchange.lay(vec![1, echo()?])?;
        let connect = || Stream::connect(("127.0.0.1", cable.port()));
        let mut stream = connect()?;
        assert_eq!(ask(&mut stream)?, b'x', "the address that answers is found");
        cable.set(Mode::Hold);
        stream.set_read_timeout(Some(Duration::from_millis(300)))?;
        assert!(ask(&mut stream).is_err(), "half-open");
        cable.set(Mode::Delay(5));
        stream.set_read_timeout(None)?;
        let mut late = [0];
        stream.read_exact(&mut late)?;
        assert_eq!(late[0], b'x', "what was sent meanwhile arrives");
        cable.set(Mode::LoseAnswers);
        assert!(ask(&mut stream).is_err(), "the answer is lost");
        cable.set(Mode::Open);
        let mut stream = connect()?;
        assert_eq!(ask(&mut stream)?, b'x');
        cable.set(Mode::Refuse);
        assert!(ask(&mut stream).is_err(), "refused");
        Ok(())
    }
}
