//! The worker's door to a simulated machine.

use super::handles::{SimAbsent, SimPrepared, SimRunning};
use super::{Dir, Lock, Os, Page};
use fencepost_core::guard::Guard;
use fencepost_worker::attempt::{
    Attached, AttemptHost, ForTask, FromTask, HostError, PreparedAttempt, Stamp,
};
use fencepost_worker::dir::AttemptDir;
use fencepost_worker::page::{Lease, Phase};
use fencepost_worker::spec::{Containment, Level, ShimSpec};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The attempts of one machine, as its worker sees them.
pub struct SimHost(pub Os);

fn missing(name: &str) -> HostError {
    HostError::io("finding", name)(io::ErrorKind::NotFound.into())
}

impl AttemptHost for SimHost {
    fn blocks(&self) -> bool {
        false
    }

    fn trouble(&self, _home: &Path) -> Option<String> {
        None
    }

    fn exists(&self, name: &str) -> bool {
        self.0.state().dirs.contains_key(name)
    }

    fn write_files(&self, name: &str, files: &ForTask) -> Result<(), HostError> {
        let mut state = self.0.state();
        let dir = state.dirs.get_mut(name).ok_or_else(|| missing(name))?;
        dir.script = files.script.clone().unwrap_or_default();
        Ok(())
    }

    fn read_file(&self, name: &str, file: FromTask, most: u64) -> Option<Vec<u8>> {
        let state = self.0.state();
        let mut bytes = state.dirs.get(name)?.files.get(&file)?.clone();
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        Some(bytes)
    }

    fn stamp(&self, name: &str, file: FromTask) -> Option<Stamp> {
        let state = self.0.state();
        let bytes = state.dirs.get(name)?.files.get(&file)?;
        Some((bytes.len() as u64, None))
    }

    fn archive(&self, _home: &Path, name: &str) -> Result<(), HostError> {
        self.remove(name)
    }

    fn drop_state(&self, _state: &Path) {}

    fn spec(&self, name: &str) -> Option<ShimSpec> {
        self.0.state().dirs.get(name).map(|dir| dir.spec.clone())
    }

    fn next_registration(&self, _home: &Path, above: u64) -> Result<u64, HostError> {
        let mut state = self.0.state();
        state.registrations = state.registrations.max(above) + 1;
        Ok(state.registrations)
    }

    fn kept_epoch(&self, _home: &Path) -> Result<u32, HostError> {
        Ok(self.0.state().epoch)
    }

    fn keep_epoch(&self, _home: &Path, epoch: u32) -> Result<(), HostError> {
        self.0.state().epoch = epoch;
        Ok(())
    }

    fn was_archived(&self, _home: &Path, name: &str) -> bool {
        self.0.state().archived.contains(name)
    }

    fn keep_report(&self, name: &str, report: &[u8]) -> Result<(), HostError> {
        self.0.state().reports.insert(name.to_owned(), report.to_vec());
        Ok(())
    }

    fn kept_report(&self, _home: &Path, name: &str) -> Option<Vec<u8>> {
        self.0.state().reports.get(name).cloned()
    }

    fn survey(&self) -> Result<Vec<String>, HostError> {
        Ok(self.0.left())
    }

    fn dir(&self, name: &str) -> AttemptDir {
        AttemptDir::new(Path::new("/sim").join(self.0.name()).join("attempts").join(name))
    }

    fn prepare(
        &self,
        name: &str,
        spec: &ShimSpec,
        lease: Lease,
    ) -> Result<Box<dyn PreparedAttempt>, HostError> {
        let mut state = self.0.state();
        if state.dirs.contains_key(name) {
            return Err(HostError::Exists(name.to_owned()));
        }
        let level = match spec.containment {
            Containment::Auto | Containment::Pidns => Level::Pidns,
            Containment::Cgroup => Level::Cgroup,
            Containment::Group => Level::Group,
        };
        let page = Page { phase: Phase::Made, lease, generation: 0, stop: None, started_at_ns: 0 };
        let dir = Dir {
            spec: spec.clone(),
            script: String::new(),
            files: BTreeMap::new(),
            page,
            lock: Lock::Worker,
            outcome: None,
            level,
            boot: state.boot,
            changed: Arc::default(),
            ended: Arc::default(),
            killed: false,
            stopped: false,
        };
        state.dirs.insert(name.to_owned(), dir);
        Ok(Box::new(SimPrepared::new(self.0.clone(), name)))
    }

    fn attach(&self, name: &str, lease: Lease) -> Result<Attached, HostError> {
        let mut state = self.0.state();
        let dir = state.dirs.get_mut(name).ok_or_else(|| missing(name))?;
        let is_locked = self.0.0.guards.on(Guard::AbsenceUnderLock);
        match dir.lock {
            Lock::Worker => Err(HostError::Starting(name.to_owned())),
            Lock::Shim if dir.page.phase < Phase::ShimAlive && is_locked => {
                Err(HostError::Starting(name.to_owned()))
            }
            // Without the guard a page that names no shim is believed.
            Lock::Shim if dir.page.phase < Phase::ShimAlive => {
                Ok(Attached::Absent(Box::new(SimAbsent::new(self.0.clone(), name, false))))
            }
            Lock::Shim => {
                dir.page.generation += 1;
                let deadline_ns = lease.over(dir.page.lease.deadline_ns);
                dir.page.lease = Lease { deadline_ns, ..lease };
                dir.changed.notify_one();
                let generation = dir.page.generation;
                self.0.0.trace.mark("reattached");
                Ok(Attached::Running(Box::new(SimRunning::new(self.0.clone(), name, generation))))
            }
            Lock::Free => {
                if let Some(outcome) = &dir.outcome {
                    return Ok(Attached::Ended(outcome.clone()));
                }
                dir.lock = Lock::Worker;
                Ok(Attached::Absent(Box::new(SimAbsent::new(self.0.clone(), name, true))))
            }
        }
    }

    fn cleanup(&self, name: &str) -> Result<(), HostError> {
        match self.0.state().dirs.get(name) {
            Some(dir) if dir.lock != Lock::Free => Err(HostError::StillRunning(name.to_owned())),
            _ => Ok(()),
        }
    }

    fn remove(&self, name: &str) -> Result<(), HostError> {
        self.cleanup(name)?;
        let mut state = self.0.state();
        if state.dirs.remove(name).is_some() {
            state.archived.insert(name.to_owned());
        }
        Ok(())
    }
}
