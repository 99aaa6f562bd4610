//! One leaf of a cgroup v2 hierarchy per attempt: killed as a whole, and seen to be empty.
//!
//! No controller is switched on here: limits are the administrator's. The shim stays outside.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::process::ProcessId;

/// A leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Leaf {
    path: PathBuf,
}

/// Where this process may make leaves: its own place in the v2 hierarchy, also where that is
/// mounted beside v1 ones.
pub(crate) fn parent() -> io::Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let own = fs::read_to_string("/proc/self/cgroup")?;
    place(&mounts, &own).ok_or_else(|| io::Error::other("no cgroup v2 hierarchy is mounted"))
}

fn place(mounts: &str, own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        right.starts_with("cgroup2 ").then_some(())?;
        let mut fields = left.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        // What lies above the mount's root (a cgroup namespace) cannot be reached.
        let below = if root == "/" { path } else { path.strip_prefix(root)? };
        (!below.contains("..")).then(|| Path::new(mount).join(below.trim_start_matches('/')))
    })
}

/// What the names of leaves begin with.
const PREFIX: &str = "fencepost-";

impl Leaf {
    /// The leaf of that name below `parent`; nothing is made yet.
    pub(crate) fn named(parent: &Path, name: &str) -> Self {
        let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        Self { path: parent.join(format!("{PREFIX}{}", name.replace(|c| safe(c) != c, "_"))) }
    }

    /// The leaf whose path was recorded in a file. A shim that died while it wrote the file had not
    /// made the leaf yet: what it left is no record, and must not become a path of some other place.
    pub(crate) fn recorded(file: &Path) -> Option<Self> {
        Self::at(&fs::read_to_string(file).ok()?)
    }

    /// The leaf at that path, if it is one of ours.
    pub(crate) fn at(path: &str) -> Option<Self> {
        let path = PathBuf::from(path);
        let name = path.file_name()?.to_str()?;
        (path.is_absolute() && name.starts_with(PREFIX)).then_some(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the leaf; refuses a kernel that cannot kill it as a whole.
    pub(crate) fn make(&self) -> io::Result<()> {
        fs::create_dir(&self.path)?;
        if self.path.join("cgroup.kill").exists() {
            return Ok(());
        }
        let _ = fs::remove_dir(&self.path);
        Err(io::Error::other("the kernel has no cgroup.kill"))
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// SIGKILL to everything in it, forks in flight included.
    pub(crate) fn kill(&self) -> io::Result<()> {
        match fs::write(self.path.join("cgroup.kill"), "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// True when nothing lives in it or below it; an unreadable leaf that is there is not empty.
    pub(crate) fn is_empty(&self) -> bool {
        match fs::read_to_string(self.path.join("cgroup.events")) {
            Ok(text) => text.lines().any(|line| line == "populated 0"),
            Err(_) => !self.exists(),
        }
    }

    /// What runs in it, with the descriptor by which it may be signalled.
    ///
    /// The list is read again after the descriptors were opened: one that was reused meanwhile by
    /// a process elsewhere is not in it.
    pub(crate) fn members(&self) -> Vec<(ProcessId, std::os::fd::OwnedFd)> {
        let found: Vec<_> = self
            .pids()
            .into_iter()
            .filter_map(ProcessId::of)
            .filter_map(|id| Some((id, id.open().ok()??)))
            .collect();
        let still = self.pids();
        found.into_iter().filter(|(id, _)| still.contains(&id.pid)).collect()
    }

    fn pids(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// CPU time used in it so far.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        let text = fs::read_to_string(self.path.join("cpu.stat")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok())
    }

    /// Takes the leaf away, if it is empty.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

/// Counts how often the kernel killed for want of memory around a task.
#[derive(Debug)]
pub(crate) struct OomWatch {
    file: Option<PathBuf>,
    before: u64,
}

impl OomWatch {
    /// Watches a group of the task's own (its limits', its leaf), or else this process's own memory
    /// cgroup (a hint only: neighbours count).
    pub(crate) fn begin(own: Option<&Path>) -> Self {
        let file = own
            .and_then(|group| {
                let files = ["memory.events", "memory.oom_control"].map(|name| group.join(name));
                files.into_iter().find(|file| file.exists())
            })
            .or_else(own_memory_events);
        let before = file.as_deref().map_or(0, oom_kills);
        Self { file, before }
    }

    pub(crate) fn has_killed(&self) -> bool {
        self.file.as_deref().is_some_and(|file| oom_kills(file) > self.before)
    }
}

fn oom_kills(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok()).unwrap_or(0)
}

fn own_memory_events() -> Option<PathBuf> {
    if let Some(file) = parent().ok().map(|path| path.join("memory.events")).filter(|f| f.exists())
    {
        return Some(file);
    }
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.split_once(":memory:"))?.1.trim_start_matches('/');
    let file = Path::new("/sys/fs/cgroup/memory").join(path).join("memory.oom_control");
    file.exists().then_some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "36 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n\
                          41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_place_is_found_in_pure_hybrid_and_namespaced_hierarchies() {
        let check = |mounts: &str, own: &str, expected: Option<&str>| {
            assert_eq!(place(mounts, own).as_deref(), expected.map(Path::new));
        };
        check(HYBRID, "8:pids:/x\n0::/\n", Some("/sys/fs/cgroup/unified/"));
        check(
            HYBRID,
            "0::/system.slice/fp.service\n",
            Some("/sys/fs/cgroup/unified/system.slice/fp.service"),
        );
        check(HYBRID, "0::/../other\n", None);
        check(HYBRID, "8:pids:/x\n", None);
        let bound = "30 1 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        check(bound, "0::/docker/abc/leaf\n", Some("/sys/fs/cgroup/leaf"));
        check("36 31 0:33 / /x rw - cgroup cgroup rw\n", "0::/\n", None);
    }

    /// Seen: a shim killed between making the file and writing it, and a `cgroup.kill` in the
    /// worker's own directory.
    #[test]
    fn a_record_that_was_not_written_to_its_end_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cgroup");
        assert!(Leaf::recorded(&file).is_none());
        for (text, is_record) in
            [("", false), ("/sys/fs/cg", false), ("fencepost-1", false), ("/c/fencepost-1", true)]
        {
            fs::write(&file, text).unwrap();
            assert_eq!(Leaf::recorded(&file).is_some(), is_record, "{text}");
        }
    }

    #[test]
    fn names_of_leaves_cannot_leave_their_parent() {
        let leaf = Leaf::named(Path::new("/c"), "../a b");
        assert_eq!(leaf.path(), Path::new("/c/fencepost-___a_b"));
    }
}
