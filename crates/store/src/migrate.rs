//! Migrations: a list of texts, applied in order, each once, with a checksum.
//!
//! A store that is newer than this program, or whose applied texts differ, is refused. Before a
//! migration of an existing SQLite file the file is copied with SQLite's own backup.

use crate::db::sqlite_connect;
use crate::error::{StoreError, StoreErrorKind};
use fencepost_core::time::Timestamp;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};
use std::path::Path;

/// Oldest first. A text that was released is never edited.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_init.sql")];

/// The version of the schema that this program works with.
pub const SCHEMA_VERSION: usize = MIGRATIONS.len();

const OP: &str = "migrate";

/// Brings the file up to [`SCHEMA_VERSION`].
pub(crate) fn migrate_sqlite(path: &Path, now: Timestamp) -> Result<(), StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let mut connection = sqlite_connect(path, flags)?;
    let failed = |error: rusqlite::Error| crate::db::sqlite_error(OP, &error);
    connection
        .execute_batch(
            "CREATE TABLE IF NOT EXISTS schema_migration (
                 version BIGINT PRIMARY KEY, checksum TEXT NOT NULL, applied_at BIGINT NOT NULL)",
        )
        .map_err(failed)?;
    let applied = applied(&connection).map_err(failed)?;
    check(&applied)?;
    if applied.len() == MIGRATIONS.len() {
        return Ok(());
    }
    if !applied.is_empty() {
        let backup = format!("{}.bak-v{}", path.display(), applied.len());
        connection.backup("main", &backup, None::<fn(rusqlite::backup::Progress)>).map_err(failed)?;
    }
    let tx = connection.transaction().map_err(failed)?;
    for (index, text) in MIGRATIONS.iter().enumerate().skip(applied.len()) {
        tx.execute_batch(&text.replace("@IDENTITY@", "INTEGER PRIMARY KEY AUTOINCREMENT"))
            .map_err(failed)?;
        tx.execute(
            "INSERT INTO schema_migration VALUES (?1, ?2, ?3)",
            rusqlite::params![
                i64::try_from(index + 1).unwrap_or(i64::MAX),
                checksum(text),
                now.as_micros()
            ],
        )
        .map_err(failed)?;
    }
    tx.commit().map_err(failed)
}

fn applied(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut stmt =
        connection.prepare("SELECT checksum FROM schema_migration ORDER BY version")?;
    let rows = stmt.query_map([], |row| row.get(0))?;
    rows.collect()
}

fn check(applied: &[String]) -> Result<(), StoreError> {
    let refuse = |message: String| Err(StoreError::new(StoreErrorKind::Corrupt, OP, message));
    if applied.len() > MIGRATIONS.len() {
        return refuse(format!(
            "its schema is version {}, this program knows {}: use the newer program",
            applied.len(),
            MIGRATIONS.len()
        ));
    }
    for (index, (found, text)) in applied.iter().zip(MIGRATIONS).enumerate() {
        if *found != checksum(text) {
            return refuse(format!(
                "migration {} was applied with another text: it is another program's store",
                index + 1
            ));
        }
    }
    Ok(())
}

fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
