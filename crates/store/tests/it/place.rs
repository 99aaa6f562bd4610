//! Where a test's store lives: what the suite needs of a driver.
//!
//! A driver joins the suite by an implementation of [`Place`] and one line in `conformance!`.

use fencepost_core::hook::Hooks;
use fencepost_core::time::{Span, Timestamp};
use fencepost_store::{MemoryDb, PgOptions, Store, StoreClock, migrate_postgres};
use fencepost_testing::Database;
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

    /// Whether writing transactions run one after the other.
    fn is_serial(&self) -> bool;

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
    fn is_serial(&self) -> bool {
        true
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
    fn is_serial(&self) -> bool {
        true
    }
}

/// A PostgreSQL database of its own, which is migrated. Its clock is the server's.
pub(crate) struct PostgresDatabase {
    pub(crate) database: Database,
}

impl PostgresDatabase {
    pub(crate) fn new() -> Self {
        let name = fencepost_store::schema_checksum();
        let made = Database::from_template(&name[..16], |url| {
            wait_for(migrate_postgres(url, options())).unwrap();
        });
        Self { database: made.unwrap() }
    }
}

/// Runs a future to its end from code that is not async, on a runtime with several threads.
pub(crate) fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(work))
}

/// Options whose clock is the test's.
#[expect(clippy::disallowed_methods, reason = "a clock that runs evenly is asked for")]
pub(crate) fn options() -> PgOptions {
    let begun = std::time::Instant::now();
    PgOptions::new("fencepost-test", move || elapsed_since(begun))
}

impl Place for PostgresDatabase {
    fn open_with(&self, _: StoreClock, hooks: Hooks) -> Store {
        wait_for(Store::open_postgres(self.database.url(), options(), hooks)).unwrap()
    }
    fn is_serial(&self) -> bool {
        false
    }
}

fn elapsed_since(begun: std::time::Instant) -> Span {
    Span::from_micros(i64::try_from(begun.elapsed().as_micros()).unwrap())
}
