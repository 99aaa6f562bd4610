//! TLS in front of the server: rustls with ring, one certificate.
//!
//! Handshakes run beside each other and have a limit, so a client that says nothing holds up nobody.

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Handshakes that run at the same time.
const HANDSHAKES: usize = 256;
/// After an error of the socket itself (out of descriptors).
const AFTER_ERROR: Duration = Duration::from_millis(200);

/// A certificate or key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("no certificate in PEM form: {0}")]
    Certificate(String),
    #[error("no private key in PEM form: {0}")]
    Key(String),
    #[error("certificate and key do not go together: {0}")]
    Pair(rustls::Error),
}

/// Accepts connections for the holder of a certificate (PEM, with its chain) and its key (PEM).
pub fn acceptor(certificate: &[u8], key: &[u8]) -> Result<TlsAcceptor, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsError::Certificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(TlsError::Certificate("the file holds none".into()));
    }
    let key =
        PrivateKeyDer::from_pem_slice(key).map_err(|error| TlsError::Key(error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Pair)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

type Shaken = Option<(TlsStream<TcpStream>, SocketAddr)>;

/// A socket whose connections speak TLS.
pub struct TlsListener {
    socket: TcpListener,
    acceptor: TlsAcceptor,
    shaking: JoinSet<Shaken>,
}

impl TlsListener {
    /// Over a bound socket.
    pub fn new(socket: TcpListener, acceptor: TlsAcceptor) -> Self {
        Self { socket, acceptor, shaking: JoinSet::new() }
    }

    fn shake(&mut self, stream: TcpStream, from: SocketAddr) {
        let acceptor = self.acceptor.clone();
        self.shaking.spawn(async move {
            let shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
            // Whoever does not speak TLS, or does not trust us, has been told so by the handshake.
            Some((shaken.ok()?.ok()?, from))
        });
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                Some(done) = self.shaking.join_next() => {
                    if let Ok(Some(shaken)) = done {
                        return shaken;
                    }
                }
                accepted = self.socket.accept(), if self.shaking.len() < HANDSHAKES => {
                    match accepted {
                        Ok((stream, from)) => self.shake(stream, from),
                        Err(_) => pause(AFTER_ERROR).await,
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause after an error of the socket")]
async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}
