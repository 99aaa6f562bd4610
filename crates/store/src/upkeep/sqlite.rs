//! What a file says of its pages.

use super::SqliteUpkeep;
use crate::db::sqlite_error;
use crate::error::StoreError;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

const OP: &str = "upkeep";

/// Reads a file, also while a standalone uses it; every page of it is looked at.
pub fn upkeep_sqlite(path: &Path) -> Result<SqliteUpkeep, StoreError> {
    facts(path).map_err(|error| sqlite_error(OP, &error))
}

fn facts(path: &Path) -> rusqlite::Result<SqliteUpkeep> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let mut check = connection.prepare("PRAGMA quick_check(20)")?;
    let found = check.query_map([], |row| row.get::<_, String>(0))?;
    let damage = found.filter(|line| line.as_ref().map_or(true, |line| line != "ok"));
    let wal = path.with_file_name(match path.file_name() {
        Some(name) => format!("{}-wal", name.to_string_lossy()),
        None => String::new(),
    });
    Ok(SqliteUpkeep {
        page_bytes: number("page_size")?,
        pages: number("page_count")?,
        free: number("freelist_count")?,
        wal_bytes: std::fs::metadata(wal).map_or(0, |file| file.len()),
        damage: damage.collect::<rusqlite::Result<_>>()?,
    })
}
