//! TLS: rustls with ring, and only the authorities that the operator names.

use super::AddressError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How connections to one server are made safe.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// Trusts the authorities of a PEM text, for a server of that name.
    pub(super) fn new(host: &str, ca: Option<&[u8]>) -> Result<Self, AddressError> {
        let wrong = |error: String| AddressError::Certificates(error);
        let ca = ca.ok_or(AddressError::NobodyToTrust)?;
        let mut roots = RootCertStore::empty();
        for found in CertificateDer::pem_slice_iter(ca) {
            let found = found.map_err(|error| wrong(error.to_string()))?;
            // Bundles of systems hold some that rustls does not take; one good one is enough.
            let _ = roots.add(found);
        }
        if roots.is_empty() {
            return Err(wrong("there is none in the file".into()));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| AddressError::Form(host.to_owned()))?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// A safe connection over a plain one.
    pub(super) async fn over(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.connector.connect(self.name.clone(), stream).await
    }
}
