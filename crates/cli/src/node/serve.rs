//! The listener of a standalone or a server: a token from the first day, and TLS beyond this host.

use super::{Options, port};
use crate::config::Settings;
use crate::error::{CliError, Outcome};
use crate::exit::Exit;
use axum::Router;
use fencepost_api::rest::ConfigValue;
use fencepost_engine::Cx;
use fencepost_engine::drive::SharedHealth;
use fencepost_server::execution::Execution;
use fencepost_server::execution::http::{Serves, routes};
use fencepost_server::metrics::{self, Metrics};
use fencepost_server::rest::{LogSource, RestState, router};
use fencepost_server::tls::{self, TlsListener};
use fencepost_server::vault::Keyring;
use fencepost_worker::supervisor::TaskApi;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// The file in the home that says where it listens.
const FILE: &str = "server";
/// How long calls in flight may take after the end was asked for.
const FLIGHT: Duration = Duration::from_secs(10);
/// Where systems keep the certificates that they trust.
const SYSTEM_TRUST: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Where it listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    socket: SocketAddr,
    tls: bool,
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "http{}://{}", if self.tls { "s" } else { "" }, self.socket)
    }
}

/// What the server shows of the rest of the process, and whom it serves.
pub(super) struct Parts {
    pub(super) health: SharedHealth,
    pub(super) trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
    pub(super) logs: Arc<dyn LogSource>,
    /// `None`: people alone.
    pub(super) execution: Option<(Execution, Serves)>,
    /// What opens variables, connections and secrets.
    pub(super) keyring: Arc<Keyring>,
    pub(super) stopped: watch::Receiver<bool>,
}

/// A socket that is bound, and not served yet.
pub(super) struct Listener {
    pub(super) address: Address,
    socket: tokio::net::TcpListener,
    tls: Option<TlsAcceptor>,
}

/// What serves, until the process stops.
pub(super) struct Serving(JoinHandle<()>);

impl Serving {
    /// Waits for the calls in flight.
    pub(super) async fn end(self) {
        let Self(mut task) = self;
        if tokio::time::timeout(FLIGHT, &mut task).await.is_err() {
            task.abort();
        }
    }

    /// Ready once it has ended by itself.
    pub(super) async fn broken(&self) {
        super::ended(&self.0).await;
    }
}

fn failed(error: std::io::Error) -> CliError {
    CliError::new(Exit::Unexpected, error.to_string())
}

/// Binds as configured.
pub(super) async fn bind(settings: &Settings) -> Outcome<Listener> {
    let wanted = settings.text("server.listen").unwrap_or("127.0.0.1:7373");
    bind_to(settings, "server.listen", wanted, settings.text("server.insecure") == Some("true"))
        .await
}

/// Binds the address of the metrics alone, if there is one: without tokens there is nothing to hide.
pub(super) async fn bind_metrics(settings: &Settings) -> Outcome<Option<Listener>> {
    let Some(wanted) = settings.text("metrics.listen") else { return Ok(None) };
    let insecure = is_anonymous(settings) || settings.text("server.insecure") == Some("true");
    bind_to(settings, "metrics.listen", wanted, insecure).await.map(Some)
}

fn is_anonymous(settings: &Settings) -> bool {
    settings.text("metrics.anonymous") == Some("true")
}

async fn bind_to(
    settings: &Settings,
    key: &str,
    wanted: &str,
    insecure: bool,
) -> Outcome<Listener> {
    let tls = acceptor(settings)?;
    let address: SocketAddr = wanted
        .parse()
        .map_err(|_| CliError::usage(format!("{key}: `{wanted}` is no IP and port")))?;
    if !address.ip().is_loopback() && tls.is_none() && !insecure {
        let message = format!("{wanted} can be reached from other hosts, and there is no TLS");
        return Err(CliError::usage(message)
            .hint("name a certificate and its key: [server] tls_cert, tls_key")
            .hint(
                "or say [server] insecure = true: tokens, parameters and outputs then cross the \
                 network in the clear, which is for a network that nobody else is in",
            ));
    }
    let socket = tokio::net::TcpListener::bind(address).await.map_err(|error| {
        let is_taken = error.kind() == std::io::ErrorKind::AddrInUse;
        let by = is_taken.then(|| port::holder(address.port())).flatten();
        let by = by.map_or_else(String::new, |by| format!("; {by} listens there"));
        CliError::new(Exit::Conflict, format!("cannot listen on {wanted}: {error}{by}"))
            .hint("name another port, or let the system choose:  --listen 127.0.0.1:0")
    })?;
    let address = Address { socket: socket.local_addr().map_err(failed)?, tls: tls.is_some() };
    Ok(Listener { address, socket, tls })
}

fn acceptor(settings: &Settings) -> Outcome<Option<TlsAcceptor>> {
    let files = (settings.text("server.tls_cert"), settings.text("server.tls_key"));
    let (cert, key) = match files {
        (None, None) => return Ok(None),
        (Some(cert), Some(key)) => (cert, key),
        (Some(_), None) => return Err(half("server.tls_cert", "server.tls_key")),
        (None, Some(_)) => return Err(half("server.tls_key", "server.tls_cert")),
    };
    let made = tls::acceptor(&read(Path::new(cert))?, &read(Path::new(key))?);
    made.map(Some).map_err(|error| CliError::usage(format!("{cert}, {key}: {error}")))
}

fn half(there: &str, missing: &str) -> CliError {
    CliError::usage(format!("{there} is set, and {missing} is not: TLS needs both"))
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| CliError::usage(format!("{}: {error}", path.display())))
}

/// Certificates to trust towards that address (PEM): of the named file, else the system's.
pub(crate) fn trusted(file: Option<&Path>, url: &str) -> Outcome<Option<Vec<u8>>> {
    match file {
        Some(path) => read(path).map(Some),
        None if url.starts_with("https://") => {
            Ok(SYSTEM_TRUST.iter().find_map(|path| std::fs::read(path).ok()))
        }
        None => Ok(None),
    }
}

/// How the tasks of this process's own worker reach it.
pub(super) fn for_tasks(settings: &Settings, listener: &Listener) -> TaskApi {
    let named = settings.text("server.url").map(ToOwned::to_owned);
    TaskApi {
        url: named.unwrap_or_else(|| listener.address.to_string()),
        ca: settings.text("worker.server_ca").map(PathBuf::from),
    }
}

/// Serves until the process stops.
pub(super) fn listen(
    cx: &Cx,
    options: &Options,
    listener: Listener,
    parts: Parts,
) -> (Address, Serving) {
    let metrics = metrics::routes(metrics_of(cx, options, &parts.health));
    let rest = router(RestState {
        cx: cx.clone(),
        logs: parts.logs,
        health: parts.health,
        config: Arc::new(config(&options.settings)),
        version: env!("CARGO_PKG_VERSION").into(),
        started_at: crate::clock::now(),
        worker_trouble: parts.trouble,
        keyring: parts.keyring,
        stop: parts.stopped.clone(),
    });
    let version = env!("CARGO_PKG_VERSION").into();
    let all = match parts.execution {
        Some((execution, serves)) => rest.merge(routes(execution, serves, version)),
        None => rest,
    };
    serve(listener, all.merge(metrics), parts.stopped)
}

/// Serves `/metrics` alone, until the process stops.
pub(super) fn listen_for_metrics(
    cx: &Cx,
    options: &Options,
    listener: Option<Listener>,
    health: &SharedHealth,
    stopped: watch::Receiver<bool>,
) {
    if let Some(listener) = listener {
        let router = metrics::routes(metrics_of(cx, options, health));
        // It ends with the process: nobody waits for a scrape.
        drop(serve(listener, router, stopped));
    }
}

fn metrics_of(cx: &Cx, options: &Options, health: &SharedHealth) -> Metrics {
    Metrics {
        cx: cx.clone(),
        health: Arc::clone(health),
        version: env!("CARGO_PKG_VERSION").into(),
        is_anonymous: is_anonymous(&options.settings),
    }
}

fn serve(listener: Listener, router: Router, stopped: watch::Receiver<bool>) -> (Address, Serving) {
    let Listener { address, socket, tls } = listener;
    let serving = match tls {
        None => tokio::spawn(until(socket, router, stopped)),
        Some(tls) => tokio::spawn(until(TlsListener::new(socket, tls), router, stopped)),
    };
    (address, Serving(serving))
}

async fn until<L>(listener: L, router: Router, mut stopped: watch::Receiver<bool>)
where
    L: axum::serve::Listener<Addr = SocketAddr>,
{
    let stop = async move {
        // An error means that the process is gone.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let _ = axum::serve(listener, router).with_graceful_shutdown(stop).await;
}

/// For the clients on this host.
pub(super) fn write_address(home: &Path, address: &Address) -> Outcome<()> {
    let write = || -> std::io::Result<()> {
        let tmp = home.join("server.tmp");
        let mut file =
            File::options().write(true).create(true).truncate(true).mode(0o644).open(&tmp)?;
        writeln!(file, "{address}")?;
        std::fs::rename(tmp, home.join(FILE))
    };
    write().map_err(failed)
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
            value: setting.value.as_deref().map(|value| key.shown(value)),
            origin: setting.place.origin().into(),
            origin_detail: None,
        })
        .collect()
}
