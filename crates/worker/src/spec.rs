//! What a worker tells a shim to run: the `spec` file.
//!
//! A newer worker may meet an older shim and the other way round, so unknown fields are ignored
//! and new fields need a default; only a change that an old shim would get wrong raises `VERSION`.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::clock::ClockKind;
use crate::dir::AttemptDir;
pub use crate::limits::Resources;

/// The newest version that this program understands.
pub const VERSION: u32 = 2;
/// What a spec without private files says.
const OLDEST: u32 = 1;

/// How strongly a task's process tree is held together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Containment {
    /// The strongest of the others that the machine allows.
    #[default]
    Auto,
    /// A PID namespace: the kernel ends the tree with its first process.
    Pidns,
    /// A leaf of a cgroup v2 hierarchy, ended by `cgroup.kill`.
    Cgroup,
    /// A process group and a subreaper: the unclean death of the shim proves nothing.
    Group,
}

/// The level of containment that an attempt has reached, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Process group, subreaper and parent death signal.
    Group,
    /// A cgroup v2 leaf.
    Cgroup,
    /// A PID namespace.
    Pidns,
}

impl Level {
    /// The code of this level in the page.
    pub fn code(self) -> u64 {
        match self {
            Self::Group => 1,
            Self::Cgroup => 2,
            Self::Pidns => 3,
        }
    }

    /// The level of a code of [`Level::code`].
    pub fn from_code(code: u64) -> Option<Self> {
        match code {
            1 => Some(Self::Group),
            2 => Some(Self::Cgroup),
            3 => Some(Self::Pidns),
            _ => None,
        }
    }

    /// The word that people see.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Cgroup => "cgroup",
            Self::Pidns => "pidns",
        }
    }
}

/// One attempt, as the shim needs to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimSpec {
    /// [`VERSION`] of the writer.
    pub version: u32,
    /// The fencing token, a decimal string.
    pub token: String,
    /// Also looked for in `/proc/*/environ` where nothing stronger contains the tree.
    pub attempt_id: String,
    /// Program and arguments; a program without a slash is searched in `PATH` of `env`.
    pub argv: Vec<String>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(String, String)>,
    /// Where the task starts.
    pub cwd: PathBuf,
    /// Only a shim that runs as root can do this.
    #[serde(default)]
    pub run_as_user: Option<String>,
    /// What is asked for.
    #[serde(default)]
    pub containment: Containment,
    /// What its processes may use together.
    #[serde(default)]
    pub resources: Resources,
    /// Between SIGTERM and SIGKILL, as the task wants it.
    pub kill_grace_ms: u64,
    /// Between SIGTERM and SIGKILL, as the worker's lease allows it; the smaller one counts.
    pub worker_kill_grace_ms: u64,
    /// Counted from the exec on the page's clock.
    #[serde(default)]
    pub execution_timeout_ms: Option<u64>,
    /// No output and no CPU of the tree for this long.
    #[serde(default)]
    pub stall_timeout_ms: Option<u64>,
    /// It runs on without a lease: its deadline is none.
    #[serde(default)]
    pub keeps: bool,
    /// Exit codes that mean success also after our own signal.
    #[serde(default)]
    pub graceful_exit_codes: Vec<i32>,
    /// Bytes of log on disk, frames included.
    #[serde(default = "default_log_limit")]
    pub log_limit: u64,
    /// The clock of the page.
    pub clock: ClockKind,
    /// Everything is gone this long before the deadline.
    pub margin_ms: u64,
    /// `FENCEPOST_RESULT_FILE`: success in it before our signal counts.
    #[serde(default)]
    pub result_file: Option<PathBuf>,
    /// Declared outputs, name and type: for a worker that collects the end and was told nothing else.
    #[serde(default)]
    pub outputs: Vec<(String, String)>,
    /// A directory with what must not lie in this file: a shim that does not know it must not run the
    /// attempt (version 2).
    #[serde(default)]
    pub private: Option<PathBuf>,
}

/// 64 MiB.
pub const DEFAULT_LOG_LIMIT: u64 = 64 << 20;

fn default_log_limit() -> u64 {
    DEFAULT_LOG_LIMIT
}

/// The version that a spec needs of its reader.
pub const fn version_of(private: Option<&PathBuf>) -> u32 {
    if private.is_some() { VERSION } else { OLDEST }
}

/// Why a spec cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// The file cannot be read or written.
    #[error("spec file")]
    Io(#[from] io::Error),
    /// The file is not a spec.
    #[error("spec file: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Written by a newer worker, in a way that would be misunderstood.
    #[error("spec has version {0}, this shim understands up to {VERSION}")]
    TooNew(u32),
    /// Nothing to run.
    #[error("spec names no program")]
    NoProgram,
    /// A text that cannot be handed to a process.
    #[error("{0} holds a NUL byte")]
    Nul(&'static str),
    /// A variable without a name, or with `=` in its name.
    #[error("`{0}` is not a name of an environment variable")]
    VariableName(String),
}

impl ShimSpec {
    /// Checks what would make the exec impossible.
    pub fn check(&self) -> Result<(), SpecError> {
        if self.version > VERSION {
            return Err(SpecError::TooNew(self.version));
        }
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(SpecError::NoProgram);
        }
        if self.argv.iter().any(|arg| arg.contains('\0')) {
            return Err(SpecError::Nul("an argument"));
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains('=') {
                return Err(SpecError::VariableName(name.clone()));
            }
            if name.contains('\0') || value.contains('\0') {
                return Err(SpecError::Nul("the environment"));
            }
        }
        if self.cwd.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(SpecError::Nul("the working directory"));
        }
        Ok(())
    }

    /// Reads and checks the spec of an attempt.
    pub fn read(dir: &AttemptDir) -> Result<Self, SpecError> {
        let bytes = fs::read(dir.spec())?;
        // The version is looked at first: the rest of a newer file may not even parse.
        #[derive(Deserialize)]
        struct Head {
            version: u32,
        }
        let head: Head = serde_json::from_slice(&bytes)?;
        if head.version > VERSION {
            return Err(SpecError::TooNew(head.version));
        }
        let spec: Self = serde_json::from_slice(&bytes)?;
        spec.check()?;
        Ok(spec)
    }

    /// The time between SIGTERM and SIGKILL.
    pub fn grace_ms(&self) -> u64 {
        self.kill_grace_ms.min(self.worker_kill_grace_ms)
    }

    /// The last instant at which a shim may go on unrenewed: then it ends its tree in order.
    pub fn fence_at_ns(&self, deadline_ns: u64) -> u64 {
        let before = self.grace_ms().saturating_add(self.margin_ms);
        deadline_ns.saturating_sub(before.saturating_mul(crate::clock::NS_PER_MS))
    }
}
