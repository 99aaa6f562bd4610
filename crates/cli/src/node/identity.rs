//! Who this process is: a job's attributes.

use crate::config::Settings;
use fencepost_core::state::JobKind;
use fencepost_engine::Cx;
use fencepost_engine::operations::register;
use fencepost_worker::clock::BootId;
use fencepost_worker::home::{Home, HomeRecord, machine_id};
use fencepost_worker::process::ProcessId;
use fencepost_worker::supervisor::Identity;
use std::path::Path;

/// The installation that a home was last used for.
pub(super) fn of_home(home: &Path) -> Option<String> {
    let text = std::fs::read(home.join("holder")).ok()?;
    serde_json::from_slice::<HomeRecord>(&text).ok().map(|record| record.installation_id)
}

/// The name of the worker: as configured, else the host's.
pub(super) fn worker_name(settings: &Settings) -> String {
    settings.text("worker.name").map_or_else(host_name, ToOwned::to_owned)
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The job of a role that has no home; each start is one of its own, without a predecessor.
pub(super) fn of_role(cx: &Cx, kind: JobKind) -> register::Identity {
    let job_id = cx.env.job_id();
    register::Identity {
        job_id,
        kind,
        name: host_name(),
        host: host_name(),
        pid: std::process::id(),
        pid_start: i64::try_from(own_start()).unwrap_or(i64::MAX),
        boot_id: boot_id(),
        machine_id: machine_id().unwrap_or_default(),
        home_id: job_id.to_string(),
        registration: 0,
        version: env!("CARGO_PKG_VERSION").into(),
        queues: Vec::new(),
        slots: 0,
        lease_ttl: None,
    }
}

fn own_start() -> u64 {
    let pid = i32::try_from(std::process::id());
    pid.ok().and_then(ProcessId::of).map_or(0, |process| process.start)
}

fn boot_id() -> String {
    BootId::current().map(|boot| boot.to_string()).unwrap_or_default()
}

/// A worker's, with a fresh id.
pub(super) fn identity(job_id: &str, home: &Home, settings: &Settings) -> Identity {
    Identity {
        job_id: job_id.to_owned(),
        name: worker_name(settings),
        host: host_name(),
        pid: std::process::id(),
        pid_start: own_start(),
        boot_id: boot_id(),
        machine_id: machine_id().unwrap_or_default(),
        home_id: home.record().home_id.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
    }
}
