//! Whether the home's disk has room: without it a worker takes no claims, and keeps its results.

use std::path::Path;

/// Under this much free space nothing new is started.
const LEAST_FREE: u64 = 32 << 20;

/// Why no claim should be taken, in a sentence; `None` if there is room.
pub(super) fn trouble(home: &Path) -> Option<String> {
    let stat = rustix::fs::statvfs(home).ok()?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    (free < LEAST_FREE).then(|| {
        format!(
            "the disk of {} is full ({} KiB free): no attempt is claimed until {} MiB are free",
            home.display(),
            free >> 10,
            LEAST_FREE >> 20
        )
    })
}
