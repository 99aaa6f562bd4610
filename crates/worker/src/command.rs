//! What a short command of the worker's own prints, within bounds.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use crate::clock::{ClockKind, NS_PER_MS};
use crate::mask::masked;
use fencepost_core::kept::hidden;

/// Most characters that are told of the first line on standard error.
const COMPLAINT_MAX: usize = 200;

/// Runs a line of shell with that environment and gives what it prints, at most `most` bytes. The error
/// completes a sentence that begins with the command, and holds neither what the command has printed nor
/// anything of `secrets`. It is ended at `until` (see [`deadline_in`]).
pub(crate) fn output_of(
    command: &str,
    env: &[(String, String)],
    secrets: &[String],
    (most, until): (u64, u64),
) -> Result<Vec<u8>, String> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot be run: {error}"))?;
    let read = read_both(&mut child, most, until);
    let ended = read.and_then(|read| wait(&child, until).map(|()| read));
    if ended.is_err() {
        // Its group is its own, and it was not waited for: the number is still its.
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process_group(pid, Signal::KILL));
    }
    let status = child.wait().map_err(|error| format!("cannot be waited for: {error}"))?;
    let (out, complaint) = ended?;
    if status.success() {
        return Ok(out);
    }
    Err(format!("ends with {status}: {}", told(&complaint, &out, secrets)))
}

/// What may be told of a complaint: people read it who may not see the secret that was to be printed.
fn told(complaint: &[u8], printed: &[u8], secrets: &[String]) -> String {
    let printed = String::from_utf8_lossy(printed).into_owned();
    let secrets: Vec<String> = hidden([printed]).into_iter().chain(secrets.to_vec()).collect();
    // Masked before it is cut: half a secret would not be known as one.
    let said = masked(&secrets, &String::from_utf8_lossy(complaint));
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|c| !c.is_control()).take(COMPLAINT_MAX).collect()
}

/// The instant after which a command is ended, on the clock of this module.
pub(crate) fn deadline_in(patience: Duration) -> u64 {
    let millis = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
    CLOCK.now_ns().saturating_add(millis.saturating_mul(NS_PER_MS))
}

const CLOCK: ClockKind = ClockKind::Monotonic;
const TOO_LONG: &str = "has not ended in time";

/// Waits until it has ended: a command may close its outputs long before.
fn wait(child: &Child, until: u64) -> Result<(), String> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or("has no pid")?;
    let pidfd = pidfd_open(pid, PidfdFlags::empty());
    let pidfd = pidfd.map_err(|error| format!("cannot be waited for: {error}"))?;
    loop {
        let left = until.saturating_sub(CLOCK.now_ns());
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&timespec(left))) {
            Ok(0) => return Err(TOO_LONG.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(format!("cannot be waited for: {error}")),
        }
    }
}

fn read_both(child: &mut Child, most: u64, until: u64) -> Result<(Vec<u8>, Vec<u8>), String> {
    let (Some(mut out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("has no output".into());
    };
    let (mut printed, mut complaint) = (Vec::new(), Vec::new());
    let (mut out_open, mut err_open) = (true, true);
    while out_open || err_open {
        let left = until.saturating_sub(CLOCK.now_ns());
        if left == 0 {
            return Err(TOO_LONG.into());
        }
        let (mut has_out, mut has_err) = (false, false);
        let mut fds = Vec::with_capacity(2);
        if out_open {
            fds.push(PollFd::from_borrowed_fd(out.as_fd(), PollFlags::IN));
        }
        if err_open {
            fds.push(PollFd::from_borrowed_fd(err.as_fd(), PollFlags::IN));
        }
        poll(&mut fds, Some(&timespec(left)))
            .map_err(|error| format!("cannot be read: {error}"))?;
        let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
        if out_open {
            has_out = ready.next().unwrap_or(false);
        }
        if err_open {
            has_err = ready.next().unwrap_or(false);
        }
        drop(ready);
        if has_out {
            out_open = take(&mut out, &mut printed)?;
        }
        if has_err {
            err_open = take(&mut err, &mut complaint)?;
        }
        if printed.len() as u64 > most || complaint.len() as u64 > most {
            return Err(format!("prints more than {most} bytes"));
        }
    }
    Ok((printed, complaint))
}

/// One read; false at the end.
fn take(from: &mut impl Read, into: &mut Vec<u8>) -> Result<bool, String> {
    let mut buffer = [0; 4096];
    match from.read(&mut buffer) {
        Ok(count) => {
            into.extend_from_slice(&buffer[..count]);
            Ok(count > 0)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

fn timespec(ns: u64) -> Timespec {
    const SECOND: u64 = 1_000_000_000;
    Timespec {
        tv_sec: i64::try_from(ns / SECOND).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % SECOND).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str, most: u64, patience: Duration) -> Result<String, String> {
        let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        output_of(command, &env, &["t0ken".to_owned()], (most, deadline_in(patience)))
            .map(|out| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_command_gives_what_it_prints_or_says_why_not() {
        let long = Duration::from_mins(1);
        assert_eq!(run("echo a; echo b >&2", 100, long).unwrap(), "a\n");
        assert_eq!(run("echo ${HOME-none}", 100, long).unwrap(), "none\n");
        let failed = run("echo locked >&2; exit 3", 100, long).unwrap_err();
        assert!(failed.contains("exit status: 3") && failed.contains("locked"), "{failed}");
        let told = run(
            "echo hunter2; echo; echo 't0ken: no hunter2' >&2; echo more >&2; exit 1",
            100,
            long,
        );
        assert_eq!(told.unwrap_err(), "ends with exit status: 1: ***: no ***");
        let told = run("printf 'x%.0s' $(seq 500) >&2; exit 1", 100, long).unwrap_err();
        assert!(told.len() < 250, "{told}");
        assert!(run("yes", 1000, long).unwrap_err().contains("more than 1000 bytes"));
        for slow in ["sleep 600", "printf x; exec >&- 2>&-; sleep 600"] {
            let said = run(slow, 100, Duration::from_secs(1)).unwrap_err();
            assert!(said.contains("has not ended in time"), "{said}");
        }
    }
}
