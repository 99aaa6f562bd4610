//! The process tree of one attempt, at the level of containment that was reached.
//!
//! `pidns`: the shim's child is the init of a PID namespace; its death is the tree's.
//! `cgroup` and `group`: the shim's child is the main process; the shim is the subreaper, so that
//! whatever lives of the tree hangs below it: no child left means that the tree is empty.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, kill_process_group, pidfd_open,
    pidfd_send_signal, set_child_subreaper, set_parent_process_death_signal, wait,
};

use super::init::{self, InitPlan};
use super::messages::{MainEnd, Message, Messages};
use super::user::{ChildPipes, UserPlan};
use crate::cgroup::{self, Leaf};
use crate::dir::AttemptDir;
use crate::process::{self, ProcessId};
use crate::spec::{Containment, Level, ShimSpec};
use crate::sys::{self, Forked, Usage};

/// The tree, contained and waiting at the gate.
pub(super) struct Launched {
    pub(super) tree: Tree,
    pub(super) gate: OwnedFd,
    pub(super) messages: Messages,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    /// Levels that were tried and are not to be had here.
    pub(super) passed_over: Vec<String>,
}

/// The tree.
pub(super) struct Tree {
    first: ProcessId,
    pidfd: OwnedFd,
    kind: Kind,
    empty: bool,
}

enum Kind {
    Namespace { orders: OwnedFd },
    Walked { leaf: Option<Leaf>, main_reaped: bool },
}

/// Launches at the level that is asked for, or at the strongest that is to be had.
pub(super) fn launch(
    spec: &ShimSpec,
    plan: &UserPlan,
    dir: &AttemptDir,
) -> Result<Launched, String> {
    let levels: &[Level] = match spec.containment {
        Containment::Auto => &[Level::Pidns, Level::Cgroup, Level::Group],
        Containment::Pidns => &[Level::Pidns],
        Containment::Cgroup => &[Level::Cgroup],
        Containment::Group => &[Level::Group],
    };
    let mut passed_over = Vec::new();
    for level in levels {
        let launched = match level {
            Level::Pidns => launch_namespace(spec, plan),
            Level::Cgroup => launch_leaf(spec, plan, dir),
            Level::Group => launch_walked(plan, None),
        };
        match launched {
            Ok(launched) => return Ok(Launched { passed_over, ..launched }),
            Err(why) => passed_over.push(format!("containment {}: {why}", level.as_str())),
        }
    }
    Err(passed_over.join("; "))
}

struct Pipes {
    child: ChildPipes,
    gate: OwnedFd,
    status: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

fn pipes() -> io::Result<Pipes> {
    let (child_gate, gate) = pipe_with(PipeFlags::CLOEXEC)?;
    let (status, child_status) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout, child_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, child_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
    for end in [&stdout, &stderr] {
        rustix::io::ioctl_fionbio(end, true)?;
    }
    let child = ChildPipes {
        stdout: child_stdout,
        stderr: child_stderr,
        gate: child_gate,
        status: child_status,
    };
    Ok(Pipes { child, gate, status, stdout, stderr })
}

fn launch_namespace(spec: &ShimSpec, plan: &UserPlan) -> Result<Launched, String> {
    let new_pid_and_mounts = libc::CLONE_NEWPID | libc::CLONE_NEWNS;
    let first = launch_init(plan, new_pid_and_mounts, None);
    match first {
        // Without the privilege, a user namespace gives it where the kernel allows; in there one
        // user exists, so it is no place for another one.
        Err(why) if spec.run_as_user.is_none() => {
            let ids = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            launch_init(plan, new_pid_and_mounts | libc::CLONE_NEWUSER, Some(ids))
                .map_err(|also| format!("{why}; in a user namespace: {also}"))
        }
        done => done,
    }
}

fn launch_init(
    plan: &UserPlan,
    flags: i32,
    map_ids: Option<(u32, u32)>,
) -> Result<Launched, String> {
    let text = |error: io::Error| error.to_string();
    let pipes = pipes().map_err(text)?;
    let (init_orders, orders) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| e.to_string())?;
    let shim = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|e| e.to_string())?;
    let init = InitPlan { user: plan, pipes: pipes.child, orders: init_orders, shim, map_ids };
    match sys::fork(flags).map_err(text)? {
        Forked::Child => init::run(&init),
        Forked::Parent { pid, pidfd } => {
            drop(init);
            let kind = Kind::Namespace { orders };
            let ends = (pipes.gate, pipes.status, pipes.stdout, pipes.stderr);
            launched((pid, pidfd), kind, ends)
        }
    }
}

fn launch_leaf(spec: &ShimSpec, plan: &UserPlan, dir: &AttemptDir) -> Result<Launched, String> {
    let text = |error: io::Error| error.to_string();
    let name = format!("{}-{}", spec.attempt_id, getpid().as_raw_nonzero());
    let leaf = Leaf::named(&cgroup::parent().map_err(text)?, &name);
    // Recorded first, so that a leaf is never made that nobody would find again.
    fs::write(dir.cgroup(), leaf.path().as_os_str().as_encoded_bytes()).map_err(text)?;
    let made = leaf.make().map_err(text).and_then(|()| launch_walked(plan, Some(leaf.clone())));
    if made.is_err() {
        let _ = leaf.remove();
        let _ = fs::remove_file(dir.cgroup());
    }
    made
}

fn launch_walked(plan: &UserPlan, leaf: Option<Leaf>) -> Result<Launched, String> {
    set_child_subreaper(Some(getpid())).map_err(|e| e.to_string())?;
    let pipes = pipes().map_err(|e| e.to_string())?;
    let shim = getpid();
    match fork_into(leaf.as_ref())? {
        Forked::Child => {
            Message::Ready.send(pipes.child.status.as_fd());
            plan.become_user(&pipes.child, || {
                // In this order: a shim that dies in between is seen by one or the other.
                set_parent_process_death_signal(Some(Signal::KILL)).is_ok()
                    && getppid() == Some(shim)
            })
        }
        Forked::Parent { pid, pidfd } => {
            drop(pipes.child);
            let kind = Kind::Walked { leaf, main_reaped: false };
            let ends = (pipes.gate, pipes.status, pipes.stdout, pipes.stderr);
            launched((pid, pidfd), kind, ends)
        }
    }
}

/// Forks, into the leaf if there is one.
fn fork_into(leaf: Option<&Leaf>) -> Result<Forked, String> {
    let Some(leaf) = leaf else { return sys::fork(0).map_err(|e| e.to_string()) };
    let into = |error: &dyn std::fmt::Display| format!("a process in the new cgroup: {error}");
    let dir = fs::File::open(leaf.path()).map_err(|e| into(&e))?;
    sys::fork_into(&dir.into()).map_err(|e| into(&e))
}

/// Waits until the child stands at its gate; one that cannot is waited for and given up.
fn launched(
    (pid, pidfd): (i32, OwnedFd),
    kind: Kind,
    (gate, status, stdout, stderr): (OwnedFd, OwnedFd, OwnedFd, OwnedFd),
) -> Result<Launched, String> {
    let mut messages = Messages::new(status);
    let why = match messages.next() {
        Some(Message::Ready) => match ProcessId::of(pid) {
            Some(first) => {
                rustix::io::ioctl_fionbio(messages.fd(), true).map_err(|e| e.to_string())?;
                let tree = Tree { first, pidfd, kind, empty: false };
                let passed_over = Vec::new();
                return Ok(Launched { tree, gate, messages, stdout, stderr, passed_over });
            }
            None => "/proc does not show the new process".to_owned(),
        },
        Some(Message::NoLevel(why)) => why,
        Some(other) => format!("unexpected word from the new process: {other:?}"),
        None => "the new process died at once".to_owned(),
    };
    drop(gate);
    let _ = pidfd_send_signal(&pidfd, Signal::KILL);
    let _ = rustix::process::waitpid(Pid::from_raw(pid), WaitOptions::empty());
    Err(why)
}

impl Tree {
    /// The child of the shim: init, or the main process.
    pub(super) fn first(&self) -> ProcessId {
        self.first
    }

    pub(super) fn level(&self) -> Level {
        match &self.kind {
            Kind::Namespace { .. } => Level::Pidns,
            Kind::Walked { leaf: Some(_), .. } => Level::Cgroup,
            Kind::Walked { leaf: None, .. } => Level::Group,
        }
    }

    pub(super) fn leaf(&self) -> Option<&Leaf> {
        match &self.kind {
            Kind::Namespace { .. } => None,
            Kind::Walked { leaf, .. } => leaf.as_ref(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.empty && self.leaf().is_none_or(Leaf::is_empty)
    }

    /// Waits for whatever has ended. Says how the main process ended, where it is the shim's child.
    pub(super) fn reap(&mut self) -> Option<MainEnd> {
        let mut main = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if let Kind::Walked { main_reaped, .. } = &mut self.kind
                        && pid.as_raw_nonzero().get() == self.first.pid
                    {
                        *main_reaped = true;
                        main = Some(match status.terminating_signal() {
                            Some(signal) => MainEnd::Signal(signal),
                            None => MainEnd::Exit(status.exit_status().unwrap_or(-1)),
                        });
                    }
                }
                Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_no_child) => {
                    self.empty = true;
                    break;
                }
            }
        }
        main
    }

    /// SIGTERM to the process group of the main process.
    pub(super) fn terminate_group(&self) {
        match &self.kind {
            Kind::Namespace { .. } => self.order(init::TERMINATE_GROUP),
            // Reserved for this group until the main process has been waited for.
            Kind::Walked { main_reaped: false, .. } => {
                if let Some(main) = Pid::from_raw(self.first.pid) {
                    let _ = kill_process_group(main, Signal::TERM);
                }
            }
            Kind::Walked { .. } => self.terminate_rest(),
        }
    }

    /// SIGTERM to everything that is left.
    pub(super) fn terminate_rest(&self) {
        match &self.kind {
            Kind::Namespace { .. } => self.order(init::TERMINATE_REST),
            Kind::Walked { .. } => self.signal_all(Signal::TERM),
        }
    }

    /// SIGKILL to everything.
    pub(super) fn kill(&self) {
        match &self.kind {
            // The kernel ends the namespace with its init, and waits for all of it.
            Kind::Namespace { .. } => {
                let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            }
            Kind::Walked { leaf, .. } => {
                if let Some(leaf) = leaf {
                    let _ = leaf.kill();
                }
                self.signal_all(Signal::KILL);
            }
        }
    }

    /// What is left, by name, where the shim can see it (init tells it itself).
    pub(super) fn left(&self) -> Vec<String> {
        match &self.kind {
            Kind::Namespace { .. } => Vec::new(),
            Kind::Walked { .. } => {
                let all = process::all();
                let below = process::descendants(&all, own_pid());
                below.into_iter().filter(|s| !s.is_zombie()).map(|s| s.name.clone()).collect()
            }
        }
    }

    /// CPU used by the tree, in ticks or microseconds; `None` when init will tell it later.
    pub(super) fn cpu(&self) -> Option<u64> {
        match &self.kind {
            Kind::Namespace { .. } => {
                self.order(init::REPORT_CPU);
                None
            }
            Kind::Walked { leaf: Some(leaf), .. } => leaf.cpu_us(),
            Kind::Walked { leaf: None, .. } => {
                let all = process::all();
                let below = process::descendants(&all, own_pid());
                let living: u64 = below.iter().map(|stat| stat.ticks + stat.child_ticks).sum();
                Some(living * 10_000 + Usage::of_children().cpu_us)
            }
        }
    }

    fn order(&self, order: u8) {
        if let Kind::Namespace { orders } = &self.kind {
            let _ = rustix::io::write(orders, &[order]);
        }
    }

    /// Every process below the shim or in its leaf, each by a descriptor of exactly that process.
    fn signal_all(&self, signal: Signal) {
        let all = process::all();
        for stat in process::descendants(&all, own_pid()) {
            if let Ok(Some(pidfd)) = stat.id.open() {
                let _ = pidfd_send_signal(&pidfd, signal);
            }
        }
        for (_, pidfd) in self.leaf().map(Leaf::members).unwrap_or_default() {
            let _ = pidfd_send_signal(&pidfd, signal);
        }
    }
}

fn own_pid() -> i32 {
    getpid().as_raw_nonzero().get()
}
