//! Waiting for the end of a shim without a thread for each.

#![expect(unsafe_code, reason = "tokio asks for a promise that an owned descriptor keeps")]

use std::io;
use std::os::fd::BorrowedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Ready once the process of a pidfd has ended. An error means that it has to be looked at again
/// later.
pub(super) async fn readable(pidfd: BorrowedFd<'_>) -> io::Result<()> {
    let fd = pidfd.try_clone_to_owned()?;
    // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped, which is what the
    // registration needs; the `AsyncFd` owns it and drops it after deregistering.
    let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    fd.readable().await.map(|mut guard| guard.retain_ready())
}
