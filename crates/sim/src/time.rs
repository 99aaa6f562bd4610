//! Simulated time: tokio's paused clock is the boot-time clock of every machine, and each wall
//! clock is that plus an offset which may step.

use fencepost_core::time::{BootInstant, Span, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;
use tokio::time::Instant;

/// When worlds begin: 2026-03-01T00:00:00Z.
const BEGIN_MICROS: i64 = 1_772_323_200_000_000;

/// Elapsed time, the same for all machines.
#[derive(Debug, Clone, Copy)]
pub struct Time {
    begun: Instant,
}

impl Time {
    /// Begins now. Within a runtime with paused time.
    pub fn begin() -> Self {
        Self { begun: Instant::now() }
    }

    /// Since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// The boot-time clock.
    pub fn nanos(&self) -> u64 {
        // The machines had been up for an hour: no clock reads zero.
        let up = Duration::from_hours(1) + self.elapsed();
        u64::try_from(up.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The same, as the engine counts it.
    pub fn boottime(&self) -> BootInstant {
        BootInstant::from_micros(i64::try_from(self.nanos() / 1_000).unwrap_or(i64::MAX))
    }

    /// When the boot-time clock shows `nanos`.
    pub fn at(&self, nanos: u64) -> Instant {
        let hour = Duration::from_hours(1);
        // What is too far away to be named is a century away.
        let after = Duration::from_nanos(nanos).saturating_sub(hour);
        self.begun + after.min(Duration::from_hours(24 * 365 * 100))
    }
}

/// A wall clock that can be stepped.
#[derive(Debug, Clone)]
pub struct Wall {
    time: Time,
    offset: Arc<AtomicI64>,
}

impl Wall {
    /// A clock that is right.
    pub fn new(time: Time) -> Self {
        Self { time, offset: Arc::default() }
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.time.elapsed().as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(BEGIN_MICROS + elapsed + self.offset.load(SeqCst))
    }

    /// Steps it.
    pub fn step(&self, by: Span) {
        self.offset.fetch_add(by.as_micros(), SeqCst);
    }

    /// Sets it right.
    pub fn set_right(&self) {
        self.offset.store(0, SeqCst);
    }
}

/// Lets simulated time pass.
#[expect(clippy::disallowed_methods, reason = "the one place of the simulator that waits")]
pub async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}

/// Waits for an instant.
#[expect(clippy::disallowed_methods, reason = "as above")]
pub async fn until(at: Instant) {
    tokio::time::sleep(at.saturating_duration_since(Instant::now())).await;
}

/// Runs a future that waits for nothing but its own turns; `None` if it waits for something else.
pub fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    const TURNS: u32 = 10_000;
    // The budget of the task around it says nothing about it.
    let mut future = std::pin::pin!(tokio::task::unconstrained(future));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    (0..TURNS).find_map(|_| match future.as_mut().poll(&mut cx) {
        std::task::Poll::Ready(done) => Some(done),
        std::task::Poll::Pending => None,
    })
}
