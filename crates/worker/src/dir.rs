//! The names of the files in one attempt's directory, in one place.

use std::path::{Path, PathBuf};

/// The directory of one attempt.
///
/// `lock`, `spec`, `page`, `ctl`, `log*`, `outcome` and `cgroup` are between worker and shim;
/// `work/`, `tmp/`, `io/` and `lease` are for the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDir {
    path: PathBuf,
}

impl AttemptDir {
    /// The directory at `path`; nothing is read or made.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its own name, which survey and cleanup use.
    pub fn name(&self) -> String {
        self.path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Held by the shim for its life.
    pub fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// What the shim is to run.
    pub fn spec(&self) -> PathBuf {
        self.path.join("spec")
    }

    /// The shared memory of worker and shim.
    pub fn page(&self) -> PathBuf {
        self.path.join("page")
    }

    /// The FIFO by which the worker wakes the shim.
    pub fn ctl(&self) -> PathBuf {
        self.path.join("ctl")
    }

    /// How the attempt ended, once that is known.
    pub fn outcome(&self) -> PathBuf {
        self.path.join("outcome")
    }

    /// What was said of the end, once the store has accepted it.
    pub fn report(&self) -> PathBuf {
        self.path.join("report")
    }

    /// Room on the disk for the outcome, taken before the task can fill it.
    pub fn outcome_tmp(&self) -> PathBuf {
        self.path.join("outcome.tmp")
    }

    /// The path of the cgroup leaf, written before the leaf is made.
    pub fn cgroup(&self) -> PathBuf {
        self.path.join("cgroup")
    }

    /// The paths of the groups that limit it, written before they are made.
    pub fn limits(&self) -> PathBuf {
        self.path.join("limits")
    }

    /// A segment of the log: 0 is the head, the others are the newest tail.
    pub fn log(&self, segment: u32) -> PathBuf {
        match segment {
            0 => self.path.join("log"),
            n => self.path.join(format!("log.{n}")),
        }
    }

    /// Room on the disk for the last line of the log, taken before the task can fill it.
    pub fn log_end(&self) -> PathBuf {
        self.path.join("log.end")
    }

    /// `FENCEPOST_LEASE_FILE`.
    pub fn lease(&self) -> PathBuf {
        self.path.join("lease")
    }

    /// `FENCEPOST_WORK_DIR`.
    pub fn work(&self) -> PathBuf {
        self.path.join("work")
    }

    /// `FENCEPOST_TMP_DIR`.
    pub fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// For the files between task and worker: inputs, params, outputs, result.
    pub fn io(&self) -> PathBuf {
        self.path.join("io")
    }
}
