//! Waiting for the end of a shim without a thread for each.

#![expect(unsafe_code, reason = "tokio asks for a promise that an owned descriptor keeps")]

use crate::attempt::RunningAttempt;
use std::io;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Ready once the shim has ended. An error means that it has to be looked at again later.
pub(super) async fn exited(running: &dyn RunningAttempt) -> io::Result<()> {
    let fd = running.exit_fd().try_clone_to_owned()?;
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped, which is what the
    // registration needs; the `AsyncFd` owns it and drops it after deregistering.
    let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    fd.readable().await.map(|mut guard| guard.retain_ready())
}
