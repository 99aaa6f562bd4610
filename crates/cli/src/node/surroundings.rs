//! The real clock, the real randomness, and the functions that the engine gets from outside.

use fencepost_core::id::uuid_v7;
use fencepost_core::time::BootInstant;
use fencepost_engine::env::Env;
use fencepost_server::render::Renderer;
use fencepost_server::vault::Keyring;
use fencepost_store::StoreClock;
use fencepost_worker::clock::ClockKind;
use std::sync::Arc;
use std::time::Duration;

/// The host's wall clock, which a SQLite store shares with its host.
pub(super) fn store_clock() -> StoreClock {
    StoreClock::new(crate::clock::now)
}

/// The surroundings of a real engine, which opens what is kept by these keys.
pub(super) fn env(keyring: Arc<Keyring>) -> Env {
    let (evaluate, value, render) = Renderer::new(keyring).functions();
    Env {
        wall: Arc::new(crate::clock::now),
        boottime: Arc::new(boottime),
        random: Arc::new(random),
        decode: Arc::new(|ir| fencepost_dagfile::from_ir(ir).map_err(|error| error.to_string())),
        evaluate,
        value,
        render,
    }
}

fn boottime() -> BootInstant {
    let micros = ClockKind::Boottime.now_ns() / 1_000;
    BootInstant::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

/// 64 bits from the kernel. Where it has none to give, the clock and the pid keep ids apart.
pub(super) fn random() -> u64 {
    let now = u64::try_from(crate::clock::now().as_micros()).unwrap_or(0);
    getrandom::u64().unwrap_or_else(|_| now.rotate_left(20) ^ u64::from(std::process::id()))
}

/// A fresh id as text.
pub(crate) fn uuid() -> String {
    let millis = u64::try_from(crate::clock::now().as_micros() / 1_000).unwrap_or(0);
    let random = (u128::from(random()) << 64) | u128::from(random());
    fencepost_core::id::JobId::from_u128(uuid_v7(millis, random)).to_string()
}

/// Twice the cores.
pub(super) fn default_slots() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores.saturating_mul(2)).unwrap_or(2)
}

/// Waits.
#[expect(clippy::disallowed_methods, reason = "the node's timer")]
pub(super) async fn pause(wait: Duration) {
    tokio::time::sleep(wait).await;
}
