//! A store in memory without threads, for simulated processes that share it.
//!
//! Commands run where they are polled, so that one seed is one order of events. As on the real
//! drivers one session writes at a time, a reader sees what is committed and nothing else, and a
//! session whose owner stands still in the middle of it is ended once another one waits for it.
//! There is one connection: a reader that comes while somebody writes takes the writer's changes
//! back, and they are made again before its next statement. A reader never waits between two of
//! its statements, so its snapshot cannot grow old unless it is stopped there; then it is refused.
//! It may fail over to a copy that misses the last commits ([`server`]).
//!
//! Deliberately absent: a file, durability, group commit.

mod server;

pub use server::Replica;

use super::{Answer, ended, run, wrong};
use crate::db::{Stmt, Value};
use crate::error::{StoreError, StoreErrorKind};
use crate::migrate;
use fencepost_core::time::Timestamp;
use rusqlite::Connection;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The way of one process to the store: awaited before each step of its writing transactions and
/// before the beginning of each that reads; with an error the step never arrives.
pub type Way = Arc<
    dyn Fn(&'static str) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync,
>;

/// A database in memory. Clones are the same one.
#[derive(Clone)]
pub struct MemoryDb(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// The writer's place became free.
    freed: Notify,
    idle_max: Duration,
}

struct State {
    connection: Connection,
    sessions: u64,
    commits: u64,
    writer: Option<Writer>,
    /// Sessions that were ended because their owners stood still.
    ended: u64,
    /// Changes of the databases that were in this place before.
    changes: u64,
}

/// The one that writes.
struct Writer {
    id: u64,
    /// What it has done, to be done again.
    log: Vec<(&'static str, Stmt, Vec<Vec<Value>>)>,
    /// Taken back for a reader.
    is_aside: bool,
    touched: Instant,
    failed: Option<StoreError>,
}

impl fmt::Debug for MemoryDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryDb")
    }
}

impl MemoryDb {
    /// A fresh database. A session that stands still for `idle_max` gives its place up.
    pub fn new(now: Timestamp, idle_max: Duration) -> Result<Self, StoreError> {
        let failed = |error: rusqlite::Error| wrong("open", &error);
        let mut connection = server::fresh().map_err(failed)?;
        migrate::migrate_memory(&mut connection, now)?;
        server::make(&connection)?;
        let state =
            State { connection, sessions: 0, commits: 0, writer: None, ended: 0, changes: 0 };
        Ok(Self(Arc::new(Shared { state: Mutex::new(state), freed: Notify::new(), idle_max })))
    }

    /// Remembers what is committed now, for [`MemoryDb::reset`]. At most once.
    pub fn mark(&self) -> Result<(), StoreError> {
        let state = self.state();
        state.connection.execute_batch("BEGIN").map_err(|error| wrong("mark", &error))
    }

    /// Goes back to the mark, which stays. Sessions that are open have ended.
    pub fn reset(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        state.writer = None;
        state.commits += 1;
        drop_free(&self.0);
        state.connection.execute_batch("ROLLBACK; BEGIN").map_err(|error| wrong("reset", &error))
    }

    /// Writing transactions that were committed.
    pub fn commits(&self) -> u64 {
        self.state().commits
    }

    /// Rows that were changed so far, for good or not: the same number means the same rows.
    pub fn changes(&self) -> u64 {
        let state = self.state();
        state.changes + state.connection.total_changes()
    }

    /// Sessions that were ended because their owners stood still.
    pub fn ended_idle(&self) -> u64 {
        self.state().ended
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of its holder leaves a transaction open at most, which its session's drop ends.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn drop_free(shared: &Shared) {
    shared.freed.notify_waiters();
}

/// A handle of one process.
#[derive(Clone)]
pub(crate) struct Inline {
    db: MemoryDb,
    way: Option<Way>,
}

impl fmt::Debug for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inline")
    }
}

/// A transaction.
#[derive(Debug)]
pub(crate) struct Session {
    inline: Inline,
    id: u64,
    writes: bool,
    /// The last commit when it began.
    snapshot: u64,
    /// It is committed, or cut off: then the store finds out by itself.
    is_left: std::sync::atomic::AtomicBool,
}

impl Inline {
    pub(crate) fn new(db: MemoryDb, way: Option<Way>) -> Self {
        Self { db, way }
    }

    pub(crate) async fn session(
        &self,
        op: &'static str,
        writes: bool,
    ) -> Result<Session, StoreError> {
        self.pass(op).await?;
        let (id, snapshot) = {
            let mut state = self.db.state();
            state.sessions += 1;
            (state.sessions, state.commits)
        };
        let is_left = std::sync::atomic::AtomicBool::new(false);
        let session = Session { inline: self.clone(), id, writes, snapshot, is_left };
        if writes {
            self.take_place(op, id).await?;
        }
        Ok(session)
    }

    async fn pass(&self, op: &'static str) -> Result<(), StoreError> {
        let Some(way) = &self.way else { return Ok(()) };
        way(op).await.map_err(|why| StoreError::new(StoreErrorKind::Unavailable, op, why))
    }

    async fn take_place(&self, op: &'static str, id: u64) -> Result<(), StoreError> {
        let shared = &self.db.0;
        loop {
            let freed = shared.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            let wait = {
                let mut state = self.db.state();
                match state.writer.as_ref().map(|writer| writer.touched.elapsed()) {
                    None => return state.begin(op, id),
                    Some(idle) if idle >= shared.idle_max => {
                        state.undo();
                        state.ended += 1;
                        return state.begin(op, id);
                    }
                    Some(idle) => shared.idle_max.saturating_sub(idle),
                }
            };
            // Freed or over: the next look tells.
            let _ = tokio::time::timeout(wait, freed).await;
        }
    }
}

impl State {
    fn begin(&mut self, op: &'static str, id: u64) -> Result<(), StoreError> {
        self.connection.execute_batch("SAVEPOINT session").map_err(|error| wrong(op, &error))?;
        let (log, touched) = (Vec::new(), Instant::now());
        self.writer = Some(Writer { id, log, is_aside: false, touched, failed: None });
        Ok(())
    }

    /// Ends the writer's session without a trace.
    fn undo(&mut self) {
        if self.writer.take().is_some() {
            // In memory nothing can fail here but the program itself.
            let _ = self.connection.execute_batch("ROLLBACK TO session; RELEASE session");
        }
    }

    /// The committed state alone is to be seen.
    fn set_aside(&mut self, op: &'static str) -> Result<(), StoreError> {
        let Some(writer) = self.writer.as_mut().filter(|writer| !writer.is_aside) else {
            return Ok(());
        };
        writer.is_aside = true;
        let done = self.connection.execute_batch("ROLLBACK TO session");
        done.map_err(|error| wrong(op, &error))
    }

    fn write(
        &mut self,
        (id, op): (u64, &'static str),
        stmt: Stmt,
        sets: Vec<Vec<Value>>,
    ) -> Result<Answer, StoreError> {
        let Self { connection, writer, .. } = self;
        let writer = writer.as_mut().filter(|writer| writer.id == id).ok_or_else(|| gone(op))?;
        writer.touched = Instant::now();
        if let Some(first) = &writer.failed {
            return Err(ended(op, first));
        }
        let done = again(connection, writer).and_then(|()| run(connection, op, stmt, &sets));
        match &done {
            Ok(_) => writer.log.push((op, stmt, sets)),
            Err(error) => writer.failed = Some(error.clone()),
        }
        done
    }

    fn commit(&mut self, id: u64, op: &'static str) -> Result<(), StoreError> {
        let Self { connection, writer, commits, .. } = self;
        let own = writer.as_mut().filter(|writer| writer.id == id).ok_or_else(|| gone(op))?;
        if let Some(first) = &own.failed {
            return Err(ended(op, first));
        }
        again(connection, own)?;
        connection.execute_batch("RELEASE session").map_err(|error| wrong(op, &error))?;
        *writer = None;
        *commits += 1;
        Ok(())
    }
}

fn read(
    connection: &Connection,
    op: &'static str,
    stmt: Stmt,
    sets: &[Vec<Value>],
) -> Result<Answer, StoreError> {
    let text = stmt.text.replace('$', "?");
    let is_read = connection.prepare_cached(&text).map(|prepared| prepared.readonly());
    if is_read.map_err(|error| wrong(op, &error))? {
        return run(connection, op, stmt, sets);
    }
    let why = format!("{}: this transaction only reads", stmt.name);
    Err(StoreError::new(StoreErrorKind::Unavailable, op, why))
}

/// Makes the writer's changes again after a reader was there.
fn again(connection: &Connection, writer: &mut Writer) -> Result<(), StoreError> {
    if !std::mem::take(&mut writer.is_aside) {
        return Ok(());
    }
    writer.log.iter().try_for_each(|(op, stmt, sets)| run(connection, op, *stmt, sets).map(drop))
}

impl Session {
    pub(crate) async fn run(
        &self,
        op: &'static str,
        stmt: Stmt,
        sets: Vec<Vec<Value>>,
    ) -> Result<Answer, StoreError> {
        let stmt = Stmt { text: stmt.memory.unwrap_or(stmt.text), ..stmt };
        if !self.writes {
            let mut state = self.inline.db.state();
            if state.commits != self.snapshot {
                let why = "its owner stood still: its snapshot is gone";
                return Err(StoreError::new(StoreErrorKind::Unavailable, op, why));
            }
            state.set_aside(op)?;
            return read(&state.connection, op, stmt, &sets);
        }
        self.pass(op).await?;
        self.inline.db.state().write((self.id, op), stmt, sets)
    }

    pub(crate) async fn commit(self, op: &'static str) -> Result<(), StoreError> {
        if !self.writes {
            return Ok(());
        }
        self.pass(op).await?;
        self.inline.db.state().commit(self.id, op)?;
        self.is_left.store(true, std::sync::atomic::Ordering::Relaxed);
        drop_free(&self.inline.db.0);
        Ok(())
    }

    /// What is cut off on the way leaves its transaction open at the store.
    async fn pass(&self, op: &'static str) -> Result<(), StoreError> {
        let passed = self.inline.pass(op).await;
        if passed.is_err() {
            self.is_left.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        passed
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.writes || self.is_left.load(std::sync::atomic::Ordering::Relaxed) {
            return;
        }
        let mut state = self.inline.db.state();
        if state.writer.as_ref().is_some_and(|writer| writer.id == self.id) {
            state.undo();
            drop_free(&self.inline.db.0);
        }
    }
}

fn gone(op: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, op, "its session has ended")
}
