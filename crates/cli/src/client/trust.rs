//! Whom a blocking client trusts: rustls with ring, and the authorities that are named, else the
//! system's.

use crate::error::{CliError, Outcome};
use crate::node::trusted;
use std::path::Path;
use std::sync::Arc;
use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

/// TLS towards that address; `None`: it is a plain one.
pub(crate) fn tls(url: &str, ca: Option<&Path>) -> Outcome<Option<TlsConfig>> {
    if !url.starts_with("https://") {
        return Ok(None);
    }
    let none = || {
        CliError::usage("https needs certificates to trust, and there are none")
            .hint("name a file with them:  --ca FILE")
    };
    let pem = trusted(ca, url)?.ok_or_else(none)?;
    let roots: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(found)) => Some(found),
            Ok(_) | Err(_) => None,
        })
        .collect();
    if roots.is_empty() {
        return Err(none());
    }
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .root_certs(RootCerts::new_with_certs(&roots))
        .build();
    Ok(Some(config))
}
