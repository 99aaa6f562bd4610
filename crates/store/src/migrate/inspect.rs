//! A look at a file before anything is written to it.

use super::{OP, failed};
use crate::error::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// The table by which a store of ours is known.
pub(super) const MARK: &str = "schema_migration";
pub(super) const MARK_COLUMNS: &str = "version,checksum,applied_at";

/// Refuses a file that holds something else than a store. No file and an empty file are new ones.
pub(super) fn is_ours_or_new(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::new(StoreErrorKind::Unavailable, OP, error)),
        Ok(file) if file.is_file() && file.len() == 0 => return Ok(()),
        Ok(file) if !file.is_file() => {
            return Err(StoreError::new(StoreErrorKind::Corrupt, OP, "it is not a file"));
        }
        Ok(_) => {}
    }
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    let tables = names(&connection, "SELECT name FROM sqlite_master WHERE type = 'table'")?;
    if tables.is_empty() {
        return Ok(());
    }
    let columns = names(&connection, "SELECT name FROM pragma_table_info('schema_migration')")?;
    if tables.iter().any(|name| name == MARK) && columns.join(",") == MARK_COLUMNS {
        return Ok(());
    }
    let shown: Vec<&str> = tables.iter().take(3).map(String::as_str).collect();
    let message = format!("it is another program's database (tables {}, ...)", shown.join(", "));
    Err(StoreError::new(StoreErrorKind::Corrupt, OP, message))
}

fn names(connection: &Connection, text: &str) -> Result<Vec<String>, StoreError> {
    let mut stmt = connection.prepare(text).map_err(failed)?;
    let rows = stmt.query_map([], |row| row.get(0)).map_err(failed)?;
    rows.collect::<rusqlite::Result<_>>().map_err(failed)
}
