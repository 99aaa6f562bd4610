//! The last steps of a forked child before it becomes the user's program.
//!
//! Everything that allocates or may fail for good reasons is prepared before the fork; what fails
//! here is told to the shim in words and ends with the shell's codes: 127 for a program that does
//! not exist, 126 for one that cannot be executed.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::Mode;
use rustix::io::{Errno, read};

use super::messages::Message;
use crate::spec::ShimSpec;
use crate::sys::{self, Account, Strings};

/// What is searched when the task's environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// Added to the task's `oom_score_adj`: short of memory, the kernel picks a task first.
const OOM_SCORE_ADD: i32 = 500;

/// The user's program, ready to be executed.
pub(super) struct UserPlan {
    program: String,
    candidates: Vec<CString>,
    argv: Strings,
    env: Strings,
    cwd: CString,
    account: Option<Account>,
}

/// The descriptors that a child needs; everything else is closed in it.
pub(super) struct ChildPipes {
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) gate: OwnedFd,
    pub(super) status: OwnedFd,
}

impl UserPlan {
    pub(super) fn of(spec: &ShimSpec) -> Result<Self, String> {
        let strings = |texts: Vec<String>| -> Result<Strings, String> {
            let texts: Result<_, _> = texts.into_iter().map(CString::new).collect();
            Ok(Strings::new(texts.map_err(|_| "an argument holds a NUL byte".to_owned())?))
        };
        let program = spec.argv.first().cloned().unwrap_or_default();
        let env = spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Ok(Self {
            candidates: candidates(&program, spec)?,
            program,
            argv: strings(spec.argv.clone())?,
            env: strings(env)?,
            cwd: CString::new(spec.cwd.as_os_str().as_bytes())
                .map_err(|_| "the working directory holds a NUL byte".to_owned())?,
            account: spec.run_as_user.as_deref().map(account).transpose()?,
        })
    }

    /// Becomes the user's program, once the gate opens. `bind` ties the child to the shim, after
    /// its credentials are final (changing them clears a parent death signal).
    pub(super) fn become_user(&self, pipes: &ChildPipes, bind: impl FnOnce() -> bool) -> ! {
        if let Err((code, why)) = self.prepare(pipes) {
            Message::NoExec(code, why).send(&pipes.status);
            sys::exit_now(code);
        }
        if !bind() || !gate_opens(pipes.gate.as_fd()) {
            sys::exit_now(1);
        }
        let (code, why) = self.exec();
        Message::NoExec(code, why).send(&pipes.status);
        sys::exit_now(code)
    }

    fn prepare(&self, pipes: &ChildPipes) -> Result<(), (i32, String)> {
        let failed = |what: &str, error: &dyn std::fmt::Display| (126, format!("{what}: {error}"));
        // First of all, for among the rest is a copy of the shim's lock.
        let ChildPipes { stdout, stderr, gate, status } = pipes;
        sys::close_all_but(&[stdout, stderr, gate, status].map(|end| end.as_raw_fd()));
        let _ = rustix::process::setsid();
        raise_oom_score();
        rustix::stdio::dup2_stdout(stdout).map_err(|e| failed("standard output", &e))?;
        rustix::stdio::dup2_stderr(stderr).map_err(|e| failed("standard error", &e))?;
        rustix::process::umask(Mode::RWXG | Mode::RWXO);
        if let Some(account) = &self.account {
            account.assume().map_err(|e| failed("cannot become the user of run_as_user", &e))?;
        }
        rustix::process::chdir(self.cwd.as_c_str()).map_err(|e| {
            failed(&format!("working directory `{}`", self.cwd.to_string_lossy()), &e)
        })?;
        sys::reset_signals();
        Ok(())
    }

    /// A program that was written a moment ago can still be open for writing in a process that
    /// another thread of its writer is forking: that passes by itself.
    fn exec_when_free(&self, program: &CStr) -> io::Error {
        for _ in 0..BUSY_ROUNDS {
            let error = sys::exec(program, &self.argv, &self.env);
            if error.kind() != io::ErrorKind::ExecutableFileBusy {
                return error;
            }
            super::watch::sleep_ms(10);
        }
        sys::exec(program, &self.argv, &self.env)
    }

    /// As execvp(3), but without its shell for files that no kernel executes.
    fn exec(&self) -> (i32, String) {
        let mut denied = None;
        for candidate in &self.candidates {
            let error = self.exec_when_free(candidate);
            let path = candidate.to_string_lossy();
            match Errno::from_io_error(&error) {
                Some(Errno::NOENT | Errno::NOTDIR) => {
                    if let Some(why) = missing_interpreter(&path) {
                        return (127, why);
                    }
                }
                Some(Errno::ACCESS) => {
                    denied.get_or_insert_with(|| format!("`{path}` is not executable: {error}"));
                }
                Some(Errno::NOEXEC) => {
                    let why = "neither a program for this machine nor a script with `#!`";
                    return (126, format!("`{path}` is {why}"));
                }
                _ => return (126, format!("`{path}`: {error}")),
            }
        }
        match denied {
            Some(why) => (126, why),
            None if self.program.contains('/') => {
                (127, format!("`{}` does not exist", self.program))
            }
            None => (127, format!("`{}` is not in any directory of PATH", self.program)),
        }
    }
}

/// Rounds of 10 ms for a program that somebody still has open for writing.
const BUSY_ROUNDS: u32 = 100;

/// The paths to try, in order.
fn candidates(program: &str, spec: &ShimSpec) -> Result<Vec<CString>, String> {
    let nul = |_| "the program's name holds a NUL byte".to_owned();
    if program.contains('/') {
        return Ok(vec![CString::new(program).map_err(nul)?]);
    }
    let path = spec.env.iter().rev().find(|(name, _)| name == "PATH");
    path.map_or(DEFAULT_PATH, |(_, value)| value)
        .split(':')
        .map(|dir| if dir.is_empty() { "." } else { dir })
        .map(|dir| CString::new(format!("{dir}/{program}")).map_err(nul))
        .collect()
}

fn account(name: &str) -> Result<Account, String> {
    let found = Account::lookup(name)
        .map_err(|error| format!("run_as_user `{name}` cannot be looked up: {error}"))?
        .ok_or_else(|| format!("run_as_user `{name}`: there is no such user"))?;
    let own = rustix::process::geteuid();
    if !own.is_root() && own.as_raw() != found.uid {
        return Err(format!("run_as_user `{name}` needs a worker that runs as root"));
    }
    Ok(found)
}

/// Waits for the shim's word; false if the shim is gone.
fn gate_opens(gate: BorrowedFd<'_>) -> bool {
    loop {
        match read(gate, &mut [0u8; 1][..]) {
            Ok(count) => return count == 1,
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Why a file that exists gave "no such file": its interpreter or loader does not.
fn missing_interpreter(path: &str) -> Option<String> {
    let mut head = [0; 256];
    let mut file = fs::File::open(path).ok()?;
    let count = file.read(&mut head).ok()?;
    let Some(line) = head[..count].strip_prefix(b"#!") else {
        return Some(format!("`{path}` exists, but the loader that it names does not"));
    };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = line.split(|byte| byte.is_ascii_whitespace()).find(|word| !word.is_empty());
    let interpreter = OsStr::from_bytes(words.unwrap_or_default()).to_string_lossy().into_owned();
    Some(format!("`{path}` needs the interpreter `{interpreter}`, which does not exist"))
}

/// Best effort: a task that the kernel spares is no reason not to run it.
fn raise_oom_score() {
    let read = || -> io::Result<i32> {
        let text = fs::read_to_string("/proc/self/oom_score_adj")?;
        text.trim().parse().map_err(io::Error::other)
    };
    let score = (read().unwrap_or(0) + OOM_SCORE_ADD).min(1_000);
    let _ = fs::write("/proc/self/oom_score_adj", score.to_string());
}
