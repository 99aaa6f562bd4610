//! Where a test's store lives: what the suite needs of a driver.
//!
//! A driver joins the suite by an implementation of [`Place`] and one line in `conformance!`.

use fencepost_core::hook::Hooks;
use fencepost_core::time::Timestamp;
use fencepost_store::{MemoryDb, Store, StoreClock};
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An empty place for one store, which can be opened any number of times, also at once.
pub(crate) trait Place: Send + Sync {
    fn open_with(&self, clock: StoreClock, hooks: Hooks) -> Store;

    /// What a reader saw it sees again, also after others have committed; else it is refused.
    fn keeps_old_snapshots(&self) -> bool {
        true
    }

    fn open(&self) -> Store {
        self.open_with(ticking(), Hooks::none())
    }
}

static NOW: AtomicI64 = AtomicI64::new(1_800_000_000_000_000);

/// A clock that moves by a millisecond with each look, the same for all stores of the process.
pub(crate) fn ticking() -> StoreClock {
    StoreClock::new(|| Timestamp::from_micros(NOW.fetch_add(1_000, Ordering::SeqCst)))
}

/// The points that were passed, in order.
#[derive(Clone, Default)]
pub(crate) struct Passed(Arc<Mutex<Vec<String>>>);

impl Passed {
    pub(crate) fn note(&self, point: &str) {
        self.0.lock().unwrap().push(point.to_owned());
    }
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// A database in memory.
pub(crate) struct Memory(MemoryDb);

impl Memory {
    pub(crate) fn new() -> Self {
        Self(MemoryDb::new(ticking().now(), Duration::from_secs(30)).unwrap())
    }
}

impl Place for Memory {
    fn open_with(&self, clock: StoreClock, hooks: Hooks) -> Store {
        Store::open_memory(&self.0, clock, hooks, None)
    }
    fn keeps_old_snapshots(&self) -> bool {
        false
    }
}

/// A SQLite file in a folder of its own.
pub(crate) struct SqliteFile {
    dir: tempfile::TempDir,
}

impl SqliteFile {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("store.db")
    }
    /// A connection beside the store's own.
    pub(crate) fn beside(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

impl Place for SqliteFile {
    fn open_with(&self, clock: StoreClock, hooks: Hooks) -> Store {
        Store::open_sqlite(&self.path(), clock, hooks).unwrap()
    }
}
