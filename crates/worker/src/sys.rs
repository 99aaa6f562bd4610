//! The system calls that rustix does not offer, each behind a safe function.
//!
//! Everything that forks here may only be called by a process with one thread: the shim.
#![expect(unsafe_code, reason = "process control that no safe wrapper offers")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use libc::c_int;

use crate::clock::ClockKind;

/// Which side of a fork this is.
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The forking process: pid (in its own PID namespace) and pidfd of the child.
    Parent { pid: i32, pidfd: OwnedFd },
}

/// `fork`, with new namespaces by `flags` (`CLONE_NEW*`).
///
/// Called by the only thread of a process, so that the child's memory is consistent.
#[expect(clippy::cast_sign_loss, reason = "flags of the kernel")]
pub(crate) fn fork(flags: c_int) -> io::Result<Forked> {
    let mut pidfd: c_int = -1;
    let flags = (flags | libc::CLONE_PIDFD | libc::SIGCHLD) as libc::c_ulong;
    // SAFETY: no CLONE_VM and no new stack, so this is `fork`: the child has a copy of all memory
    // and, as this process has one thread, no lock in it is held by anyone else. With CLONE_PIDFD
    // the third argument is the address for the descriptor on every architecture.
    let pid = unsafe {
        libc::syscall(libc::SYS_clone, flags, ptr::null::<u8>(), &raw mut pidfd, 0u64, 0u64)
    };
    forked(pid, pidfd)
}

/// Wider than the type that libc gives it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// `fork` of a child that begins its life in a cgroup. Moving a living process there costs tens of
/// milliseconds, for it waits until no process of the machine is in the middle of a fork or exit.
#[expect(clippy::cast_sign_loss, reason = "flags and descriptors of the kernel")]
pub(crate) fn fork_into(cgroup: &OwnedFd) -> io::Result<Forked> {
    let mut pidfd: c_int = -1;
    // SAFETY: all zero means "nothing of the kind" in every field.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = libc::CLONE_PIDFD as u64 | CLONE_INTO_CGROUP;
    args.pidfd = &raw mut pidfd as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    args.cgroup = cgroup.as_raw_fd() as u64;
    // SAFETY: as `fork`; both pointers are valid for the call.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<libc::clone_args>()) };
    forked(pid, pidfd)
}

fn forked(pid: libc::c_long, pidfd: c_int) -> io::Result<Forked> {
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => {
            // SAFETY: the kernel has just made this descriptor for us alone.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Forked::Parent { pid: i32::try_from(pid).unwrap_or(-1), pidfd })
        }
    }
}

/// Ends this process at once: no destructors, no buffers, no exit handlers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: always sound.
    unsafe { libc::_exit(code) }
}

/// Pointers to C strings, ended by null, ready for `execve`.
pub(crate) struct Strings {
    _owned: Vec<CString>,
    pointers: Vec<*const libc::c_char>,
}

impl Strings {
    pub(crate) fn new(owned: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(ptr::null());
        Self { _owned: owned, pointers }
    }
}

/// Replaces this process; returns only why it could not.
pub(crate) fn exec(program: &CStr, argv: &Strings, env: &Strings) -> io::Error {
    // SAFETY: all strings end in NUL, both arrays in null, and they live across the call.
    unsafe { libc::execve(program.as_ptr(), argv.pointers.as_ptr(), env.pointers.as_ptr()) };
    io::Error::last_os_error()
}

/// Closes every descriptor from 3 on except `kept`.
pub(crate) fn close_all_but(kept: &[RawFd]) {
    let mut kept: Vec<u32> = kept.iter().filter_map(|fd| u32::try_from(*fd).ok()).collect();
    kept.sort_unstable();
    let mut from = 3u32;
    for fd in kept {
        if fd > from {
            close_range(from, fd - 1);
        }
        from = from.max(fd + 1);
    }
    close_range(from, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    // SAFETY: closes descriptors that the caller gave up; none of them is used afterwards.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) };
    if done == 0 {
        return;
    }
    // Kernels before 5.9: by the list of what is open.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<u32> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    for fd in open.into_iter().filter(|fd| (first..=last).contains(fd)) {
        if let Ok(fd) = c_int::try_from(fd) {
            // SAFETY: as above; a descriptor that is closed already gives EBADF.
            unsafe { libc::close(fd) };
        }
    }
}

/// Puts every signal back to its default and unblocks all of them.
pub(crate) fn reset_signals() {
    // All zero is the kernel's form of SIG_DFL without flags or mask on every architecture, and
    // more than its size. libc's own function would refuse the signals that it keeps for itself,
    // which a parent may have left ignored all the same.
    let default = [0u64; 16];
    for signal in 1..=64 {
        // SAFETY: the pointer is valid for reading; SIGKILL and SIGSTOP just refuse.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default.as_ptr(),
                ptr::null_mut::<u64>(),
                8usize,
            )
        };
    }
    let none = signal_set(&[]);
    // SAFETY: a valid set, no old set asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut()) };
}

fn signal_set(signals: &[c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the whole set; the signals are valid numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// What stays deliverable: the process's own faults. (SIGKILL and SIGSTOP always are.)
const FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGABRT];

/// Blocks every signal but faults, so that none ends this process by its default, and returns a
/// descriptor from which `signals` are read.
pub(crate) fn signals_as_fd(signals: &[c_int]) -> io::Result<OwnedFd> {
    let wanted = signal_set(signals);
    let mut blocked = MaybeUninit::uninit();
    // SAFETY: sigfillset initialises the whole set; the signals are valid numbers; the descriptor
    // is new and ours alone.
    unsafe {
        libc::sigfillset(blocked.as_mut_ptr());
        for fault in FAULTS {
            libc::sigdelset(blocked.as_mut_ptr(), fault);
        }
        libc::sigprocmask(libc::SIG_BLOCK, blocked.as_ptr(), ptr::null_mut());
        match libc::signalfd(-1, &raw const wanted, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Reads what [`signals_as_fd`] has gathered; true if `wanted` is among it.
pub(crate) fn drain_signals(fd: &OwnedFd, wanted: c_int) -> bool {
    let mut seen = false;
    loop {
        let mut info = MaybeUninit::<libc::signalfd_siginfo>::uninit();
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has room for one entry, and it is looked at only when one was read.
        let read = unsafe { libc::read(fd.as_raw_fd(), info.as_mut_ptr().cast(), size) };
        if usize::try_from(read).ok() != Some(size) {
            return seen;
        }
        // SAFETY: a whole entry was read.
        let signal = unsafe { info.assume_init() }.ssi_signo;
        seen |= c_int::try_from(signal).ok() == Some(wanted);
    }
}

/// A timer of the kernel whose expiry is SIGKILL on this process: it also ends a stopped one.
pub(crate) struct DeadlineTimer {
    timer: libc::timer_t,
}

impl DeadlineTimer {
    pub(crate) fn new(clock: ClockKind) -> io::Result<Self> {
        let clock = match clock {
            ClockKind::Monotonic => libc::CLOCK_MONOTONIC,
            ClockKind::Boottime => libc::CLOCK_BOOTTIME,
        };
        // SAFETY: all zero is a valid `sigevent`; the fields that count are set next.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_SIGNAL;
        event.sigev_signo = libc::SIGKILL;
        let mut timer = MaybeUninit::uninit();
        // SAFETY: both pointers are valid for the call.
        match unsafe { libc::timer_create(clock, &raw mut event, timer.as_mut_ptr()) } {
            // SAFETY: filled in by the call that succeeded.
            0 => Ok(Self { timer: unsafe { timer.assume_init() } }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Arms the timer for an instant of its clock; 0 disarms it.
    pub(crate) fn arm(&self, at_ns: u64) -> io::Result<()> {
        let value = libc::timespec {
            tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
        };
        let interval = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let spec = libc::itimerspec { it_interval: interval, it_value: value };
        // SAFETY: the timer lives as long as `self`; no old value is asked for.
        let done = unsafe {
            libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &raw const spec, ptr::null_mut())
        };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// User, group and supplementary groups of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    groups: Vec<u32>,
}

impl Account {
    /// Looks an account up by name; `None` if there is none.
    pub(crate) fn lookup(name: &str) -> io::Result<Option<Self>> {
        let name = CString::new(name)?;
        let mut entry = MaybeUninit::<libc::passwd>::uninit();
        let mut found = ptr::null_mut();
        let mut buffer = vec![0; 16 << 10];
        // SAFETY: all pointers are valid for the call, and the length is the buffer's.
        let error = unsafe {
            libc::getpwnam_r(
                name.as_ptr(),
                entry.as_mut_ptr(),
                buffer.as_mut_ptr(),
                buffer.len(),
                &raw mut found,
            )
        };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        if found.is_null() {
            return Ok(None);
        }
        // SAFETY: filled in, as `found` is not null.
        let (uid, gid) = unsafe {
            let entry = entry.assume_init();
            (entry.pw_uid, entry.pw_gid)
        };
        Ok(Some(Self { uid, gid, groups: groups_of(&name, gid)? }))
    }

    /// Becomes this account, for good.
    pub(crate) fn assume(&self) -> io::Result<()> {
        let ok = |done: c_int| if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // SAFETY: plain system calls; the array is valid for its length.
        unsafe {
            ok(libc::setgroups(self.groups.len(), self.groups.as_ptr()))?;
            ok(libc::setgid(self.gid))?;
            ok(libc::setuid(self.uid))
        }
    }
}

fn groups_of(name: &CStr, gid: u32) -> io::Result<Vec<u32>> {
    let mut groups = vec![0; 64];
    for _ in 0..8 {
        let mut count = c_int::try_from(groups.len()).unwrap_or(c_int::MAX);
        // SAFETY: the array has room for `count` entries.
        let done =
            unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        let count = usize::try_from(count).unwrap_or(0);
        if done >= 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        groups.resize(count.max(groups.len() * 2), 0);
    }
    Err(io::Error::other("the account is in too many groups"))
}

/// What the children that were waited for have used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) peak_rss_kib: u64,
    pub(crate) cpu_us: u64,
}

impl Usage {
    pub(crate) fn of_children() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::uninit();
        // SAFETY: the pointer is valid, and the value is read only if the call succeeded.
        let usage = unsafe {
            if libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr()) != 0 {
                return Self::default();
            }
            usage.assume_init()
        };
        let micros = |time: libc::timeval| {
            u64::try_from(time.tv_sec * 1_000_000 + time.tv_usec).unwrap_or(0)
        };
        Self {
            peak_rss_kib: u64::try_from(usage.ru_maxrss).unwrap_or(0),
            cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
        }
    }
}

/// SIGTERM to every other process of this PID namespace. Refused to anybody but its init: from
/// elsewhere it would reach processes that are not the attempt's.
pub(crate) fn terminate_namespace() -> io::Result<()> {
    if !rustix::process::getpid().is_init() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    // SAFETY: a plain system call; -1 leaves out init itself.
    match unsafe { libc::kill(-1, libc::SIGTERM) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
