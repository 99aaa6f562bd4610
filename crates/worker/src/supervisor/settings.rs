//! What a worker is told at its start.

use super::beat::Beats;
use crate::clock::ClockKind;
use fencepost_core::guard::Guards;
use fencepost_core::lease::Lease;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a worker runs Python functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// A program of `PATH`, or its place.
    pub interpreter: String,
    /// The DAG folder: modules are looked for there first.
    pub path: Option<PathBuf>,
}

impl Default for Python {
    fn default() -> Self {
        Self { interpreter: "python3".into(), path: None }
    }
}

/// How a worker works.
#[derive(Clone)]
pub struct Settings {
    pub home: PathBuf,
    pub queues: Vec<String>,
    pub slots: u32,
    pub heartbeat_interval: Duration,
    /// The lease that everything ends with; `None` in standalone mode, whose shims wait for
    /// `orphan_ttl`. With a lease `clock` counts suspend.
    pub lease: Option<Lease>,
    /// Where beats run; `None`: beside everything else.
    pub beats: Option<Beats>,
    /// A job id for the process's next incarnation, once this one was declared lost.
    pub fresh_job_id: Arc<dyn Fn() -> String + Send + Sync>,
    /// How long a shim waits for the next owner.
    pub orphan_ttl: Duration,
    /// The longest time between SIGTERM and SIGKILL.
    pub kill_grace: Duration,
    pub margin: Duration,
    /// How long a restart waits for what runs before it leaves the rest to the shims.
    pub drain_timeout: Duration,
    /// Where shims end with this process: how long an orderly end may take, in which what runs is ended and
    /// reported. `None`: they outlive it.
    pub stop_timeout: Option<Duration>,
    /// Bytes of log of one attempt.
    pub log_limit: u64,
    /// The strongest containment that tasks get unless they ask: `auto` or a level.
    pub containment: String,
    pub python: Python,
    /// Variables of this host that tasks see (the allow list is applied here).
    pub host_env: Vec<(String, String)>,
    /// Where tasks find the server: `FENCEPOST_API_URL` and `FENCEPOST_API_CA`.
    pub api: Option<TaskApi>,
    /// The server is elsewhere: it is sent the logs.
    pub ships_logs: bool,
    /// The clock of the pages.
    pub clock: ClockKind,
    /// Reads that clock, in nanoseconds.
    pub now_ns: Arc<dyn Fn() -> u64 + Send + Sync>,
    pub guards: Guards,
}

/// How a task's process reaches the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskApi {
    pub url: String,
    /// A file with certificates to trust.
    pub ca: Option<PathBuf>,
}

/// Who a worker is, this time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub job_id: String,
    pub name: String,
    pub host: String,
    pub pid: u32,
    pub pid_start: u64,
    pub boot_id: String,
    pub machine_id: String,
    pub home_id: String,
    pub version: String,
}

/// Host variables that a task may see.
const ALLOWED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

impl Settings {
    /// The host's variables that are on the allow list: a run does not depend on which shell
    /// started the worker.
    pub fn allowed_env(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let allowed = |name: &str| ALLOWED.contains(&name) || name.starts_with("SSL_CERT_");
        self.host_env.iter().filter(move |(name, _)| allowed(name)).cloned()
    }
}
