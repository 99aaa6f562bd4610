//! The shim: a small program around one attempt, `fencepost shim DIR`.
//!
//! It owns the task's process tree, its log, its lock and its outcome, and it holds the lease
//! deadline twice: by an orderly end some time before it, and by a timer of the kernel whose
//! expiry is SIGKILL on the shim itself, which also ends a stopped shim (and with it the tree, at
//! the levels where the tree dies with the shim).
//!
//! Reading order: [`main`] -> `start` (may it run?) -> `tree` (how it is held together) ->
//! `course` (what must happen when, pure) -> `watch` (the loop that does it).
//!
//! Absent on purpose: threads, an async runtime, busy polling, and signals from the worker: the
//! worker changes the page and wakes the shim through a FIFO.

pub mod course;
mod init;
mod messages;
mod output;
mod start;
mod tree;
mod user;
mod watch;

use std::path::Path;
use std::process::ExitCode;

use crate::dir::AttemptDir;
use crate::log;

/// Exit code of a shim that could do nothing (`EX_SOFTWARE`): it holds no lock, or has no
/// directory; the worker proves the absence of an outcome by itself.
const EXIT_POWERLESS: u8 = 70;

/// Runs the attempt in `dir` to its end. Descriptor 0 is the locked `lock` file of `dir`.
pub fn main(dir: &Path) -> ExitCode {
    let dir = AttemptDir::new(dir);
    let for_hook = dir.clone();
    std::panic::set_hook(Box::new(move |panic| {
        log::append_remark(&for_hook, &format!("the shim has failed: {panic}"));
    }));
    match start::begin(&dir) {
        Ok(start::Begun::Watch(watch)) => {
            watch.run();
            ExitCode::SUCCESS
        }
        Ok(start::Begun::Refused) => ExitCode::SUCCESS,
        Err(_powerless) => ExitCode::from(EXIT_POWERLESS),
    }
}
