//! What an attempt's processes may use together: `resources` of its task, by the kernel's control groups.
//!
//! A controller of the v2 hierarchy is used where it was handed down to this process's place (systemd:
//! `Delegate=yes`), else one of a v1 hierarchy that may be written to. What there is of the tree is
//! put into the groups while it waits at its gate, so that all of the user's is born in them. A limit that
//! cannot be set is told in the attempt's log; it is no reason not to run.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cgroup::{self, Leaf};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Thousandths of a core.
    pub cpu_millis: Option<u64>,
    /// Bytes.
    pub memory: Option<u64>,
}

/// The period over which the use of CPU is counted, in microseconds.
const PERIOD: u64 = 100_000;
const MIB: u64 = 1 << 20;

/// The groups of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Made by us, in the order of making.
    made: Vec<Leaf>,
    memory: Option<Memory>,
    /// What cannot be had here, and why.
    pub(crate) absent: Vec<String>,
}

/// A limit of memory that is in force.
#[derive(Debug)]
struct Memory {
    limit: u64,
    peak: PathBuf,
}

/// Where groups may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// A place of v2 whose children have the controller.
    Two(PathBuf),
    One(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Controller {
    Memory,
    Cpu,
}

impl Controller {
    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
        }
    }
}

impl Limits {
    /// Puts processes into groups with the limits. `leaf`: the group that they are in already, if their
    /// containment made one; `record`: where the paths of new ones are written before they are made.
    pub(crate) fn put(
        of: Resources,
        leaf: Option<&Leaf>,
        (name, pids): (&str, &[i32]),
        record: &Path,
    ) -> Self {
        let mut limits = Self::default();
        let wanted = [(Controller::Memory, of.memory), (Controller::Cpu, of.cpu_millis)];
        for (controller, amount) in wanted {
            let Some(amount) = amount else { continue };
            let done = place(controller).and_then(|place| {
                let group = limits.group(&place, leaf, name, record)?;
                let peak = set(&place, group.path(), controller, amount)?;
                let procs = group.path().join("cgroup.procs");
                pids.iter().try_for_each(|pid| fs::write(&procs, pid.to_string()))?;
                Ok(peak)
            });
            match done {
                Ok(Some(peak)) => limits.memory = Some(Memory { limit: amount, peak }),
                Ok(None) => {}
                Err(error) => {
                    let what = controller.name();
                    limits
                        .absent
                        .push(format!("the limit of {what} is not enforced here: {error}"));
                }
            }
        }
        limits
    }

    /// The group to use at a place: the one that is there, or a new one.
    fn group(
        &mut self,
        place: &Place,
        leaf: Option<&Leaf>,
        name: &str,
        record: &Path,
    ) -> io::Result<Leaf> {
        let parent = match place {
            Place::Two(_) if leaf.is_some() => {
                return leaf.cloned().ok_or_else(|| io::Error::other("no leaf"));
            }
            Place::Two(parent) | Place::One(parent) => parent,
        };
        let group = Leaf::named(parent, &format!("limits-{name}"));
        if self.made.contains(&group) {
            return Ok(group);
        }
        let lines = self.made.iter().chain([&group]).map(|one| one.path().display().to_string());
        fs::write(record, lines.collect::<Vec<_>>().join("\n"))?;
        fs::create_dir(group.path())?;
        self.made.push(group.clone());
        Ok(group)
    }

    /// The group whose kills for want of memory are the task's own.
    pub(crate) fn memory_group(&self) -> Option<&Path> {
        self.memory.as_ref()?.peak.parent()
    }

    /// The limit of memory and what was used of it, in words.
    pub(crate) fn used(&self) -> Option<String> {
        let memory = self.memory.as_ref()?;
        let peak = fs::read_to_string(&memory.peak).ok()?.trim().parse::<u64>().ok()?;
        let (peak, limit) = (peak.div_ceil(MIB), memory.limit.div_ceil(MIB));
        Some(format!("{peak} MiB of its limit of {limit} MiB were used"))
    }

    /// Takes the groups away, if they are empty.
    pub(crate) fn remove(&self) -> bool {
        self.made.iter().map(Leaf::remove).fold(true, |all, done| all & done.is_ok())
    }
}

/// Takes away what a shim that died has recorded.
pub(crate) fn remove_recorded(record: &Path) -> io::Result<()> {
    let text = fs::read_to_string(record).unwrap_or_default();
    text.lines().filter_map(Leaf::at).try_for_each(|leaf| leaf.remove())
}

/// Sets the limit; for memory where the most that was used can be read.
fn set(
    place: &Place,
    group: &Path,
    controller: Controller,
    amount: u64,
) -> io::Result<Option<PathBuf>> {
    let put = |file: &str, text: String| fs::write(group.join(file), text);
    match (place, controller) {
        (Place::Two(_), Controller::Memory) => {
            put("memory.max", amount.to_string())?;
            // Where there is swap, the limit would be none.
            let _ = put("memory.swap.max", "0".into());
            Ok(Some(group.join("memory.peak")))
        }
        (Place::One(_), Controller::Memory) => {
            put("memory.limit_in_bytes", amount.to_string())?;
            let _ = put("memory.memsw.limit_in_bytes", amount.to_string());
            Ok(Some(group.join("memory.max_usage_in_bytes")))
        }
        (Place::Two(_), Controller::Cpu) => {
            put("cpu.max", format!("{} {PERIOD}", quota(amount)))?;
            Ok(None)
        }
        (Place::One(_), Controller::Cpu) => {
            put("cpu.cfs_period_us", PERIOD.to_string())?;
            put("cpu.cfs_quota_us", quota(amount).to_string())?;
            Ok(None)
        }
    }
}

/// The kernel takes no less than a millisecond a period.
fn quota(cpu_millis: u64) -> u64 {
    (cpu_millis * PERIOD / 1_000).max(1_000)
}

fn place(controller: Controller) -> io::Result<Place> {
    let two = cgroup::parent().ok().filter(|parent| {
        let handed_down = fs::read_to_string(parent.join("cgroup.subtree_control"));
        handed_down.is_ok_and(|text| text.split_whitespace().any(|one| one == controller.name()))
    });
    if let Some(parent) = two {
        return Ok(Place::Two(parent));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let parent = first_version(&mounts, &own, controller.name());
    parent.map(Place::One).ok_or_else(|| {
        io::Error::other(
            "no cgroup controller was handed down to this worker (systemd: Delegate=yes)",
        )
    })
}

/// The place of this process in the v1 hierarchy of a controller.
fn first_version(mounts: &str, own: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|one| one == controller).then_some(path)
    })?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut kind = right.split(' ');
        (kind.next() == Some("cgroup")).then_some(())?;
        kind.next_back()?.split(',').any(|option| option == controller).then_some(())?;
        let mut fields = left.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        let below = if root == "/" { path } else { path.strip_prefix(root)? };
        (!below.contains("..")).then(|| Path::new(mount).join(below.trim_start_matches('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_the_first_version_is_found() {
        let mounts = "36 31 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                      37 31 0:34 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let own = "4:memory:/a/b\n1:cpu,cpuacct:/\n0::/\n";
        let found = |controller| first_version(mounts, own, controller);
        assert_eq!(found("memory"), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(found("cpu"), Some("/sys/fs/cgroup/cpu,cpuacct/".into()));
        assert_eq!(found("pids"), None);
        assert_eq!(first_version(mounts, "4:memory:/../x\n", "memory"), None);
    }

    #[test]
    fn limits_are_written_in_the_words_of_each_version() {
        let dir = tempfile::tempdir().unwrap();
        let read = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap();
        let two = Place::Two(dir.path().into());
        set(&two, dir.path(), Controller::Cpu, 1_500).unwrap();
        let peak = set(&two, dir.path(), Controller::Memory, 64 << 20).unwrap();
        assert_eq!(
            (read("cpu.max"), read("memory.max")),
            ("150000 100000".into(), "67108864".into())
        );
        assert_eq!(peak, Some(dir.path().join("memory.peak")));
        let one = Place::One(dir.path().into());
        set(&one, dir.path(), Controller::Cpu, 5).unwrap();
        set(&one, dir.path(), Controller::Memory, 1 << 20).unwrap();
        assert_eq!(read("cpu.cfs_quota_us"), "1000");
        assert_eq!(read("memory.limit_in_bytes"), "1048576");
    }
}
