//! Migrations: a list of texts, applied in order, each once, with a checksum.
//!
//! A file is looked at before anything is written to it: what is no store of ours, or is newer than
//! this program, or had other texts applied, is refused as it is. Before a migration of an existing
//! SQLite file the file is copied with SQLite's own backup.

mod inspect;
mod postgres;

pub(crate) use postgres::check_open;
pub use postgres::{Applied, check_postgres, migrate_postgres};

use crate::db::{sqlite_connect, sqlite_error};
use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::time::Timestamp;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Oldest first. A text that was released is never edited.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_init.sql"),
    include_str!("migrations/0002_credentials_logs.sql"),
    include_str!("migrations/0003_liveness.sql"),
    include_str!("migrations/0004_worker_removed.sql"),
    include_str!("migrations/0005_epoch_of_server.sql"),
    include_str!("migrations/0006_homes.sql"),
    include_str!("migrations/0007_reconciliation.sql"),
    include_str!("migrations/0008_dag_files.sql"),
    include_str!("migrations/0009_ramp.sql"),
    include_str!("migrations/0010_incidents.sql"),
    include_str!("migrations/0011_retention.sql"),
    include_str!("migrations/0012_mapped.sql"),
    include_str!("migrations/0013_backfill.sql"),
    include_str!("migrations/0014_vault.sql"),
    include_str!("migrations/0015_triggers.sql"),
    include_str!("migrations/0016_callbacks.sql"),
    include_str!("migrations/0017_assets.sql"),
    include_str!("migrations/0018_asset_queue.sql"),
];

/// The version of the schema that this program works with.
pub const SCHEMA_VERSION: usize = MIGRATIONS.len();

const OP: &str = "migrate";

/// What the schema of this program is known by: the checksum of all migrations.
pub fn schema_checksum() -> String {
    checksum(&MIGRATIONS.join("\n"))
}

/// Brings the file up to [`SCHEMA_VERSION`].
pub(crate) fn migrate_sqlite(path: &Path, now: Timestamp) -> Result<(), StoreError> {
    migrate(path, MIGRATIONS, now)
}

/// Makes the schema in a database in memory.
pub(crate) fn migrate_memory(
    connection: &mut Connection,
    now: Timestamp,
) -> Result<(), StoreError> {
    let tx = connection.transaction().map_err(failed)?;
    for (index, text) in MIGRATIONS.iter().enumerate() {
        apply(&tx, index + 1, text, now)?;
    }
    tx.commit().map_err(failed)
}

/// What a SQLite file has; it is only read. Refuses what is another program's, or newer.
pub fn check_sqlite(path: &Path) -> Result<Applied, StoreError> {
    inspect::is_ours_or_new(path)?;
    if std::fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        return Ok(Applied { before: 0, now: 0 });
    }
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let found = applied(&connection)?;
    check(&found, MIGRATIONS)?;
    Ok(Applied { before: found.len(), now: found.len() })
}

/// A new file is its owner's alone; SQLite gives the files beside it the same rights.
fn make_private(path: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map(drop)
        .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, OP, error))
}

fn migrate(path: &Path, migrations: &[&str], now: Timestamp) -> Result<(), StoreError> {
    inspect::is_ours_or_new(path)?;
    make_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = sqlite_connect(path, flags)?;
    let before = applied(&connection)?;
    check(&before, migrations)?;
    if before.len() == migrations.len() {
        return Ok(());
    }
    // Another process may have come first: what counts is read again under the lock.
    let tx =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let before = applied(&tx)?;
    check(&before, migrations)?;
    if !before.is_empty() && before.len() < migrations.len() {
        back_up(path, before.len())?;
    }
    for (index, text) in migrations.iter().enumerate().skip(before.len()) {
        apply(&tx, index + 1, text, now)?;
    }
    tx.commit().map_err(failed)
}

fn failed(error: rusqlite::Error) -> StoreError {
    sqlite_error(OP, &error)
}

fn apply(
    connection: &Connection,
    version: usize,
    text: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    let table = "CREATE TABLE IF NOT EXISTS schema_migration (
        version BIGINT PRIMARY KEY, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)";
    connection.execute_batch(table).map_err(failed)?;
    let text_here = text.replace("@IDENTITY@", "INTEGER PRIMARY KEY AUTOINCREMENT");
    connection.execute_batch(&text_here).map_err(failed)?;
    let version = i64::try_from(version).unwrap_or(i64::MAX);
    let row = rusqlite::params![version, checksum(text), now.as_micros()];
    connection
        .execute("INSERT INTO schema_migration VALUES (?1, ?2, ?3)", row)
        .map(drop)
        .map_err(failed)
}

/// The checksums of what was applied, in order.
fn applied(connection: &Connection) -> Result<Vec<String>, StoreError> {
    if !connection.table_exists(None, inspect::MARK).map_err(failed)? {
        return Ok(Vec::new());
    }
    let text = "SELECT checksum FROM schema_migration ORDER BY version";
    let mut stmt = connection.prepare(text).map_err(failed)?;
    let rows = stmt.query_map([], |row| row.get(0)).map_err(failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(failed)
}

fn check(applied: &[String], migrations: &[&str]) -> Result<(), StoreError> {
    let refuse = |message: String| Err(StoreError::new(StoreErrorKind::Corrupt, OP, message));
    if applied.len() > migrations.len() {
        return refuse(format!(
            "its schema is version {}, this program knows {}: use the newer program",
            applied.len(),
            migrations.len()
        ));
    }
    for (index, (found, text)) in applied.iter().zip(migrations).enumerate() {
        if *found != checksum(text) {
            return refuse(format!(
                "migration {} was applied with another text: it is another program's store",
                index + 1
            ));
        }
    }
    Ok(())
}

/// Copies what is committed to `NAME.bak-vN`. The copy has that name only once it is whole.
fn back_up(path: &Path, version: usize) -> Result<(), StoreError> {
    let beside = |suffix: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let (half, whole) =
        (beside(format!(".bak-v{version}.part")), beside(format!(".bak-v{version}")));
    let io = |error: std::io::Error| {
        let message = format!("the backup {} cannot be made: {error}", whole.display());
        StoreError::new(StoreErrorKind::Unavailable, OP, message)
    };
    match std::fs::remove_file(&half) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(error)),
        Ok(()) | Err(_) => {}
    }
    let connection = sqlite_connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.backup("main", &half, None::<fn(rusqlite::backup::Progress)>).map_err(failed)?;
    std::fs::rename(&half, &whole).map_err(io)
}

fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut text = String::with_capacity(digest.len() * 2);
    for byte in digest {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests;
