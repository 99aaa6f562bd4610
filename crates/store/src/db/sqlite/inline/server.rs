//! The server that the store in memory plays: it fails over to a copy that misses the last commits.
//!
//! As on PostgreSQL the epoch is bound to the server that it was made on (`installation.server`), and
//! which server this is (`server.now`) is no part of what is copied: it rises with each promotion.

use super::{MemoryDb, State, drop_free};
use crate::db::sqlite::{CACHED_STATEMENTS, wrong};
use crate::error::{StoreError, StoreErrorKind};
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use std::fmt;

/// What a standby has received: the rows that were committed at some instant.
pub struct Replica(Connection);

impl fmt::Debug for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Replica")
    }
}

/// Pages copied at a time: all of them.
const PAGES: i32 = i32::MAX;

/// An empty database.
pub(super) fn fresh() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // A third of the time went into plans that were made anew for each set of values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    Ok(connection)
}

pub(super) fn make(connection: &Connection) -> Result<(), StoreError> {
    let text = "ALTER TABLE installation ADD COLUMN server INTEGER NOT NULL DEFAULT 0;
        CREATE TABLE server (one INTEGER PRIMARY KEY CHECK (one = 1), now INTEGER NOT NULL);
        INSERT INTO server (one, now) VALUES (1, 0);";
    connection.execute_batch(text).map_err(|error| wrong("open", &error))
}

fn now(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT now FROM server", [], |row| row.get(0))
}

impl MemoryDb {
    /// A copy of what is committed now. A marked database cannot be copied.
    pub fn replica(&self) -> Result<Replica, StoreError> {
        let failed = |error: rusqlite::Error| wrong("replica", &error);
        let mut state = self.state();
        let mut copy = fresh().map_err(failed)?;
        state.leave()?;
        let done = Backup::new(&state.connection, &mut copy).and_then(|all| all.step(PAGES));
        state.come_back()?;
        if done.map_err(failed)? != StepResult::Done {
            let why = "a transaction is open around it";
            return Err(StoreError::new(StoreErrorKind::Unavailable, "replica", why));
        }
        Ok(Replica(copy))
    }

    /// The copy takes over: what was committed since it was made is lost, and sessions that are open
    /// have ended.
    pub fn fail_over(&self, replica: Replica) -> Result<(), StoreError> {
        let failed = |error: rusqlite::Error| wrong("fail_over", &error);
        let mut state = self.state();
        state.undo();
        let next = now(&state.connection).map_err(failed)? + 1;
        let Replica(copy) = replica;
        copy.execute("UPDATE server SET now = ?1", [next]).map_err(failed)?;
        // The count of changes never falls, and tells the two apart.
        let before = std::mem::replace(&mut state.connection, copy);
        state.changes += before.total_changes() + 1;
        state.commits += 1;
        drop_free(&self.0);
        Ok(())
    }
}

impl State {
    /// No transaction is open, for a moment.
    fn leave(&mut self) -> Result<(), StoreError> {
        self.set_aside("replica")?;
        self.savepoint("RELEASE session")
    }

    fn come_back(&mut self) -> Result<(), StoreError> {
        self.savepoint("SAVEPOINT session")
    }

    fn savepoint(&mut self, text: &str) -> Result<(), StoreError> {
        if self.writer.is_none() {
            return Ok(());
        }
        self.connection.execute_batch(text).map_err(|error| wrong("replica", &error))
    }
}
