//! What the harness itself did, written down in its folder for the checker: faults, triggers, and which
//! instants of the two clocks belong together.

use crate::clock::{boot_ns, wall_us};
use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A fault that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub kind: String,
    /// Whom it met.
    pub target: String,
    /// How long it was meant to last.
    #[serde(default)]
    pub span_ms: u64,
    /// On the boot-time clock.
    pub began: u64,
    pub ended: u64,
    /// Attempts that ran as it began.
    pub running: usize,
    /// What did not go as planned.
    pub trouble: Option<String>,
}

/// A run that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    pub dag: String,
    pub run: String,
    /// When the answer came; `None`: it is not known whether it was made.
    pub acknowledged: Option<u64>,
}

/// The two clocks at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instants {
    pub boot_ns: u64,
    pub wall_us: i64,
}

/// The files of a folder.
#[derive(Debug, Clone)]
pub struct Record {
    folder: PathBuf,
}

impl Record {
    /// The files of this folder.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Writes down a fault.
    pub fn fault(&self, done: &Done) -> anyhow::Result<()> {
        self.append("faults", done)
    }

    /// Writes down a trigger.
    pub fn trigger(&self, trigger: &Trigger) -> anyhow::Result<()> {
        self.append("triggers", trigger)
    }

    /// Writes down the clocks.
    pub fn clocks(&self) -> anyhow::Result<()> {
        self.append("clocks", &Instants { boot_ns: boot_ns(), wall_us: wall_us() })
    }

    /// The faults.
    pub fn faults(&self) -> anyhow::Result<Vec<Done>> {
        self.read("faults")
    }

    /// The triggers.
    pub fn triggers(&self) -> anyhow::Result<Vec<Trigger>> {
        self.read("triggers")
    }

    /// The clocks.
    pub fn instants(&self) -> anyhow::Result<Vec<Instants>> {
        self.read("clocks")
    }

    fn append(&self, name: &str, line: &impl Serialize) -> anyhow::Result<()> {
        let mut file = File::options().append(true).create(true).open(self.folder.join(name))?;
        Ok(file.write_all(format!("{}\n", serde_json::to_string(line)?).as_bytes())?)
    }

    /// A file of JSON lines; empty if there is none.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<Vec<T>> {
        let path = self.folder.join(name);
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = std::fs::read_to_string(&path)?;
        let parse = |line| serde_json::from_str(line).with_context(|| format!("{name}: {line}"));
        text.lines().map(parse).collect()
    }
}
