//! Connections to one server, kept while they are good.
//!
//! A kept connection may have been closed by the other side a moment ago, which shows only when
//! it is used: such a call is sent once more, over a fresh one.

use super::AddressError;
use super::address::Address;
use super::tls::Tls;
use http_body_util::{BodyExt, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Connections that are kept at most.
const KEPT: usize = 4;
/// Most of an answer that is read.
const ANSWER_MAX: usize = 256 << 20;

type Sender = SendRequest<Full<Bytes>>;

/// What went wrong below the answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("{0}")]
    Connect(#[from] io::Error),
    #[error("no connection within {} s", CONNECT_LIMIT.as_secs())]
    ConnectLimit,
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("the answer broke off: {0}")]
    Body(String),
    #[error("{0}")]
    Request(String),
}

/// An answer.
pub(super) struct Sent {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

/// The connections.
pub(super) struct Connections {
    address: Address,
    tls: Option<Tls>,
    kept: Mutex<Vec<Sender>>,
}

impl Connections {
    pub(super) fn new(address: Address, ca: Option<&[u8]>) -> Result<Self, AddressError> {
        let tls = if address.tls { Some(Tls::new(&address.host, ca)?) } else { None };
        Ok(Self { address, tls, kept: Mutex::default() })
    }

    /// None of these connections, to the same server.
    pub(super) fn afresh(&self) -> Self {
        Self { address: self.address.clone(), tls: self.tls.clone(), kept: Mutex::default() }
    }

    pub(super) fn authority(&self) -> String {
        self.address.authority()
    }

    /// Sends a request over a kept connection or a fresh one.
    pub(super) async fn send(
        &self,
        request: impl Fn() -> Result<Request<Full<Bytes>>, CallError>,
    ) -> Result<Sent, CallError> {
        while let Some(kept) = self.take() {
            if let Ok(sent) = self.over(kept, request()?).await {
                return Ok(sent);
            }
        }
        self.over(self.connect().await?, request()?).await
    }

    async fn over(
        &self,
        mut sender: Sender,
        request: Request<Full<Bytes>>,
    ) -> Result<Sent, CallError> {
        sender.ready().await?;
        let response = sender.send_request(request).await?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), ANSWER_MAX)
            .collect()
            .await
            .map_err(|error| CallError::Body(error.to_string()))?
            .to_bytes();
        self.keep(sender);
        Ok(Sent { status, body })
    }

    async fn connect(&self) -> Result<Sender, CallError> {
        let making = async {
            let stream =
                TcpStream::connect((self.address.host.as_str(), self.address.port)).await?;
            // A call is one small write, and waits for its answer.
            stream.set_nodelay(true)?;
            match &self.tls {
                None => begin(TokioIo::new(stream)).await,
                Some(tls) => begin(TokioIo::new(tls.over(stream).await?)).await,
            }
        };
        tokio::time::timeout(CONNECT_LIMIT, making).await.map_err(|_| CallError::ConnectLimit)?
    }

    fn take(&self) -> Option<Sender> {
        let mut kept = self.kept();
        std::iter::from_fn(|| kept.pop()).find(|sender| !sender.is_closed())
    }

    fn keep(&self, sender: Sender) {
        let mut kept = self.kept();
        if kept.len() < KEPT && !sender.is_closed() {
            kept.push(sender);
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Sender>> {
        // Pushed and popped whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// HTTP over a stream; the connection's own task ends with its last sender.
async fn begin<S>(stream: S) -> Result<Sender, CallError>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let (sender, connection) = handshake(stream).await?;
    tokio::spawn(async move {
        // Why it broke is told to whoever waits for an answer.
        let _ = connection.await;
    });
    Ok(sender)
}
