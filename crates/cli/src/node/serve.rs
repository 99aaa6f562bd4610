//! The listener of a standalone: loopback, and a token from the first day.

use super::Options;
use super::logs::HomeLogs;
use crate::config::Settings;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use fencepost_api::rest::ConfigValue;
use fencepost_engine::Cx;
use fencepost_engine::drive::SharedHealth;
use fencepost_server::auth::ensure_owner_token;
use fencepost_server::execution::Execution;
use fencepost_server::execution::http::{Serves, routes};
use fencepost_server::rest::{RestState, router};
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// The file in the home that says where it listens.
const FILE: &str = "server";

/// Where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address(SocketAddr);

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http://{}", self.0)
    }
}

/// What the server shows of the rest of the node.
pub(super) struct Parts {
    pub(super) health: SharedHealth,
    pub(super) trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    pub(super) execution: Execution,
    pub(super) stopped: watch::Receiver<bool>,
}

/// A socket that is bound, and not served yet.
pub(super) struct Listener {
    pub(super) address: Address,
    socket: tokio::net::TcpListener,
}

/// Binds as configured.
pub(super) async fn bind(settings: &Settings) -> Outcome<Listener> {
    let socket = bind_to(settings.text("server.listen").unwrap_or("127.0.0.1:7373")).await?;
    let address = Address(socket.local_addr().map_err(failed)?);
    Ok(Listener { address, socket })
}

fn failed(error: std::io::Error) -> CliError {
    CliError::new(Exit::Unexpected, error.to_string())
}

/// Writes the address into the home, and serves until the node stops.
pub(super) async fn listen(
    cx: &Cx,
    options: &Options,
    listener: Listener,
    parts: Parts,
) -> Outcome<Address> {
    let Listener { address, socket } = listener;
    ensure_owner_token(cx, &options.home.join("token"))
        .await
        .map_err(|error| CliError::new(Exit::Unexpected, error.to_string()))?;
    let router = router(RestState {
        cx: cx.clone(),
        logs: Arc::new(HomeLogs(options.home.clone())),
        health: parts.health,
        config: Arc::new(config(&options.settings)),
        version: env!("CARGO_PKG_VERSION").into(),
        started_at: crate::clock::now(),
        worker_trouble: parts.trouble,
        stop: parts.stopped.clone(),
    });
    let version = env!("CARGO_PKG_VERSION").into();
    let router = router.merge(routes(parts.execution, Serves::Attempts, version));
    let mut stopped = parts.stopped;
    tokio::spawn(async move {
        let until = async move {
            // An error means that the node is gone.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        let _ = axum::serve(socket, router).with_graceful_shutdown(until).await;
    });
    write_address(&options.home, &address).map_err(failed)?;
    Ok(address)
}

async fn bind_to(wanted: &str) -> Outcome<tokio::net::TcpListener> {
    let address: SocketAddr = wanted
        .parse()
        .map_err(|_| CliError::usage(format!("server.listen: `{wanted}` is no IP and port")))?;
    if !address.ip().is_loopback() {
        let message = format!("a standalone listens on loopback only, not on {wanted}");
        return Err(CliError::usage(message)
            .hint("its tokens would cross the network in the clear; put a TLS proxy before it"));
    }
    tokio::net::TcpListener::bind(address).await.map_err(|error| {
        CliError::new(Exit::Conflict, format!("cannot listen on {wanted}: {error}"))
            .hint("name another port, or let the system choose:  --listen 127.0.0.1:0")
    })
}

fn write_address(home: &Path, address: &Address) -> std::io::Result<()> {
    let tmp = home.join("server.tmp");
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o644).open(&tmp)?;
    writeln!(file, "{address}")?;
    std::fs::rename(tmp, home.join(FILE))
}

/// Nobody listens there any more.
pub(super) fn forget(home: &Path) {
    // A client that finds it all the same is told that nobody answers.
    let _ = std::fs::remove_file(home.join(FILE));
}

fn config(settings: &Settings) -> Vec<ConfigValue> {
    settings
        .all()
        .map(|(key, setting)| ConfigValue {
            key: key.name.into(),
            value: setting.value.clone(),
            origin: setting.place.origin().into(),
            origin_detail: None,
        })
        .collect()
}
