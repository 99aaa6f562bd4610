//! The listener of a standalone.

use super::Options;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_engine::Cx;
use fencepost_engine::drive::SharedHealth;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// Where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address(pub(crate) SocketAddr);

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

/// What the server shows of the rest of the node.
pub(super) struct Parts {
    pub(super) health: SharedHealth,
    pub(super) trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// Binds, writes the address into the home, and serves until the node stops.
pub(super) async fn listen(_cx: &Cx, options: &Options, parts: Parts) -> Outcome<Address> {
    let wanted = options.settings.text("server.listen").unwrap_or("127.0.0.1:7373");
    let listener = tokio::net::TcpListener::bind(wanted).await.map_err(|error| {
        CliError::new(Exit::Conflict, format!("cannot listen on {wanted}: {error}"))
            .hint("name another port, or let the system choose:  --listen 127.0.0.1:0")
    })?;
    let address =
        listener.local_addr().map_err(|e| CliError::new(Exit::Unexpected, e.to_string()))?;
    let router = axum::Router::new();
    let mut stopped = parts.stopped;
    let _ = (parts.health, parts.trouble);
    tokio::spawn(async move {
        let _ = axum::serve(listener, router)
            .with_graceful_shutdown(async move {
                let _ = stopped.changed().await;
            })
            .await;
    });
    Ok(Address(address))
}
