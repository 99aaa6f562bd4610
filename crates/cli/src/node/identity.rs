//! Who this process is: a job's attributes.

use crate::config::Settings;
use fencepost_engine::Cx;
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

pub(super) fn identity(cx: &Cx, home: &Home, settings: &Settings) -> Identity {
    let pid = std::process::id();
    let start = i32::try_from(pid).ok().and_then(ProcessId::of).map_or(0, |process| process.start);
    Identity {
        job_id: cx.env.job_id().to_string(),
        name: worker_name(settings),
        host: host_name(),
        pid,
        pid_start: start,
        boot_id: BootId::current().map(|boot| boot.to_string()).unwrap_or_default(),
        machine_id: machine_id().unwrap_or_default(),
        home_id: home.record().home_id.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
    }
}
