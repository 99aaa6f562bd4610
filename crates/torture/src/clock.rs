//! The harness's clocks. The tasks and the faults are timed by the boot-time clock, which all
//! processes of a machine share; the store has the wall clock, and `clock` in the folder tells which
//! instants of the two belong together.

use fencepost_worker::clock::ClockKind;
use std::time::Duration;

/// Nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000 * MS;

/// The boot-time clock, in nanoseconds.
pub fn boot_ns() -> u64 {
    ClockKind::Boottime.now_ns()
}

/// The wall clock, in microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the harness reads the clock that the store reads")]
pub fn wall_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.ok().and_then(|since| i64::try_from(since.as_micros()).ok()).unwrap_or(0)
}

/// Waits.
#[expect(clippy::disallowed_methods, reason = "faults last for a while")]
pub fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Waits until it is true, or that long; whether it is true.
pub fn wait_until(limit_ms: u64, mut is_true: impl FnMut() -> bool) -> bool {
    let end = boot_ns() + limit_ms * MS;
    loop {
        if is_true() {
            return true;
        }
        if boot_ns() > end {
            return false;
        }
        pause(50);
    }
}
