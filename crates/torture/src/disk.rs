//! A small disk under a worker's home, which can be full.

use crate::clock::pause;
use anyhow::Context as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Room for a worker's home, and little more.
const SIZE: &str = "size=96m";

/// A file system in memory; unmounted when dropped.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts one over an empty directory; `None` where this user may not.
    pub fn mount(path: &Path) -> Option<Self> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", SIZE, "fencepost-torture"]).arg(path);
        let ran = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        ran.is_ok_and(|status| status.success()).then(|| Self(path.to_owned()))
    }

    /// Fills it to the last block, and makes room again after that time.
    pub fn fill(&self, span_ms: u64) -> anyhow::Result<()> {
        let ballast = self.0.join("ballast");
        let mut file = std::fs::File::create(&ballast).context("the ballast")?;
        // Smaller and smaller pieces, until nothing fits any more.
        for size in [1 << 20, 4 << 10, 1] {
            let piece = vec![0; size];
            while file.write_all(&piece).is_ok() {}
        }
        pause(span_ms);
        Ok(std::fs::remove_file(&ballast)?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // What still looks at it keeps it until it ends.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
