//! The first process of an attempt's PID namespace: it reaps, it tells the shim how the main
//! process ended, and it dies with the shim; with it the kernel ends everything else in there.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process_group, set_parent_process_death_signal, wait,
};

use super::messages::{MainEnd, Message};
use super::user::{ChildPipes, UserPlan};
use crate::process;
use crate::sys::{self, Forked};

/// SIGTERM to the main process's group.
pub(super) const TERMINATE_GROUP: u8 = b'g';
/// SIGTERM to everything that is left.
pub(super) const TERMINATE_REST: u8 = b'r';
/// Tell how much CPU was used.
pub(super) const REPORT_CPU: u8 = b'c';

/// Names of leftovers that are told.
const NAMES_MAX: usize = 20;

/// What init gets from the shim.
pub(super) struct InitPlan<'a> {
    pub(super) user: &'a UserPlan,
    pub(super) pipes: ChildPipes,
    /// Commands of the shim.
    pub(super) orders: OwnedFd,
    /// Of the shim itself, opened before the fork.
    pub(super) shim: OwnedFd,
    /// User and group ids outside, if there is a user namespace to map.
    pub(super) map_ids: Option<(u32, u32)>,
}

/// Runs as init, for good.
pub(super) fn run(plan: &InitPlan<'_>) -> ! {
    // First of all, for among the rest is a copy of the shim's lock.
    let ChildPipes { stdout, stderr, gate, status } = &plan.pipes;
    let kept = [stdout, stderr, gate, status, &plan.orders, &plan.shim];
    sys::close_all_but(&kept.map(|end| end.as_raw_fd()));
    let _ = rustix::thread::set_name(c"fencepost-init");
    if let Err(why) = contain(plan) {
        Message::NoLevel(why).send(status);
        sys::exit_now(1);
    }
    let main = match sys::fork(0) {
        Ok(Forked::Child) => plan.user.become_user(&plan.pipes, || true),
        Ok(Forked::Parent { pid, .. }) => pid,
        Err(error) => {
            Message::NoLevel(format!("fork: {error}")).send(status);
            sys::exit_now(1);
        }
    };
    let Ok(signals) = sys::signals_as_fd(&[libc::SIGCHLD]) else { sys::exit_now(1) };
    // Nor does init hold the task's pipes open.
    sys::close_all_but(&[status.as_raw_fd(), plan.orders.as_raw_fd(), signals.as_raw_fd()]);
    let devnull = rustix::fs::OFlags::RDWR;
    if let Ok(null) = rustix::fs::open("/dev/null", devnull, rustix::fs::Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&null);
    }
    Message::Ready.send(status);
    Init { main: Pid::from_raw(main), status, orders: &plan.orders, signals: &signals }.serve()
}

/// Ties init to the shim, and gives the namespace its own `/proc`.
fn contain(plan: &InitPlan<'_>) -> Result<(), String> {
    let failed = |what: &str, error: &dyn std::fmt::Display| format!("{what}: {error}");
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| failed("prctl", &e))?;
    // From in here a parent outside has pid 0, dead or alive; its pidfd tells them apart. A shim
    // that died before the call above would never be noticed otherwise.
    if is_dead(&plan.shim) {
        sys::exit_now(1);
    }
    if let Some((uid, gid)) = plan.map_ids {
        map_ids(uid, gid).map_err(|e| failed("user namespace", &e))?;
    }
    // A slave of the host's mounts: what is mounted in here stays in here.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(|e| failed("mount namespace", &e))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None).map_err(|e| failed("mounting /proc", &e))
}

fn is_dead(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::IN)];
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&zero)).is_ok_and(|count| count > 0)
}

fn map_ids(uid: u32, gid: u32) -> std::io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))
}

struct Init<'a> {
    main: Option<Pid>,
    status: &'a OwnedFd,
    orders: &'a OwnedFd,
    signals: &'a OwnedFd,
}

impl Init<'_> {
    fn serve(mut self) -> ! {
        loop {
            self.reap();
            let mut fds =
                [PollFd::new(self.signals, PollFlags::IN), PollFd::new(self.orders, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            if !fds[1].revents().is_empty() {
                self.obey();
            }
            sys::drain_signals(self.signals, libc::SIGCHLD);
        }
    }

    /// Waits for whatever has ended; the namespace is empty when init has no child.
    fn reap(&mut self) {
        let mut ended = None;
        let empty = loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.main => {
                    self.main = None;
                    ended = Some(match status.terminating_signal() {
                        Some(signal) => MainEnd::Signal(signal),
                        None => MainEnd::Exit(status.exit_status().unwrap_or(-1)),
                    });
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        if let Some(end) = ended {
            let names = if empty { Vec::new() } else { others() };
            let shown: Vec<&str> = names.iter().take(NAMES_MAX).map(String::as_str).collect();
            Message::Main(end, names.len() as u64, shown.join(" ")).send(self.status);
        }
        if empty {
            sys::exit_now(0);
        }
    }

    fn obey(&mut self) {
        let mut orders = [0; 16];
        let count = match rustix::io::read(self.orders, &mut orders[..]) {
            // The shim is gone; the kernel's signal may only be a moment behind.
            Ok(0) => sys::exit_now(1),
            Ok(count) => count,
            Err(_) => return,
        };
        for order in &orders[..count] {
            match (*order, self.main) {
                // The pid is reserved for its group until it has been waited for.
                (TERMINATE_GROUP, Some(main)) => {
                    let _ = kill_process_group(main, Signal::TERM);
                }
                (TERMINATE_GROUP | TERMINATE_REST, _) => {
                    let _ = sys::terminate_namespace();
                }
                (REPORT_CPU, _) => Message::Cpu(cpu_ticks()).send(self.status),
                _ => {}
            }
        }
    }
}

/// The names of all processes of the namespace but init.
fn others() -> Vec<String> {
    process::all()
        .into_iter()
        .filter(|stat| stat.id.pid != 1 && !stat.is_zombie())
        .map(|stat| stat.name.replace(char::is_whitespace, "_"))
        .collect()
}

/// CPU of the tree: what lives, and what was waited for (init's own does not count).
fn cpu_ticks() -> u64 {
    let count = |stat: process::Stat| {
        if stat.id.pid == 1 { stat.child_ticks } else { stat.ticks + stat.child_ticks }
    };
    process::all().into_iter().map(count).sum()
}
