//! The identity of a process: a pid alone is reused, a pid with its start time is not.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// A process of this PID namespace and this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    /// As seen in the PID namespace of whoever recorded it.
    pub pid: i32,
    /// Field 22 of `/proc/PID/stat`: clock ticks since boot.
    pub start: u64,
}

/// What one line of `/proc/PID/stat` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) id: ProcessId,
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: i32,
    /// User and system time in ticks.
    pub(crate) ticks: u64,
    /// User and system time in ticks of the children that it has waited for.
    pub(crate) child_ticks: u64,
}

impl Stat {
    /// Reads `/proc/PID/stat`; `None` when there is no such process (any more).
    pub(crate) fn of(pid: i32) -> Option<Self> {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name stands in parentheses and may itself hold parentheses and spaces.
        let (pid, rest) = text.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            id: ProcessId { pid: pid.parse().ok()?, start: number(19)? },
            name: name.to_owned(),
            state: fields.first()?.chars().next()?,
            parent: fields.get(1)?.parse().ok()?,
            ticks: number(11)? + number(12)?,
            child_ticks: number(13)? + number(14)?,
        })
    }

    /// Dead but not yet waited for.
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

impl ProcessId {
    /// The identity of a process that lives, or of a zombie.
    pub fn of(pid: i32) -> Option<Self> {
        Stat::of(pid).map(|stat| stat.id)
    }

    /// A pidfd of exactly this process; `None` if it is gone, also if its pid was reused.
    ///
    /// The descriptor is opened first and the start time compared afterwards: had the pid been
    /// reused before the opening, the start time would differ.
    pub fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        let fd = match pidfd_open(pid, PidfdFlags::NONBLOCK) {
            Ok(fd) => fd,
            Err(Errno::SRCH) => return Ok(None),
            // Kernels before 5.10 know no NONBLOCK; only polling needs the descriptor here.
            Err(Errno::INVAL) => match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(fd) => fd,
                Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
                Err(other) => return Err(other.into()),
            },
            Err(other) => return Err(other.into()),
        };
        Ok((Self::of(self.pid) == Some(self)).then_some(fd))
    }
}

/// The inode of this process's PID namespace: pids of another one mean nothing here.
pub fn pid_namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/pid")?.ino())
}

/// All processes that `/proc` shows.
pub(crate) fn all() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(Stat::of)
        .collect()
}

/// The descendants of `root` among `all`, without `root` itself.
pub(crate) fn descendants(all: &[Stat], root: i32) -> Vec<&Stat> {
    let mut found: Vec<&Stat> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for stat in all.iter().filter(|stat| stat.parent == parent && stat.id.pid != root) {
            parents.push(stat.id.pid);
            found.push(stat);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 555 1 2";
        let stat = Stat::parse(line).unwrap();
        assert_eq!(stat.id, ProcessId { pid: 42, start: 555 });
        assert_eq!(stat.name, "a) b (c");
        assert_eq!((stat.state, stat.parent, stat.ticks, stat.child_ticks), ('S', 7, 30, 70));
        assert_eq!(Stat::parse("42 (cut off) S 7"), None);
    }

    #[test]
    fn another_start_time_is_another_process() {
        let me = ProcessId::of(i32::try_from(std::process::id()).unwrap()).unwrap();
        assert!(me.open().unwrap().is_some());
        let reused = ProcessId { start: me.start + 1, ..me };
        assert!(reused.open().unwrap().is_none());
        assert!(ProcessId { pid: 0, start: 0 }.open().unwrap().is_none());
    }

    #[test]
    fn descendants_are_found_through_generations() {
        let stat = |pid, parent| Stat {
            id: ProcessId { pid, start: 1 },
            name: String::new(),
            state: 'S',
            parent,
            ticks: 0,
            child_ticks: 0,
        };
        let all = [stat(2, 1), stat(3, 2), stat(4, 3), stat(5, 1)];
        let mut pids: Vec<i32> = descendants(&all, 2).iter().map(|s| s.id.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 4]);
    }
}
