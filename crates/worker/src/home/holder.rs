//! A holder of the home that lives: may it be ended, and which process is it exactly?

use std::fs::{self, File};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, getpid, pidfd_send_signal};

use super::{HomeClaim, HomeError, TakeOver, check_ours, read_record, try_lock};
use crate::clock::{BootId, ClockKind};
use crate::process::{ProcessId, Stat, pid_namespace};

/// How long the lock of a holder that is gone may be held by a copy, in rounds of 10 ms: by a
/// process that was being forked when the holder ended, until its exec.
const ROUNDS: u32 = 100;
const ROUND_NS: i64 = 10_000_000;

/// Takes the lock, unless the recorded holder lives.
pub(super) fn lock_unless_alive(home: &Path, lock: &File, path: &Path) -> Result<bool, HomeError> {
    for _ in 0..ROUNDS {
        if try_lock(lock, path)? {
            return Ok(true);
        }
        let holder = read_record(home)?.map(|r| ProcessId { pid: r.pid, start: r.start });
        let stat = holder.and_then(|holder| Some((holder, Stat::of(holder.pid)?)));
        if stat.is_some_and(|(holder, stat)| stat.id == holder && !stat.is_zombie()) {
            return Ok(false);
        }
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: ROUND_NS }));
    }
    Ok(false)
}

/// The time since the holder's last turn; `None` if it never turned.
fn quiet_ns(home: &Path) -> Option<u64> {
    let text = fs::read_to_string(home.join("turn")).ok()?;
    let turned: u64 = text.trim().parse().ok()?;
    Some(ClockKind::Boottime.now_ns().saturating_sub(turned))
}

/// Ends the holder if that is allowed: it is of this installation and machine, it can be named
/// for sure, and it is stopped, stalled, or to be taken over in any case.
pub(super) fn end_holder(
    home: &Path,
    claim: &HomeClaim,
    take_over: TakeOver,
) -> Result<(), HomeError> {
    let Some(record) = read_record(home)? else {
        let name = "that has just taken it".to_owned();
        return Err(HomeError::Held { pid: 0, name, quiet_ns: None });
    };
    check_ours(&record, claim)?;
    let quiet_ns = quiet_ns(home);
    let held = || HomeError::Held { pid: record.pid, name: record.worker_name.clone(), quiet_ns };
    let holder = ProcessId { pid: record.pid, start: record.start };
    let may_end = match take_over {
        TakeOver::Always => true,
        TakeOver::IfStalled { quiet_ns: limit } => {
            is_stopped(holder) || quiet_ns.is_some_and(|quiet| quiet > limit)
        }
    };
    let nameable = record.pid != getpid().as_raw_nonzero().get()
        && pid_namespace().is_ok_and(|own| own == record.pid_namespace)
        && BootId::current().is_ok_and(|boot| boot.to_string() == record.boot_id);
    let pidfd = if may_end && nameable { holder.open().ok().flatten() } else { None };
    let Some(pidfd) = pidfd else { return Err(held()) };
    // SIGKILL, for a stopped process hears nothing else; what it runs is in the care of its shims.
    pidfd_send_signal(&pidfd, Signal::KILL)
        .map_err(|e| HomeError::io("ending the holder of", home)(e.into()))?;
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit)) {
        Ok(1..) => Ok(()),
        _ => Err(HomeError::DoesNotEnd { pid: record.pid, name: record.worker_name.clone() }),
    }
}

fn is_stopped(holder: ProcessId) -> bool {
    Stat::of(holder.pid).is_some_and(|stat| stat.id == holder && matches!(stat.state, 'T' | 't'))
}

/// The lock of a process that has just ended is free in a moment.
pub(super) fn wait_for_lock(home: &Path, lock: &File, path: &Path) -> Result<(), HomeError> {
    for _ in 0..5 * ROUNDS {
        if try_lock(lock, path)? {
            return Ok(());
        }
        let _ = poll(&mut [], Some(&Timespec { tv_sec: 0, tv_nsec: ROUND_NS }));
    }
    let record = read_record(home)?;
    let (pid, name) = record.map_or((0, String::new()), |r| (r.pid, r.worker_name));
    Err(HomeError::DoesNotEnd { pid, name })
}
